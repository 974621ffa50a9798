package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// readList reads what -list prints: the lines of some functions.
func (p *profile) readList(lines []paste.Line) attach.Reading {
	r := attach.Reading{Title: "pprof -list", State: attach.Context,
		Means: "it shows which lines of the source used the profile's quantity", Not: "what requests waited for"}
	var compiles []listed
	r.Figures, compiles = listFigures(lines)
	if len(r.Figures) == 0 {
		r.State, r.Means = attach.CannotTell, "the lines of the function are cut off: nothing follows"
		return r
	}
	p.readListed(&r, lines)
	if len(compiles) > 0 && p.kind != profGoroutine {
		top := compiles[0]
		r.Means = fmt.Sprintf("line %s takes %s of its function, %s, and compiles a regular expression each time it runs: compiled once, outside of the function, it costs that once", top.number, percent(min(1, top.v/top.all)), top.sum)
	}
	if p.kind == profGoroutine {
		r.Glance, r.State = true, attach.CannotTell
		r.Means = "it shows at which lines of the source goroutines are, in one moment"
	}
	for i, line := range lines {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line.Text), "ROUTINE ")
		if !ok || i+1 >= len(lines) || p.kind != profOther && p.kind != profGoroutine {
			continue
		}
		sums := lines[i+1].Text
		if fileBelow(lines, i+1) && i+2 < len(lines) {
			sums = lines[i+2].Text
		}
		n, all := parked(sums)
		if fn := goName(firstWord(strings.TrimLeft(rest, "= "))); n > 0 && poolFunction(fn) {
			line := fmt.Sprintf("%.0f in %s, which waits for a free connection of the pool%s", n, fn, ofAll(all))
			r.Figures = append([]string{line}, r.Figures...)
			r.Glance, r.State = true, attach.CannotTell
			r.Means = "goroutines wait for a connection of the pool, all of which are in use; or so often it was waited for, where the profile counts waits"
			r.Signs = []attach.Sign{{Cause: "pool-exhaustion", Grade: attach.Candidate, Proof: []string{line}}}
			r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=2'", Why: "says what those do that have the connections"}}
			return r
		}
	}
	return r
}

// address is what a line of -disasm has in the place of a source line's number.
var address = pattern.New(`^[0-9a-f]{5,16}:$`)

// readListed says of which quantity the lines are, where the head says of which profile they are.
func (p *profile) readListed(r *attach.Reading, lines []paste.Line) {
	for _, line := range lines {
		if f := strings.Fields(line.Text); len(f) > 3 && address.MatchString(f[2]) {
			r.Title, r.Means = "pprof -disasm", "it shows which instructions used the profile's quantity"
			break
		}
	}
	kind := p.kind
	if _, unit, ok := amount(listedSum(lines)); ok && unit == "B" && kind == profOther {
		kind = profHeap
	}
	switch kind {
	case profHeap, profAllocs:
		r.Means, r.Not = "it shows which lines of the source allocated the memory", "anything about latency"
	case profMutex, profBlock, profDelay:
		r.State = attach.CannotTell
		r.Means = "it adds up waits by line: in a profile of mutexes, how long others waited until the line unlocked; in one of blocking, how long the line waited"
		r.Not = "how much requests lose now: such a sum is mostly since the start, and so no rate"
		r.Next = []attach.Next{{Command: "go tool pprof -top 'http://HOST:PORT/debug/pprof/mutex?seconds=10'", Why: "gives a rate; or whystall diagnose --pid PID"}}
	}
}

// listedSum is what the first listed function has with what it calls, as printed: "1.25GB".
func listedSum(lines []paste.Line) string {
	for _, line := range lines {
		if f := strings.Fields(line.Text); len(f) > 3 && f[2] == "(flat," {
			return f[1]
		}
	}
	return ""
}

// parked is how many a function has with what it calls, by "0  20 (flat, cum) 0.005% of Total", and
// of how many. It computes nothing itself. 0: these are no numbers of goroutines or of waits.
func parked(sums string) (n, all float64) {
	f := strings.Fields(sums)
	if len(f) < 5 || f[0] != "0" || f[2] != "(flat," {
		return 0, 0
	}
	n, unit, ok := amount(f[1])
	if !ok || unit != "" || n != float64(int64(n)) {
		return 0, 0
	}
	share, _ := number(strings.TrimSuffix(f[4], "%"))
	return n, 100 * ratio(n, share)
}

// ofAll says of how many some are, by their share.
func ofAll(all float64) string {
	if all <= 0 {
		return ""
	}
	short, _ := number(fmt.Sprintf("%.2g", all)) // the share has two digits
	return fmt.Sprintf("; the profile has about %.0f in all", short)
}

// listHead is the fields of what a listed function has, "300ms 470ms (flat, cum) 15% of Total";
// nil: it is none such. A page of the browser's has "Total:" in front.
func listHead(t string) []string {
	f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(t), "Total: "))
	if len(f) < 5 || f[2] != "(flat," || f[3] != "cum)" {
		return nil
	}
	return f
}

// listFields is the fields of a line of a listing. A browser's page has the line's number first.
func listFields(s string) []string {
	f := strings.Fields(s)
	if len(f) < 3 || digits(f[0]) != len(f[0]) || strings.Contains(f[2], ":") || strings.HasPrefix(f[2], "(flat") {
		return f
	}
	for _, v := range f[1:3] {
		if _, unit, ok := amount(v); v != "." && (!ok || unit == "") {
			return f
		}
	}
	return append([]string{f[1], f[2], f[0] + ":"}, f[3:]...)
}

// listLine knows the lines of -list: flat, cum, number, source.
func listLine(s string) bool {
	f := listFields(s)
	if len(f) < 3 {
		return false
	}
	for _, v := range f[:2] {
		if _, _, ok := amount(v); !ok && v != "." {
			return false
		}
	}
	return strings.Contains(f[2], ":") && digits(f[2]) > 0 || address.MatchString(f[2]) ||
		strings.HasPrefix(f[2], "(flat")
}

// fileBelow knows the name of a listed function's file that was broken off its line.
func fileBelow(lines []paste.Line, i int) bool {
	return i > 0 && i+1 < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[i-1].Text),
		"ROUTINE ===") && strings.Contains(lines[i+1].Text, "(flat, cum)")
}

// listFigures says of each function what it has, and which of its lines has most. It returns those
// that compile regular expressions besides.
func listFigures(lines []paste.Line) (out []string, compiles []listed) {
	total := ""
	for i, line := range lines {
		if t, is := strings.CutPrefix(strings.TrimSpace(line.Text), "Total: "); is && len(t) < 30 &&
			listHead(line.Text) == nil {
			total = " (" + t + ")"
		}
		rest, ok := strings.CutPrefix(strings.TrimSpace(line.Text), "ROUTINE ")
		if head := listHead(line.Text); !ok && head != nil && !routineAbove(lines[:i]) && len(out) < 6 {
			out = append(out, "a function whose name is cut off: "+strings.Join(head, " ")+total)
			if top, ok := topLine(lines[i+1:], strings.Join(head, " ")); ok {
				out = append(out, top.text())
			}
		}
		if !ok || i+1 >= len(lines) || len(out) >= 6 {
			continue
		}
		sums := lines[i+1].Text
		if fileBelow(lines, i+1) {
			sums = lines[i+2].Text
		}
		out = append(out, strings.TrimLeft(rest, "= ")+": "+strings.Join(strings.Fields(sums), " ")+total)
		if top, ok := topLine(lines[i+2:], sums); ok {
			out = append(out, top.text())
			if top.compiles() && !once(goName(firstWord(strings.TrimLeft(rest, "= ")))) {
				compiles = append(compiles, top)
			}
		}
	}
	return out, compiles
}

// routineAbove reports whether the name of a function ends the lines, in one line or two.
func routineAbove(lines []paste.Line) bool {
	for _, line := range lines[max(0, len(lines)-2):] {
		if strings.HasPrefix(strings.TrimSpace(line.Text), "ROUTINE ") {
			return true
		}
	}
	return false
}

// listed is the source line of one function that has most, with what it calls.
type listed struct {
	number, sum, source string
	v, shown, all       float64 // the line's, those of all lines that are shown, the function's
}

func (l listed) text() string {
	top := fmt.Sprintf("line %s, %s: %s", l.number, l.sum, l.source)
	if l.all > 0 && l.shown < l.all/2 {
		return "most of it is in lines that are cut off; of those shown: " + top
	}
	if l.v < l.all/2 {
		return "the line with most of it: " + top
	}
	return "most of it: " + top
}

// compileCall is a call that compiles a regular expression, not a method of something so named.
var compileCall = pattern.New(`(?:^|[^\w.])regexp\.(?:MustCompile|Compile)(?:POSIX)?\(`)

// compiles reports whether the line compiles a regular expression, and is most of its function.
func (l listed) compiles() bool {
	code, _, _ := strings.Cut(l.source, "//")
	return l.v >= l.all/2 && l.all > 0 && len(code) < 1000 && compileCall.MatchString(code)
}

// once reports whether a function runs once in a program's life.
func once(fn string) bool {
	return strings.HasSuffix(fn, ".init") || strings.Contains(fn, ".init.") || fn == "main.main"
}

// topLine is the source line of one function that has most.
func topLine(lines []paste.Line, sums string) (top listed, ok bool) {
	for _, line := range lines {
		text := strings.TrimSpace(line.Text)
		if strings.HasPrefix(text, "ROUTINE ") {
			break
		}
		f := listFields(text)
		if len(f) < 4 || !listLine(text) || strings.HasPrefix(f[2], "(flat") {
			continue
		}
		v, _, isAmount := amount(f[1])
		if !isAmount {
			continue
		}
		top.shown += v
		if v > top.v {
			number, source, _ := strings.Cut(strings.Join(f[2:], " "), ":")
			top.v, top.number, top.sum, top.source, ok = v, number, f[1], strings.TrimSpace(source), true
		}
	}
	if f := strings.Fields(sums); len(f) >= 2 {
		top.all, _, _ = amount(f[1])
	}
	return top, ok
}
