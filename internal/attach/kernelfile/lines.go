package kernelfile

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// maxBlank is how many blank lines in a row may stand inside of one part.
const maxBlank = 2

// run counts the lines from the first one on which the function accepts. Single blank lines between
// accepted ones are in; a prompt ends the run.
func run(lines []paste.Line, is func(text string) bool) int {
	n := 0
	for i, line := range lines {
		if line.Command != "" {
			break
		}
		text := strings.TrimSpace(line.Text)
		if text == "" {
			if i-n >= maxBlank {
				break
			}
			continue
		}
		if !is(text) {
			break
		}
		n = i + 1
	}
	return n
}

// repeated makes a claim of one that knows a single sample. It claims several samples, each after
// the time at which it was taken, as "date; cat FILE; sleep 10; date; cat FILE" prints them.
func repeated(one func([]paste.Line) int) func([]paste.Line) int {
	return func(lines []paste.Line) int {
		n := 0
		for n < len(lines) {
			at := n
			for at < len(lines) && at <= n+maxBlank && lines[at].Command == "" &&
				strings.TrimSpace(lines[at].Text) == "" {
				at++
			}
			for at < len(lines) && at <= n+maxBlank+2 && lines[at].Command == "" &&
				(isTime(lines[at].Text) || n > 0 && isRule(lines[at].Text)) {
				at++
			}
			if at >= len(lines) || n > 0 && at == n {
				break
			}
			more := one(lines[at:])
			if more == 0 {
				break
			}
			n = at + more
		}
		return n
	}
}

// sample is one reading of a file: its lines, and when it was taken.
type sample struct {
	at    time.Time // zero: not known
	after float64   // seconds after the one before, as a command says that slept; 0: not known
	other bool      // nothing says that they are of one place: only a rule parts them, or the command names several
	lines []string
}

// samples divides a part where next says that a line starts another sample, or where a time stands.
func samples(p *attach.Part, next func(sofar []string, line string) bool) []sample {
	var out []sample
	at, _ := parseTime(p.Title)
	fresh, ruled := true, false
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if text == "" {
			if !l.Time.IsZero() { // a time alone, which was taken for a logger's
				at, fresh = l.Time, true
			}
			continue
		}
		if t, ok := parseTime(text); ok {
			at, fresh = t, true
			continue
		}
		if isRule(text) {
			ruled = ruled || !fresh
			if !fresh {
				at, fresh = time.Time{}, true
			}
			continue
		}
		if fresh || next != nil && next(out[len(out)-1].lines, text) {
			if !fresh {
				at = time.Time{}
			}
			if at.IsZero() {
				at = l.Time
			}
			out = append(out, sample{at: at})
			fresh = false
		}
		last := &out[len(out)-1]
		last.lines = append(last.lines, text)
	}
	slept := sleeps(p, len(out))
	for i, s := range slept {
		out[i].after = s
	}
	other := severalPlaces(p.Command) || ruled && slept == nil &&
		!(len(out) > 1 && seconds(out[0], out[len(out)-1]) > 0)
	for i := range out {
		out[i].other = other
	}
	return out
}

// isRule reports whether a line is one that scripts put between readings: "---".
func isRule(text string) bool {
	text = strings.TrimSpace(text)
	return len(text) >= 3 && len(text) <= 120 && strings.Trim(text, "-=*#_~") == ""
}

// severalPlaces reports whether a command prints files of one name from several folders.
func severalPlaces(command string) bool {
	seen := map[string]string{}
	for _, w := range strings.Fields(command) {
		if !strings.HasPrefix(w, "/") {
			continue
		}
		w = strings.Trim(w, ";&")
		base := path.Base(w)
		if first, ok := seen[base]; ok && first != w || strings.ContainsAny(path.Dir(w), "*?{[") {
			return true
		}
		seen[base] = w
	}
	return false
}

// seconds is how much time lies between two samples; 0: not known.
func seconds(a, b sample) float64 {
	if a.at.IsZero() || b.at.IsZero() || !b.at.After(a.at) {
		return 0
	}
	return b.at.Sub(a.at).Seconds()
}

// span is how much time lies between the first sample and the last; 0: not known.
func span(all []sample) (between float64) {
	last := len(all) - 1
	if s := seconds(all[0], all[last]); s > 0 {
		return s
	}
	for _, s := range all[1:] {
		if s.after == 0 {
			return 0
		}
		between += s.after
	}
	return between
}

// sleeps is how long the part's command slept before each of n samples: "cat F; sleep 10; cat F",
// or a loop. What it slept before the first one does not count. Nil: it does not say.
func sleeps(p *attach.Part, n int) []float64 {
	parts := strings.FieldsFunc(p.Command, func(r rune) bool { return r == ';' || r == '&' })
	var slept []float64
	loop := false
	for i, part := range parts {
		first, _, _ := strings.Cut(strings.TrimSpace(part), " ")
		loop = loop || first == "while" || first == "for" || first == "until"
		if v := attach.Slept(part); v > 0 && i > 0 {
			slept = append(slept, v)
		}
	}
	switch every := p.Every; {
	case n < 2:
	case len(slept) == n-1:
		return append([]float64{0}, slept...)
	case loop && len(slept) == 1:
		every = slept[0]
		fallthrough
	case len(slept) == 0 && every > 0:
		return append([]float64{0}, slices.Repeat([]float64{every}, n-1)...)
	}
	return nil
}

// timeForms are how date and people write when a sample was taken.
var timeForms = []string{
	time.UnixDate, "Mon Jan _2 15:04:05 2006", "Mon Jan _2 15:04:05 -07 2006",
	"Mon _2 Jan 15:04:05 MST 2006", "Mon _2 Jan 2006 15:04:05 MST",
	"Mon Jan _2 03:04:05 PM MST 2006", "Mon 02 Jan 2006 03:04:05 PM MST", time.RFC3339Nano,
	"2006-01-02T15:04:05-0700", "2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05", "2006/01/02 15:04:05", time.TimeOnly,
}

func isTime(text string) bool {
	_, ok := parseTime(text)
	return ok
}

// epoch is seconds since 1970 of this age, with up to nine digits behind the point.
var epoch = pattern.New(`^(1\d{9})(?:\.(\d{1,9}))?$`)

// parseTime reads a line that is a time and nothing else, also as "--- 12:00:05 ---".
func parseTime(text string) (time.Time, bool) {
	text = strings.Trim(text, " \t#=-*[]")
	if rest, ok := strings.CutPrefix(text, "timestamp: "); ok { // as collectors of such files write
		if m := epoch.FindStringSubmatch(rest); m != nil {
			ns, _ := strconv.ParseInt((m[2] + "000000000")[:9], 10, 64)
			return time.Unix(int64(float(m[1])), ns).UTC(), true
		}
		text = rest
	}
	if len(text) < 8 || len(text) > longestTime || strings.Count(text, ":") < 2 && !strings.Contains(text, "T") {
		return time.Time{}, false
	}
	if c := text[0]; (c < '0' || c > '9') && strings.IndexByte("MTWFS", c) < 0 { // a year, an hour or a day
		return time.Time{}, false
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// starting spares a claim most lines of a long log: it is asked about those that start with one of
// these characters, a dash between two being a range, and are no longer than most. Lines as short
// as a time alone are always asked about.
func starting(chars string, most int, claim func([]paste.Line) int) func([]paste.Line) int {
	var set [256]bool
	for i := 0; i < len(chars); i++ {
		if i+2 < len(chars) && chars[i+1] == '-' {
			for c := chars[i]; c <= chars[i+2]; c++ {
				set[c] = true
			}
			i += 2
			continue
		}
		set[chars[i]] = true
	}
	return func(lines []paste.Line) int {
		text := strings.TrimLeft(lines[0].Text, " \t")
		if text == "" || len(text) > most || len(text) > longestTime && !set[text[0]] {
			return 0
		}
		return claim(lines)
	}
}

// longestTime bounds lines that may be a time alone.
const longestTime = 40
