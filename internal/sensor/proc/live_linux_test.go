package proc

import (
	"os"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/need"
)

func TestTaskstats(t *testing.T) {
	ts, err := OpenTaskstats()
	if err != nil {
		need.Missing(t, "taskstats", err.Error())
	}
	defer ts.Close()
	text, err := ts.Process(os.Getpid())
	if err != nil {
		need.Missing(t, "taskstats", err.Error())
	}
	for _, want := range []string{"version ", "\ncpu_count ", "\nnvcsw ", "\nfreepages_delay_total "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	t.Log(text)
	if _, err := ts.Process(1 << 22); err == nil {
		t.Error("a process that is not there: no error")
	}
}
