package collect

import (
	"testing"

	"github.com/whystall/whystall/internal/sensor/bpf"
)

// A part that has no sight would be missing from nobody's view.
func TestPartSights(t *testing.T) {
	for _, part := range append(bpf.Programs(), bpf.PartQuotaTimers, bpf.PartTick, bpf.PartFunctions) {
		if len(partSights[part]) == 0 {
			t.Errorf("part %q of the recorder: nothing says what is not seen without it", part)
		}
	}
}
