package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A report that cannot be written to its end leaves what was there, and nothing else.
func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "slow.html"), filepath.Join(dir, "link.html")
	if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	full := errors.New("the disk is full")
	half := func(w io.Writer) error {
		io.WriteString(w, "half")
		return full
	}
	if err := writeWhole(name, half); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
	if b, _ := os.ReadFile(name); string(b) != "before" {
		t.Errorf("a full disk leaves %q", b)
	}
	if err := writeWhole(link,
		func(w io.Writer) error { _, err := io.WriteString(w, "after"); return err }); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(name); string(b) != "after" {
		t.Errorf("through a link: %q", b)
	}
	if l, err := os.ReadDir(dir); err != nil || len(l) != 2 {
		t.Errorf("left behind: %v, %v", l, err)
	}
}
