package database

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// commandStat is a row of INFO commandstats that has all of these; times in microseconds.
var commandStat = pattern.New(`^calls=(\d+),usec=(\d+),usec_per_call=([\d.]*\.\d\d)(?:,|$)`)

// commandStats says which commands took most since the start, and how long one of them takes.
func commandStats(r *result, f map[string]string) {
	sums, each := map[string]float64{}, map[string]float64{}
	for k, v := range f {
		name, is := strings.CutPrefix(k, "cmdstat_")
		m := commandStat.FindStringSubmatch(v)
		if !is || m == nil {
			continue
		}
		us, _ := number(m[2])
		mean, _ := number(m[3])
		sums[name], each[name] = us/1e6, mean/1e6
	}
	if len(sums) == 0 {
		return
	}
	slow, most := attach.Largest(each)[0], attach.Largest(sums)
	r.figure(fmt.Sprintf("%s in it: one took %s on average at most, %s",
		attach.Plural(len(sums), "command"), dur(each[slow]), strings.ToUpper(slow)))
	var list []string
	for _, name := range most[:min(len(most), 3)] {
		list = append(list, strings.ToUpper(name)+" "+dur(sums[name]))
	}
	r.figure("most time since the start, of all calls together: " + strings.Join(list, ", "))
	r.Means = cmp.Or(r.Means, "Averages since the start: they hide single calls that were slow, and commands that are not listed.")
}
