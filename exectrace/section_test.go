package exectrace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A trace inside another file reads like the trace itself.
func TestOpenSection(t *testing.T) {
	const plain = "testdata/srv-go1.22.12.trace"
	b, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	count := func(tr *Trace, err error) (n int64) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		for range tr.Blocks() {
		}
		if tr.Err() != nil {
			t.Fatal(tr.Err())
		}
		return tr.Stats().Events
	}
	before := []byte("something before that is no whole page")
	file := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(file, bytes.Join([][]byte{before, b, []byte("and after")}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	got := count(OpenSection(file, int64(len(before)), int64(len(b)), Options{}))
	if want := count(Open(plain, Options{})); got != want || want == 0 {
		t.Errorf("%d events, want %d", got, want)
	}
	for _, s := range [][2]int64{{-1, 4}, {0, 1 << 40}, {1 << 40, 1}, {4, -1}} {
		if tr, err := OpenSection(file, s[0], s[1], Options{}); err == nil {
			tr.Close()
			t.Errorf("opened %v", s)
		}
	}
}
