package stackdump

import (
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// A person who types into gdb looks at one thread after the other: thread 5, bt, f 3.
var (
	looking  = pattern.New(`^(?:bt|backtrace|where|f|frame|up|down|(?:t|thread) \d+)\b`)
	switched = pattern.New(`^\[Switching to thread (\d+)(?:\.\d+)? \(Thread 0x[0-9a-f]+ \((?:LWP|process) (\d+)\)\)\]`)
)

// again is a thread that gdb switches to once more; nil: it has not been seen. What is printed of
// it now does not count where its stack is there already.
func (d *dump) again(id int) *thread {
	for _, t := range d.threads {
		if t.id == id && id > 0 {
			if len(t.frames) > 1 {
				return &thread{n: 1, frames: t.frames[:len(t.frames):len(t.frames)]}
			}
			return t
		}
	}
	return nil
}

// shows reports whether a thread has this frame at its place.
func (d *dump) shows(num int, m []string) bool {
	return slices.ContainsFunc(d.threads, func(t *thread) bool { return t.shows(num, m) })
}

func (t *thread) shows(num int, m []string) bool {
	return num < len(t.frames) && t.frames[num].at == m[2] && t.frames[num].fn == parseFrame(m[3]).fn
}

// switchedIn reports whether a line says that gdb switched to a thread, and starts its frame.
func switchedIn(text string) bool {
	m := switched.FindString(text)
	return m != "" && isFrame(text[len(m):])
}

// sourceOf reports whether a line is the line of source at which the frame above it stands.
func sourceOf(text, above string) bool {
	at := strings.LastIndexByte(above, ':')
	num, rest, ok := strings.Cut(text, " ")
	return ok && at > 0 && isFrame(above) && num == strings.TrimSpace(above[at+1:]) &&
		atoi(num) > 0 && strings.HasPrefix(rest, " ")
}

// joined puts together the lines of wrapped frames, and takes apart frames that stand in one line.
func joined(lines []paste.Line) (out []string) {
	for _, l := range lines {
		text := l.Text
		trimmed := strings.TrimSpace(text)
		switch m := switched.FindStringSubmatch(trimmed); {
		case m != nil:
			out = append(out, trimmed[:len(m[0])])
			if rest := strings.TrimSpace(trimmed[len(m[0]):]); rest != "" {
				out = append(out, rest)
			}
		case trimmed == "", preamble.MatchString(text), notice.MatchString(trimmed), beside.MatchString(text):
		case isFrame(text), euFrame(text), isHeader(text), tidLine.MatchString(trimmed), pidLine.MatchString(trimmed):
			out = append(out, split(trimmed)...)
		case len(out) > 0 && isFrame(out[len(out)-1]) && len(out[len(out)-1]) < 4000 && !strings.Contains(text, " = "):
			if text == trimmed && !strings.HasSuffix(out[len(out)-1], " in") {
				out[len(out)-1] += trimmed // wrapped inside a word, as a mail does
			} else {
				out[len(out)-1] += " " + trimmed
			}
		}
	}
	return out
}

// split takes apart "...631#11 row_ins (": a line break was lost before the frame.
func split(text string) []string {
	m := frameLine.FindStringSubmatch(text)
	if m == nil {
		return []string{text}
	}
	next := "#" + strconv.Itoa(atoi(m[1])+1) + " "
	if i := strings.Index(text, next); i > 0 && glued.MatchString(text[i-1:]) {
		return append([]string{text[:i]}, split(text[i:])...)
	}
	return []string{text}
}
