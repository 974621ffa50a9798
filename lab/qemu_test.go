package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unpack reads a cpio archive as a kernel does, without the code of pack. An entry is a header of
// 13 numbers of 8 hexadecimal digits, a name and data, both padded to a multiple of 4.
func unpack(t *testing.T, b []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	for at := 0; ; {
		if len(b)-at < 110 || string(b[at:at+6]) != "070701" {
			t.Fatalf("no header at byte %d", at)
		}
		var f [13]int
		for i := range f {
			if _, err := fmt.Sscanf(string(b[at+6+8*i:at+14+8*i]), "%x", &f[i]); err != nil {
				t.Fatal(err)
			}
		}
		mode, size, nameSize := f[1], f[6], f[11]
		name := string(b[at+110 : at+110+nameSize-1])
		data := (at + 110 + nameSize + 3) / 4 * 4
		if name == "TRAILER!!!" {
			return files
		}
		files[fmt.Sprintf("%o %s", mode, name)] = string(b[data : data+size])
		at = (data + size + 3) / 4 * 4
	}
}

func TestPack(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []int{0, 1, 2, 3, 4} { // the padding differs
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", n)), bytes.Repeat([]byte("x"), n),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{"prebuilt/not-built": filepath.Join(dir, "none")}
	for _, n := range []string{"f0", "f1", "f2", "f3", "f4"} {
		files["bin/"+n+n[1:]] = filepath.Join(dir, n)
	}
	image := filepath.Join(dir, "image")
	if err := pack(image, files, "#!init\n"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	got := unpack(t, b)
	if got["100755 init"] != "#!init\n" || got["100755 bin/f33"] != "xxx" || got["100755 bin/f44"] != "xxxx" {
		t.Errorf("unpacked %q", got)
	}
	if _, ok := got["40755 prebuilt"]; !ok || len(got) != 3+1+5 {
		t.Errorf("unpacked %d entries: %q", len(got), got)
	}
}

// TestUnpackInto: a recording from a machine is whole, or it is an error.
func TestUnpackInto(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./../x.case", Typeflag: tar.TypeReg, Mode: 0o644, Size: 3000}} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{b.Len(), 2000, 0} {
		dir := t.TempDir()
		archive, folder := filepath.Join(dir, "archive"), filepath.Join(dir, "into")
		if err := os.WriteFile(archive, b.Bytes()[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		err := unpackInto(folder, archive)
		if (err == nil) != (n != 2000) {
			t.Errorf("%d bytes of %d: %v", n, b.Len(), err)
		}
		st, statErr := os.Stat(filepath.Join(folder, "x.case"))
		if whole := statErr == nil && st.Size() == 3000; whole != (n == b.Len()) {
			t.Errorf("%d bytes of %d: a whole recording: %v", n, b.Len(), whole)
		}
	}
}

func TestConsole(t *testing.T) {
	for _, c := range []struct {
		console, want string
		ended         bool
		status        int
	}{
		{"\x1bc\x1b[?7l\x1b[2J\x1b[0mSeaBIOS\r\nLinux 6.1\r\n\x1b[1mFOUND\x1b[0m 1\r\nlab ended with 1\r\n", "SeaBIOS\nLinux 6.1\nFOUND 1\n", true, 1},
		{"Kernel panic - not syncing\r\n", "Kernel panic - not syncing\n", false, 0},
		{"lab ended with 0\n", "", true, 0},
		{"the lab ended with 7\n", "the lab ended with 7\n", false, 0},
	} {
		for _, step := range []int{1, 5, len(c.console)} {
			var out strings.Builder
			s := &statusOf{w: &out}
			for rest := c.console; rest != ""; {
				n := min(step, len(rest))
				if _, err := io.WriteString(s, rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if out.String() != c.want || s.ended != c.ended || s.status != c.status {
				t.Errorf("%q in steps of %d: %q, ended %v with %d", c.console, step, out.String(), s.ended, s.status)
			}
		}
	}
}

func TestInitScript(t *testing.T) {
	if s := initScript([]string{"run", "it's"}); !strings.Contains(s, `'run' 'it'\''s'; echo`) {
		t.Errorf("arguments are not quoted:\n%s", s)
	}
}

func TestQEMUUsage(t *testing.T) {
	cases, err := loadCases()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		nil, {"--kernel", "k"}, {"--kernel", "k", "--", "list", "x"},
		{"--kernel", "k", "lock-contention/no-such-variant"},
		{"--kernel", "k", "--nodes", "3", "--cpus", "2", "--", "run", "lock-contention"},
		{"no-such-case"}, {"--kernel", "k", "--", "run", "no-such-case"},
	} {
		var errs strings.Builder
		if got := qemuArgs(context.Background(), cases, args, io.Discard, &errs); got != exitUsage || errs.Len() == 0 {
			t.Errorf("lab qemu %q: status %d, says %q", args, got, errs.String())
		}
	}
	for says, want := range map[string]bool{"QEMU emulator version 7.2.22 (Debian 1:7.2)": true,
		"QEMU emulator version 10.0.2": false, "": false} {
		if _, old := tooOld(says); old != want {
			t.Errorf("%q is too old: %v", says, old)
		}
	}
}

// TestInsideVariants: only what the machine runs is built.
func TestInsideVariants(t *testing.T) {
	cases, err := loadCases()
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"numa-balancing":         "[numa-balancing/ill numa-balancing/cured]",
		"numa-balancing/healthy": "[numa-balancing/healthy]",
		"run gomaxprocs-over-quota --variant cured --for 10s":     "[gomaxprocs-over-quota/cured]",
		"verify --times 1 --only numa-balancing/ill":              "[numa-balancing/ill]",
		"verify numa-balancing/ill numa-balancing/cured --for 5s": "[numa-balancing/ill numa-balancing/cured]",
	} {
		rest := insideArgs(strings.Fields(args))
		got, _, err := insideVariants(cases, rest)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v; want %s", args, got, err, want)
		}
		if n := strings.Count(strings.Join(rest, " "), "--for"); n != 1 {
			t.Errorf("%q has --for %d times", rest, n)
		}
	}
}
