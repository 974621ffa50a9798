package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	// "malloc(655360)  = nil", also of calloc; in some versions 0
	allocation = pattern.New(`^(?:\[pid\s+\d+\] |\d+ )?(?:\S+->)?(?:malloc|calloc)\((\d+)(?:, (\d+))?\)\s*= (\S+)$`)
	killedBy   = pattern.New(`\+\+\+ killed by (SIG[A-Z0-9]+)`)
)

// ending says how a program ended that ltrace watched, and whether it had got no memory before.
// It reports whether there is anything to say.
func ending(r *attach.Reading, lines []string) bool {
	asked, failed, killed, open := 0.0, 0.0, "", ""
	n, times := 0, 0
	for _, text := range lines {
		if m := killedBy.FindStringSubmatch(text); m != nil {
			killed = m[1]
		}
		if strings.HasSuffix(text, "<no return ...>") {
			open, _, _ = strings.Cut(text, "(")
		}
		m := allocation.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		size, _ := number(m[1])
		if each, ok := number(m[2]); ok {
			size *= each
		}
		n++
		asked = max(asked, size)
		if m[3] == "nil" || m[3] == "0" || m[3] == "NULL" {
			times++
			failed = max(failed, size)
		}
	}
	if killed == "" && times == 0 {
		return false
	}
	if n > 0 {
		r.Figures = slices.Insert(r.Figures, 0,
			fmt.Sprintf("%s shown, the largest of %s bytes; %d got no memory",
				attach.Plural(n, "allocation"), count(asked), times))
	}
	var out []string
	if times > 0 {
		out = append(out, fmt.Sprintf("an allocation of %s bytes got no memory", count(failed)))
	}
	if killed != "" && open != "" {
		out = append(out, fmt.Sprintf("%s killed the program in %s", killed, open))
	} else if killed != "" {
		out = append(out, killed+" killed the program")
	}
	r.Means = upper(strings.Join(out, ", and then ")) + ": that is how it ended, and no slowness."
	r.Not = "ltrace stops the program at each call, so their times and rates are mostly its own."
	return true
}
