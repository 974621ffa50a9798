package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var perfC2C = &attach.Kind{Name: "perf c2c", Claim: claimC2C, Read: readC2C,
	Hints: []string{"Trace Event Information", "Shared Data Cache", "Shared Cache Line",
		"Global Shared", "LLC Misses", "Load MESI", "Store L1D", "Load Remote"}}

var (
	c2cHead = pattern.New(`^(=+$|Trace Event Information|Shared Data Cache Line Table|Shared Cache Line Distribution Pareto|Global Shared Cache Line Event|c2c details|Total records\s+:|Load (Operations|Fill|LLC|Local|Remote|MESI)|Store |Locked |LLC Misses|No Page Map Rejects|Unable to parse data source|# ?-+ (Cacheline|Total)|(\w[\w ./()-]*?)\s+:\s+[\d.]+%?$)`)
	// c2cRow is a row of the table of lines, or of the functions that touch one.
	c2cRow = pattern.New(`^(\d+\s+0x[0-9a-f]+\s+\d|\d+(\s+\d+){2,}\s+0x[0-9a-f]+|([\d.]+%\s+){3,}0x[0-9a-f]+\s|-{20,}$|[\d.]+%?(\s+[\d.]+%?){3,}\s)`)
	// "  Load Remote HITM      :      12757", "  Cachelines sort on     : Remote HITMs"
	c2cSum = pattern.New(`^([A-Z][\w ./()-]*?)\s+:\s+(\S.*)$`)
	// "    0   0x602180   149904   77.09%   12103 ...", in newer versions with node and page counts
	c2cLine = pattern.New(`^\d+\s+(0x[0-9a-f]+)\s+(?:\d+\s+){1,3}(\d+\.\d+)%\s+\d`)
	// "   65.51%   55.88% ...   0x0   14604   0x400b4f ...  [.] read_write_func  prog  main.c:120"
	c2cFunction = pattern.New(`^(?:\d+\.\d+%\s+){3,}0x[0-9a-f]+\s.*\s\[[.k]\]\s+(\S+)`)
)

// claimC2C takes the sums of perf c2c and the tables below them. Their rows alone are not known.
func claimC2C(lines []paste.Line) int {
	heads, tables := 0, false
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case c2cHead.MatchString(text), heads > 3 && strings.HasPrefix(text, "Cacheline") &&
			c2cSum.MatchString(text), strings.HasPrefix(text, "Events ") && strings.Contains(text, ": cpu/mem-"):
			heads++
			tables = tables || strings.Contains(text, "Shared Data Cache Line Table") ||
				strings.Contains(text, "Distribution Pareto")
			return true
		case strings.HasPrefix(text, "#"):
			return tables && !perfHead(text) || tables && strings.Trim(text, "# .") == ""
		case strings.HasPrefix(text, ": ") && heads > 3: // a second event
			return true
		}
		return tables && c2cRow.MatchString(text)
	})
	return attach.ClaimIf(heads >= 3, n)
}

func readC2C(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "perf c2c", State: attach.CannotTell}
	sums, by := map[string]string{}, ""
	var lines, functions []string
	for _, text := range texts(p) {
		if m := c2cSum.FindStringSubmatch(text); m != nil {
			sums[m[1]] = m[2]
			if strings.HasPrefix(m[1], "Cachelines sort on") {
				by = m[2]
			}
		}
		if m := c2cLine.FindStringSubmatch(text); m != nil && len(lines) < 2 {
			lines = append(lines, fmt.Sprintf("%s %%: %s", m[2], m[1]))
		}
		if m := c2cFunction.FindStringSubmatch(text); m != nil && len(functions) == 0 {
			functions = append(functions, m[1])
		}
	}
	r.Means = "perf c2c shows cache lines that CPUs share: that makes own computing slower and is no stall."
	loads, ok := number(sums["Load Operations"])
	remote, ok1 := number(sums["Load Remote HITM"])
	local, ok2 := number(sums["Load Local HITM"])
	if ok && ok1 && ok2 && loads > 0 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s of %s loads found a line that another CPU had written (HITM), %s of them on another node", count(remote+local), count(loads), count(remote)))
		if remote+local == 0 {
			r.Means += " No load here found a line that another CPU had written."
		}
	}
	if shared := sums["Total Shared Cache Lines"]; len(r.Figures) == 0 && isCount(shared) {
		r.Figures = append(r.Figures, shared+" cache lines that CPUs share")
	}
	if len(lines) > 0 {
		what := "share of what it is sorted by"
		if by != "" {
			what = "share of " + by
		}
		r.Figures = append(r.Figures, what+", by cache line: "+strings.Join(lines, ", "))
	}
	if len(functions) > 0 {
		r.Figures = append(r.Figures, "the first line is used in "+functions[0])
	}
	r.Not = "How much slower it makes the program is not in it: perf report --stdio has the functions' shares."
	return r
}
