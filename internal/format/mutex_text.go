package format

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindMutexText is what /debug/pprof/mutex?debug=1 answers, or the start of it.
const KindMutexText Kind = "a mutex profile as text"

var _ = register(&row{
	kind: KindMutexText, name: "mutex-text", rank: rankProfile,
	looks: startsBytes("--- mutex:\n"),
	parse: alone(MutexText),
	streams: []evidence.Stream{
		{Name: "/pprof/mutex/fraction:events",
			Doc: "Fact. One contention of this many is sampled; 0: the profile is off, so it says nothing."},
	},
})

// MutexText returns the sampling rate, which stands in the third line of a mutex profile's text
// form (debug=1) and in no other form. It needs only the first lines.
func MutexText(text []byte, t int64) ([]evidence.Record, error) {
	head := string(text[:min(len(text), 512)])
	for i, line := range strings.SplitN(head, "\n", 4) {
		v, ok := strings.CutPrefix(line, "sampling period=")
		if !ok || i > 2 {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("read mutex profile as text: line %d: sampling period %.20q", i+1, v)
		}
		return []evidence.Record{{Stream: "/pprof/mutex/fraction:events", Shape: evidence.Fact,
			Time: t, Value: float64(n)}}, nil
	}
	return nil, errors.New("read mutex profile as text: no sampling period in its first lines")
}
