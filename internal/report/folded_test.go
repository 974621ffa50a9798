package report

import (
	"strings"
	"testing"
)

func TestFolded(t *testing.T) {
	for sources, want := range map[string]string{
		"/process/delay/blkio:ns, /process/delay/compact:ns, /process/delay/swapin:ns": "/process/delay/*",
		"/process/delay/blkio:ns, /process/delay/compact:ns":                           "/process/delay/blkio:ns, /process/delay/compact:ns",
		"/process/delay/blkio:ns, /process/io:ns, /process/delay/swapin:ns":            "/process/delay/blkio:ns, /process/io:ns, /process/delay/swapin:ns",
		"a, b, c": "a, b, c",
		"":        "",
	} {
		if got := folded(strings.Split(sources, ", ")); got != want {
			t.Errorf("%q is %q, want %q", sources, got, want)
		}
	}
}
