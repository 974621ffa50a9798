package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A session gets the least weight while its process runs behind others, and only if nobody else is
// at work in it.
func TestSession(t *testing.T) {
	self := os.Getpid()
	for _, c := range []struct {
		what  string
		other string // the stat of another process
		group string
		want  string
	}{
		{"a shell that waits", "77 (sh (x) S) S 1 77 %d 0", "/autogroup-7 nice 2\n", "19"},
		{"another process", "77 (sh) S 1 77 %d 0\n78 (app) S 1 78 %[1]d 0", "/autogroup-7 nice 2\n", ""},
		{"a process of another session", "77 (sh) S 1 77 %d 0\n78 (app) S 1 78 78 0", "/autogroup-7 nice 0", "19"},
		{"no such groups", "77 (sh) S 1 77 %d 0", "", ""},
	} {
		dir := t.TempDir()
		write := func(name, text string) {
			t.Helper()
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(fmt.Sprintf("%d/stat", self), fmt.Sprintf("%d (whystall) R 77 %[1]d 5 0", self))
		for _, line := range strings.Split(fmt.Sprintf(c.other, 5), "\n") {
			pid, _, _ := strings.Cut(line, " ")
			write(pid+"/stat", line)
		}
		write("self/autogroup", c.group)
		read := func() string {
			b, err := os.ReadFile(filepath.Join(dir, "self/autogroup"))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		a := autogroup{dir: dir, sessionOf: func(pid int) (sid int, err error) {
			b, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(pid), "stat"))
			if err != nil {
				return 0, err
			}
			_, err = fmt.Sscan(strings.Fields(string(b[strings.LastIndex(string(b), ")")+1:]))[3], &sid)
			return sid, err
		}}
		a.lowered(true)
		want := c.want
		if want == "" {
			want = c.group
		}
		if got := read(); got != want {
			t.Errorf("%s: lowered to %q, want %q", c.what, got, want)
		}
		a.lowered(false)
		if got := read(); c.want != "" && got != fmt.Sprint(a.was) || c.want == "" && got != c.group {
			t.Errorf("%s: afterwards %q", c.what, got)
		}
	}
}
