package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

type file struct{ name, body string }

func tarOf(t testing.TB, files ...file) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Size: int64(len(f.body)), Mode: 0o600, Typeflag: tar.TypeReg}
		if link, ok := strings.CutPrefix(f.body, "-> "); ok {
			h.Size, h.Typeflag, h.Linkname, f.body = 0, tar.TypeSymlink, link, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, f.body)
	}
	w.Close()
	return b.Bytes()
}

func zipOf(t testing.TB, files ...file) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		m, err := w.Create(f.name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(m, f.body)
	}
	w.Close()
	return b.Bytes()
}

func gz(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func zst(data []byte, o ...zstd.EOption) []byte {
	var b bytes.Buffer
	w, _ := zstd.NewWriter(&b, o...)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func xzOf(data []byte, dict int) []byte {
	var b bytes.Buffer
	w, _ := xz.WriterConfig{DictCap: dict}.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

// bz is "hello\n" by bzip2: std has no writer.
var bz, _ = base64.StdEncoding.DecodeString("QlpoOTFBWSZTWcHAgOIAAAFBAAAQAkSgADDNAMNGKZcXckU4UJDBwIDi")

// walk lists the files of an archive as "name=body", then the notes.
func walk(data []byte, b *Budget) (out []string) {
	left, err := Walk("x", bytes.NewReader(data), b, func(name string, r io.Reader) error {
		body, err := io.ReadAll(r)
		if err != nil {
			body = append(body, '!')
		}
		out = append(out, name+"="+string(body))
		return nil
	})
	if err != nil {
		out = append(out, err.Error())
	}
	if out = append(out, left.Notes...); left.Others > 0 {
		out = append(out, fmt.Sprintf("left %d, %s", left.Others, left.Other))
	}
	return out
}

func TestWalk(t *testing.T) {
	two := []file{{"a/b", "one"}, {"/etc/../c", "two"}, {"link", "-> /etc/passwd"}}
	for _, c := range []struct {
		name string
		data []byte
		want []string
	}{
		{"tar", tarOf(t, two...), []string{"a/b=one", "/etc/../c=two", "left 1, x:link"}},
		{"tar.gz", gz(tarOf(t, two...)), []string{"a/b=one", "/etc/../c=two", "left 1, x:link"}},
		{"tar.zst", zst(tarOf(t, two...)), []string{"a/b=one", "/etc/../c=two", "left 1, x:link"}},
		{"tar.xz", xzOf(tarOf(t, two...), 1<<20), []string{"a/b=one", "/etc/../c=two", "left 1, x:link"}},
		{"two xz streams", append(xzOf([]byte("a"), 1<<20), xzOf([]byte("b"), 1<<20)...), []string{"=ab"}},
		{"bz2", bz, []string{"=hello\n"}},
		{"gz", gz([]byte("hello")), []string{"=hello"}},
		{"plain", []byte("hello"), []string{"=hello"}},
		{"zip", zipOf(t, two[:2]...), []string{"a/b=one", "/etc/../c=two"}},
		{"zip in tar", tarOf(t, file{"z.zip", string(zipOf(t, two[0]))}), []string{"z.zip:a/b=one"}},
		{"gz in zip", zipOf(t, file{"log.gz", string(gz([]byte("one")))}), []string{"log.gz=one"}},
		{"tar in tar in tar", tarOf(t, file{"1.tar", string(tarOf(t, file{"2.tar", string(tarOf(t, two[0]))}))}),
			[]string{"read x:1.tar:2.tar: " + errNested.Error()}},
		{"packed thrice", gz(gz(gz([]byte("a")))), []string{"read x: packed more than twice: unpack it first"}},
		{"a large dictionary", xzOf([]byte("a"), 128<<20),
			[]string{"read x: xz: it needs a dictionary of 128 MiB, and at most 64 MiB are given: unpack it first, with xz -d"}},
		{"a large dictionary behind another", append(xzOf([]byte("a"), 1<<20), xzOf([]byte("b"), 128<<20)...),
			[]string{"read x: xz: it needs a dictionary of 128 MiB, and at most 64 MiB are given: unpack it first, with xz -d"}},
		{"cut zip", zipOf(t, two...)[:60], []string{"a/b=one", "read x: " + cutOff}},
		{"zip cut in a member", zipOf(t, two[0])[:36], []string{"a/b=on!", "read x:a/b: " + cutOff}},
	} {
		if got := walk(c.data, DefaultBudget()); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

const cutOff = "it is cut off: what comes before is read; copy it again for the rest"

// storedZip is a zip whose members are not packed, and have a mode and a comment.
func storedZip(t testing.TB, files ...file) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Comment: "a comment", CRC32: crc32.ChecksumIEEE([]byte(f.body)),
			CompressedSize64: uint64(len(f.body)), UncompressedSize64: uint64(len(f.body))}
		if h.SetMode(0o600); strings.HasPrefix(f.body, "-> ") {
			h.SetMode(0o777 | os.ModeSymlink)
		}
		m, err := w.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(m, f.body)
	}
	w.SetComment("the end")
	w.Close()
	return b.Bytes()
}

// A zip says the same by its directory and in order, but for links: only the directory knows them.
func TestZip(t *testing.T) {
	two := []file{{"a/b", "one"}, {"c", strings.Repeat("two", 30_000)}, {"d/", ""}, {"e", "three"}}
	packed, stored := zipOf(t, two...), storedZip(t, two...)
	want := []string{"a/b=one", "c=" + two[1].body, "e=three"}
	linked := storedZip(t, file{"link", "-> /etc/passwd"}, two[0])
	wrong := bytes.Replace(stored, []byte("PK\x03\x04"), []byte("PK\x03\x05"), 1)
	flipped := bytes.Replace(stored, []byte("one"), []byte("oni"), 1)
	for _, c := range []struct {
		name           string
		data           []byte
		sought, walked []string // by the directory, and in order; nil: the same
	}{
		{"packed", packed, want, nil},
		{"stored", stored, want, nil},
		{"behind something", append([]byte("#!/bin/sh\n"), packed...), want, []string{"=#"}},
		{"a link", linked, []string{"a/b=one", "left 1, x:link"}, []string{"link=-> /etc/passwd", "a/b=one"}},
		{"a wrong member", wrong, []string{want[1], want[2], "read x:a/b: zip: not a valid zip file"}, []string{"=PK"}},
		{"a wrong sum", flipped, []string{"a/b=oni!", want[1], want[2], "read x:a/b: zip: checksum error"}, nil},
		{"empty", zipOf(t), nil, nil},
		{"without its end", stored[:len(stored)-40], want, nil},
	} {
		var got []string
		left, _ := Zip("x", bytes.NewReader(c.data), int64(len(c.data)), DefaultBudget(), func(name string, r io.Reader) error {
			body, err := io.ReadAll(r)
			if err != nil {
				body = append(body, '!')
			}
			got = append(got, name+"="+string(body))
			return nil
		})
		if got = append(got, left.Notes...); left.Others > 0 {
			got = append(got, fmt.Sprintf("left %d, %s", left.Others, left.Other))
		}
		if !slices.Equal(got, c.sought) {
			t.Errorf("%s:\n got %.300q\nwant %.300q", c.name, got, c.sought)
		}
		ordered := walk(c.data, DefaultBudget())
		switch {
		case c.walked == nil && !slices.Equal(ordered, c.sought),
			len(c.walked) == 1 && (len(ordered) != 1 || !strings.HasPrefix(ordered[0], c.walked[0])),
			len(c.walked) > 1 && !slices.Equal(ordered, c.walked):
			t.Errorf("%s, in order:\n got %.300q\nwant %.300q", c.name, ordered, c.walked)
		}
	}
	if r := bytes.NewReader(stored); !ZipHas(r, r.Size(), "e") || ZipHas(r, r.Size(), "f") {
		t.Error("ZipHas does not know the members")
	}
}

// A directory of any length is not held, and what is read before the bound counts.
func TestZipOfMany(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	const members = 70_000 // more than 16 bits count
	for i := range members {
		m, _ := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("proc/%d/a-name-of-usual-length", i), Method: zip.Store})
		io.WriteString(m, "x")
	}
	w.Close()
	for _, c := range []struct{ most, want int }{{60_000, 60_000}, {100_000, members}} {
		n := 0
		var before, within runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		left, _ := Zip("x", bytes.NewReader(b.Bytes()), int64(b.Len()), &Budget{Members: c.most, Bytes: 1 << 30}, func(string, io.Reader) error {
			if n++; n == c.most/2 {
				runtime.GC()
				runtime.ReadMemStats(&within)
			}
			return nil
		})
		if n != c.want || (len(left.Notes) > 0) != (c.most < members) {
			t.Errorf("%d members of %d, %q", n, c.most, left.Notes)
		}
		if held := int64(within.HeapAlloc) - int64(before.HeapAlloc); held > 2<<20 {
			t.Errorf("%d bytes are held in the middle of %d members", held, members)
		}
	}
}

// What comes before the cut is read.
func TestCut(t *testing.T) {
	data := gz([]byte(strings.Repeat("0123456789", 100)))
	got := walk(data[:len(data)-9], DefaultBudget())
	if len(got) != 2 || len(got[0]) < 500 || !strings.Contains(got[1], "it is cut off") {
		t.Errorf("got %q", got)
	}
}

func TestBudget(t *testing.T) {
	many := make([]file, 20)
	for i := range many {
		many[i] = file{fmt.Sprint(i), "x"}
	}
	for name, data := range map[string][]byte{"tar": tarOf(t, many...), "zip": zipOf(t, many...)} {
		got := walk(data, &Budget{Members: 5, Bytes: 1 << 20})
		if len(got) != 6 || got[5] != "read x: "+errMembers.Error() {
			t.Errorf("%s: got %q", name, got)
		}
	}
	bomb := gz(bytes.Repeat([]byte{'x'}, 50<<20))
	var n int64
	left, _ := Walk("x", bytes.NewReader(bomb), &Budget{Members: 5, Bytes: 1 << 20},
		func(_ string, r io.Reader) (err error) {
			n, _ = io.Copy(io.Discard, r)
			return nil
		})
	if n > 1<<20 || len(left.Notes) != 1 || !strings.Contains(left.Notes[0], errBytes.Error()) {
		t.Errorf("%d bytes, %q", n, left.Notes)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "b"), 0o700)
	os.WriteFile(filepath.Join(dir, "b", "x"), []byte("one"), 0o600)
	os.WriteFile(filepath.Join(dir, "z.zip"), zipOf(t, file{"y", "two"}), 0o600)
	os.Symlink("/etc/passwd", filepath.Join(dir, "a"))
	var got []string
	left, err := Folder(dir, DefaultBudget(), func(name string, r io.Reader) error {
		body, _ := io.ReadAll(r)
		got = append(got, name+"="+string(body))
		return nil
	})
	if want := []string{"b/x=one", "z.zip:y=two"}; !slices.Equal(got, want) || err != nil || len(left.Notes) != 0 || left.Others != 1 {
		t.Errorf("got %q %v %+v", got, err, left)
	}
}

func FuzzWalk(f *testing.F) {
	f.Add(tarOf(f, file{"a", "b"}))
	f.Add(zipOf(f, file{"a", "b"}))
	f.Add(gz([]byte("a")))
	f.Add(zst([]byte("a")))
	f.Add(xzOf([]byte("a"), 1<<20))
	f.Add(bz)
	f.Fuzz(func(t *testing.T, data []byte) {
		Walk("x", bytes.NewReader(data), &Budget{Members: 100, Bytes: 1 << 20}, func(_ string, r io.Reader) error {
			io.Copy(io.Discard, r)
			return nil
		})
	})
}
