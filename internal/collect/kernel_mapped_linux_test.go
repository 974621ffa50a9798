package collect

import (
	"os"
	"strings"
	"testing"
)

func TestReadMapped(t *testing.T) {
	got := readMapped(strings.NewReader(`55d0c0a00000-55d0c0a21000 r-xp 00001000 fe:00 131 /usr/bin/x (deleted)
7f1c00000000-7f1c10000000 r--s 00000000 fe:00 132 /var/lib/my data
7f1c08000000-7f1c20000000 r--s 00000000 fe:00 132 /overlaps
7f1c20000000-7f1c20001000 rw-p 00000000 00:00 0 
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]
no mapping /at all
9-1 /backwards
`), nil)
	if len(got) != 2 || got[0].path != "/usr/bin/x (deleted)" ||
		got[1] != (mappedFile{0x7f1c00000000, 0x7f1c10000000, "/var/lib/my data"}) {
		t.Errorf("got %+v", got)
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(readMapped(f, nil)) == 0 {
		t.Error("no file is mapped here")
	}
}
