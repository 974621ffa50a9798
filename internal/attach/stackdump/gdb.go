package stackdump

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// gdb reads stacks as gdb, pstack and gstack print them, with or without their headers.
var gdb = &attach.Kind{
	Name: "gdb backtrace",
	Hints: []string{"#", "Thread ", "[New ", "LWP", "Attaching to", "libthread_db", "[Inferior",
		"(gdb)", "Program terminated", "Program received", "Core was generated", "warning: core file"},
	Claim: claimGDB,
	Session: func(first, next string) bool {
		return looking.MatchString(next) && (looking.MatchString(first) || strings.HasPrefix(first, "thread apply"))
	},
	Yields: []string{"eu-stack", "crash bt", "gdb py-bt", "coredumpctl"},
	Read: func(p *attach.Part) attach.Reading {
		return readNative(p, "gdb backtrace", native)
	},
}

// euStack reads elfutils' eu-stack.
var euStack = &attach.Kind{
	Name:   "eu-stack",
	Hints:  []string{"TID ", "PID ", "#"},
	Claim:  claimEU,
	Yields: []string{"coredumpctl"},
	Read: func(p *attach.Part) attach.Reading {
		return readNative(p, "eu-stack", native)
	},
}

var (
	// A page that links numbers of tickets may have put a project's name before the mark, or a link
	// in its place. One of markdown has a backslash there, and some put a blank behind it.
	frameLine   = pattern.New(`^\s*(?:(?:\\|[A-Za-z][\w.-]{0,23}(?:/[\w.-]{1,24})?)?# ?|https?://[\w./-]{1,99}/(?:issues|pull)/)(\d+)\s+(?:(0x[0-9a-f]+)(?:\s+|$))?(?:in )?(?:- 1\s+)?(.*)$`)
	glued       = pattern.New(`(.)(#\d+ +(?:0x[0-9a-f]+ in )?[\w~:]+[^#]* \()`)
	headerLine  = pattern.New(`^\s*\*?\s*Thread (\d+)(?:\.\d+)? ?(?:\((?:Thread )?(0x[0-9a-f]+)?.*?(?:\(?(?:LWP|process|pid) (\d+)\)?)?(?: "([^"]*)")?.*\)?:?)?\s*$`)
	headerLWP   = pattern.New(`\((?:LWP|process|pid) (\d+)\)`)
	tidLine     = pattern.New(`^(?:TID|LWP) (\d+)( +"([^"]*)")?:?(?:\s+(?:-+|#|//|<-+|=>|\().*)?$`)
	pidLine     = pattern.New(`^PID (\d+) - (process|core)`)
	preamble    = pattern.New(`^(\[New (LWP|Thread|process)|\[Thread |\[Switching to|Using host libthread_db|\[Inferior|Attaching to|Reading symbols|\[Current thread|Core was generated|Program terminated|\(gdb\)|warning: |Loaded symbols|0x[0-9a-f]{8,} in |\$\d+ = |Detaching from|Missing separate debuginfo|Program received|---Type <return>|--Type <RET>|\(More stack frames|Backtrace stopped|Continuing|Current language:)`)
	inlineFrame = pattern.New(`^\S[\w~:<>,*& ]* \(.*\) (at|from) \S+|^0x[0-9a-f]+ in `)
	// advice is what gdb says of its own settings before the first stack.
	advice = pattern.New(`^(To enable execution|add-auto-load|line to your|To completely|set auto-load|For more information|"Auto-loading|info "|[0-9]+\s+\S)`)
	// beside is what scripts let gdb print beside stacks: libraries, registers, instructions, the
	// line of source that it stands at.
	beside = pattern.New(`^From +To +Syms Read|^0x[0-9a-f]{8,16} +0x[0-9a-f]{8,16} +(?:Yes|No)\b|^ {20,}No +\S+$|^\(\*\): Shared library|^[a-z][a-z0-9_]{1,10} {2,}(?:0x[0-9a-f]+|\{|-?\d)|^Dump of assembler|^End of assembler|^(?:=>| {2}) 0x[0-9a-f]+ <[+]\d+>:|^\d{1,6}\t`)
	// notice is a line of gdb's own between stacks: [Inferior 1 detached].
	notice = pattern.New(`^\[[A-Z][^\[\]]{2,160}\]$`)
)

// isFrame reports whether a line is a frame: an address, or a name with parentheses.
func isFrame(text string) bool {
	m := frameLine.FindStringSubmatch(text)
	if m == nil || m[2] == "" && m[3] == "" || strings.HasPrefix(m[3], "[") ||
		strings.Contains(m[3], ".php(") || strings.Contains(m[3], ".php:") {
		return false
	}
	if m[2] != "" {
		return true
	}
	return strings.Contains(m[3], "(") &&
		(strings.Contains(m[3], "=") || strings.Contains(m[3], "()") || strings.Contains(m[3], " at ") ||
			strings.Contains(m[3], " from ") || strings.HasSuffix(m[3], "(")) ||
		strings.HasPrefix(m[3], "<signal handler called>") || strings.HasSuffix(m[3], ",")
}

func isHeader(text string) bool {
	return headerLine.MatchString(text) && (strings.Contains(text, "(") || strings.HasSuffix(text, ":"))
}

func claimGDB(lines []paste.Line) int {
	n, frames, born := 0, 0, 0
	for i := 0; i < len(lines); i++ {
		text := lines[i].Text
		trimmed := strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(text, "[New ") && lines[i].Command == "":
			born++ // a line for each thread, before the first stack
			n = i + 1
		case lines[i].Command != "" && !strings.HasPrefix(lines[i].Command, "bt") && i > 0:
			return done(n, frames)
		case isFrame(text), switchedIn(text):
			frames++
			n = i + 1
		case isHeader(text), preamble.MatchString(text), inlineFrame.MatchString(text),
			lwpHeader(lines[i:]), frames > 0 &&
				(notice.MatchString(trimmed) || beside.MatchString(text) || sourceOf(text, lines[i-1].Text)):
			n = i + 1
		case trimmed == "":
			// What follows decides.
		case frames == 0 && n > 0 && i < 40 && advice.MatchString(trimmed):
		case frames > 0 && (continues(text, lines[i-1].Text) || between(lines, i)):
			n = i + 1
		default:
			return done(n, frames)
		}
		if frames == 0 && i-born > 400 {
			return 0
		}
	}
	if frames == 0 && born >= 100 { // the first stack may stand behind what is seen of the text
		return n
	}
	return done(n, frames)
}

// lwpHeader reports whether the first line is a thread's header as people shorten it, with a note
// of theirs behind it, and a frame below.
func lwpHeader(lines []paste.Line) bool {
	return len(lines) > 1 && tidLine.MatchString(strings.TrimSpace(lines[0].Text)) &&
		strings.HasPrefix(strings.TrimSpace(lines[0].Text), "LWP ") && isFrame(lines[1].Text)
}

func done(n, frames int) int {
	return attach.ClaimIf(frames > 0, n)
}

// continues reports whether a line goes on with a frame: arguments that were wrapped, its place in
// the source, or its local variables.
func continues(text, above string) bool {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "at ") || strings.HasPrefix(trimmed, "from ") ||
		strings.HasPrefix(trimmed, "No locals") ||
		strings.HasPrefix(trimmed, "No symbol table") || trimmed == "..." {
		return true
	}
	if strings.TrimSpace(above) == "" {
		return false
	}
	if text != trimmed && text != "" {
		return !tidLine.MatchString(trimmed) && !strings.HasPrefix(trimmed, "[<")
	}
	open := strings.Count(above, "(") > strings.Count(above, ")")
	return open && (strings.HasSuffix(above, ",") || strings.Contains(trimmed, ")"))
}

// between reports whether a line stands between a frame and a later one of the same stack: a mail
// or a chat has wrapped it.
func between(lines []paste.Line, at int) bool {
	above := at - 1
	for above > 0 && above > at-3 && !isFrame(lines[above].Text) {
		above--
	}
	m := frameLine.FindStringSubmatch(lines[above].Text)
	if m == nil || strings.TrimSpace(lines[at-1].Text) == "" ||
		len(lines[above].Text) < 50 && !strings.HasPrefix(lines[at].Text, "(") {
		return false
	}
	for _, l := range lines[at+1 : min(len(lines), at+4)] {
		if l.Command != "" {
			return false
		}
		if next := frameLine.FindStringSubmatch(l.Text); next != nil && isFrame(l.Text) {
			return atoi(next[1]) == atoi(m[1])+1
		}
		if strings.TrimSpace(l.Text) == "" || isHeader(l.Text) {
			break
		}
	}
	return wrappedTail.MatchString(lines[at].Text)
}

// wrappedTail is the end of a frame that was wrapped: a place in a source, or arguments.
var wrappedTail = pattern.New(`[\w/+-]\.(?:c|cc|cpp|cxx|h|hh|hpp|S|rs|C):\d+$|=0x[0-9a-f]+|<optimized out>|@entry=|\) (?:at|from) /`)

func claimEU(lines []paste.Line) int {
	if !tidLine.MatchString(lines[0].Text) && !pidLine.MatchString(lines[0].Text) && !euFrame(lines[0].Text) {
		return 0
	}
	frames := 0
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		if euFrame(text) {
			frames++
			return true
		}
		return tidLine.MatchString(text) || pidLine.MatchString(text) ||
			strings.HasPrefix(text, "eu-stack: ") || frames > 0 && strings.HasPrefix(text, "    ")
	})
	return done(n, frames)
}

// euFrame is a frame without "in" and without parentheses of arguments after the name.
func euFrame(text string) bool {
	m := frameLine.FindStringSubmatch(text)
	return m != nil && m[2] != "" && len(m[2]) == 18 && !strings.Contains(text, " in ") &&
		!strings.HasSuffix(text, " ()") &&
		!strings.Contains(text, " from ") && !strings.Contains(text, " at ")
}

// readNative reads the threads of a part.
func readNative(p *attach.Part, tool string, rules []rule) attach.Reading {
	d := parseNative(p.Lines)
	d.tool = tool
	for _, t := range d.threads {
		place(t, rules)
	}
	return d.read()
}

// shortestAddress is the length of an address of 32 bits as gdb prints it: 0x and eight digits.
const shortestAddress = 10

// parseNative reads threads and frames. A stack that starts again at #0 is the next thread.
func parseNative(lines []paste.Line) *dump {
	d := &dump{owners: map[string]int{}}
	var t *thread
	last, expect := "", -1
	d.notes(lines)
	headed := false
	start := func(id int, name string) {
		t = &thread{id: id, name: name, n: 1, headed: headed}
		d.threads = append(d.threads, t)
		expect = -1
	}
	for _, l := range joined(lines) {
		if m := pidLine.FindStringSubmatch(l); m != nil {
			d.pid = atoi(m[1])
			continue
		}
		if m := switched.FindStringSubmatch(l); m != nil {
			if t = d.again(atoi(m[2])); t == nil {
				headed = true
				start(atoi(m[2]), "")
				headed, t.num = false, atoi(m[1])
			}
			expect = len(t.frames) - 1
			continue
		}
		if m := tidLine.FindStringSubmatch(l); m != nil {
			headed = true
			start(atoi(m[1]), m[3])
			headed = false
			continue
		}
		if m := headerLine.FindStringSubmatch(l); m != nil && isHeader(l) {
			id := atoi(m[3])
			if n := headerLWP.FindStringSubmatch(l); n != nil && id == 0 {
				id = atoi(n[1])
			}
			headed = true
			start(cmp.Or(id, atoi(m[1])), m[4])
			if headed = false; id > 0 {
				t.num = atoi(m[1])
			}
			continue
		}
		m := frameLine.FindStringSubmatch(l)
		if m == nil || !isFrame(l) && !euFrame(l) {
			continue
		}
		if m[3] == "" && len(m[2]) < shortestAddress {
			continue // the text ends inside of it
		}
		num := atoi(m[1])
		if num > 0 && num <= expect && d.shows(num, m) || t != nil && t.headed && t.num > 0 &&
			num == 0 && len(t.frames) == 1 && t.shows(0, m) {
			continue // a person had it printed again
		}
		if t == nil || num <= expect && num == 0 || num < expect && len(t.frames) > 0 {
			start(len(d.threads)+1, "")
		}
		if l == last && num == expect {
			continue
		}
		if expect, last = num, l; len(t.frames) == 0 {
			t.cropped = num > 0
		}
		if len(t.frames) < 400 {
			f := parseFrame(m[3])
			f.at = m[2]
			if f.fn == "" || f.fn == "??" {
				f.fn = cmp.Or(m[2], "??") // where it returns to tells places apart as well
			}
			t.frames = append(t.frames, f)
		}
	}
	d.dropEmpty()
	d.dropShown()
	d.dropReprinted()
	for _, t := range d.threads {
		t.dropGuessed()
		d.catches(t)
	}
	return d
}

func (d *dump) dropEmpty() {
	keep := d.threads[:0]
	for _, t := range d.threads {
		if len(t.frames) > 0 {
			keep = append(keep, t)
		} else if t.num > 0 {
			d.heads = append(d.heads, t.num)
		}
	}
	d.threads = keep
	for _, t := range d.threads {
		if t.id > 0 && d.pid == 0 && len(d.threads) > 1 {
			d.name = t.name
		}
	}
}

// sourceBehind is a frame with its place in the source, as eu-stack -s prints it in the next line.
var sourceBehind = pattern.New(`^([^ ].*[^ ]) ([\w./+-]+\.[A-Za-z]{1,4}:\d+(?::\d+)?)$`)

// parseFrame takes apart "fn (args) at file:line" or "fn (args) from library".
func parseFrame(text string) frame {
	var f frame
	if i := strings.LastIndex(text, " at "); i > 0 {
		text, f.file = text[:i], text[i+4:]
	} else if i := strings.LastIndex(text, " from "); i > 0 {
		text, f.file = text[:i], text[i+6:]
	} else if i := strings.LastIndex(text, " - /"); i > 0 {
		text, f.file = text[:i], text[i+3:]
	}
	if strings.HasPrefix(text, "- /") {
		text, f.file = "", text[2:]
	}
	if m := sourceBehind.FindStringSubmatch(text); m != nil && f.file == "" {
		text, f.file = m[1], m[2]
	}
	f.fn = strings.TrimSpace(text)
	if i := strings.LastIndex(f.fn, " ("); i > 0 {
		for j := strings.Index(f.fn, " ("); j >= 0; j = nextOpen(f.fn, j) {
			rest := f.fn[j+2:]
			if rest == ")" || strings.Contains(rest, "=") || strings.HasPrefix(rest, ")") || j == i {
				f.fn, f.args = f.fn[:j], strings.TrimSuffix(rest, ")")
				break
			}
		}
	}
	return f
}

func nextOpen(s string, after int) int {
	if i := strings.Index(s[after+2:], " ("); i >= 0 {
		return after + 2 + i
	}
	return -1
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
