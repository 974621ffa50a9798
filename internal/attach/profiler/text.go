package profiler

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

// most bounds how many rows or stacks of one part are kept: text may be of any length.
const most = 1 << 16

// claimed is how many lines a kind has: up to the first that is not its own. Blank lines between
// its own are its own, and a prompt never is.
func claimed(lines []paste.Line, own func(i int, text string) bool) int {
	return attach.ClaimWhile(lines, func(i int, text string) bool { return own(i, strings.TrimSpace(text)) })
}

// texts are the lines of a part without blanks around them. Those of another prompt are not there.
func texts(p *attach.Part) []string {
	out := make([]string, 0, len(p.Lines))
	for _, l := range p.Lines {
		out = append(out, strings.TrimSpace(l.Text))
	}
	return out
}

// number reads a number as tools print it: 1,234.5 and 1.234,5 and 0,5 included.
func number(s string) (float64, bool) {
	if s == "" || s[0] != '-' && s[0] != '+' && s[0] != '.' && (s[0] < '0' || s[0] > '9') {
		return 0, false
	}
	comma, dot := strings.LastIndexByte(s, ','), strings.LastIndexByte(s, '.')
	switch {
	case comma >= 0 && dot > comma:
		s = strings.ReplaceAll(s, ",", "")
	case comma >= 0 && dot >= 0:
		s = strings.Replace(strings.ReplaceAll(s, ".", ""), ",", ".", 1)
	case comma >= 0 && strings.Count(s, ",") == 1 && len(s)-comma != 4:
		s = strings.Replace(s, ",", ".", 1)
	case comma >= 0:
		s = strings.ReplaceAll(s, ",", "")
	}
	if strings.ContainsAny(s, "xXpP_nN") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f < 1e18 && f > -1e18
}

// percent reads "12.34%".
func percent(s string) (float64, bool) {
	s, ok := strings.CutSuffix(s, "%")
	if !ok {
		return 0, false
	}
	f, ok := number(s)
	return f / 100, ok && f >= 0 && f <= 100*1024
}

// whole reads a number without sign or fraction.
func whole(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && s[0] != '+'
}

// numbers reports whether all fields are numbers.
func numbers(fields []string) bool {
	return len(fields) > 0 && !slices.ContainsFunc(fields, func(f string) bool { _, ok := number(f); return !ok })
}

// pct writes a share of 0 to 1 with three figures.
func pct(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// lasts writes seconds.
func lasts(seconds float64) string {
	if seconds < 0 || seconds > 1e9 {
		return fmt.Sprintf("%g s", seconds)
	}
	if seconds >= 99.95 { // sums of many calls: three figures would not add up
		return fmt.Sprintf("%.1f s", seconds)
	}
	return finding.Duration(int64(math.Round(seconds * float64(time.Second))))
}

// count writes a number of things.
func count(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// perSecond writes a rate.
func perSecond(n, seconds float64) string {
	if rate := n / seconds; rate >= 100 {
		return fmt.Sprintf("%.0f/s", rate)
	}
	return fmt.Sprintf("%.3g/s", n/seconds)
}

// header reports whether a line has these words as its fields, one after another from the first on.
func header(text string, words ...string) bool {
	fields := strings.Fields(text)
	return len(fields) >= len(words) && slices.Equal(fields[:len(words)], words)
}

// targetOf is the process that the command above a part names, as -p 123 or --pid=123; 0: none.
func targetOf(p *attach.Part) int {
	fields := strings.Fields(strings.ReplaceAll(p.Command, "=", " "))
	for i, f := range fields {
		if i > 0 && (fields[i-1] == "-p" || fields[i-1] == "--pid" || fields[i-1] == "-fp" || fields[i-1] == "-P") {
			if pid, ok := whole(f); ok {
				return pid
			}
		}
	}
	return 0
}

// ask is the command that decides between causes, with the process filled in if it is known.
func ask(command string, pid int, why string) attach.Next {
	if pid > 0 {
		command = strings.ReplaceAll(command, "PID", strconv.Itoa(pid))
	}
	return attach.Next{Command: command, Why: why}
}

// record is the recording that shows what a tool cannot.
func record(pid int, why string) attach.Next {
	return ask("whystall diagnose --pid PID", pid, why)
}

// mapNames are the keys of a map, for sorting.
func mapNames[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
