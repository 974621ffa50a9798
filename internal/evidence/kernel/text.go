package kernel

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The text twin of a stream has one line for each item. Definitions stand in any order, and what is
// zero is left out:
//
//	header source=bpf pid=10 cpus=0,1 pertask alltasks recorded=run-queues missing="mmap-lock: why"
//	thread tid=11 pid=10 ns=5 comm=app cgroup=/a target since=0
//	stack id=1 futex_wait;do_futex@kernel;main.lock@app+0x123;?inferred.guess
//	stack id=2 !main.spin@app+0x45;main.main
//	switch t=100 cpu=0 tid=11 other=12 flags=target,preempted kernel=1 user=2 args=1,203,4096
//
// A function that starts with ! is in a loop that waits. In missing="...", the sights stand before
// the first colon, separated by commas, and the reason after it. Numbers may be hexadecimal. Blank
// lines and lines that start with # are skipped.

var kindNames = [kinds]string{
	Switch: "switch", WaitStack: "waitstack", Waking: "waking", Wakeup: "wakeup", Clone: "clone",
	Exit: "exit", Exec: "exec",
	FutexWake: "futexwake", FutexWait: "futexwait", Unthrottle: "unthrottle", Signal: "signal", Delivered: "delivered",
	Sample: "sample", Fault: "fault", Reclaim: "reclaim", Compaction: "compaction",
	MmapLock: "mmaplock", TLBFlush: "tlbflush",
	KernelLock: "kernellock", NUMAMove: "numamove", SocketReady: "socketready", File: "file", TimerDue: "timerdue",
	Disk: "disk", Held: "held", Lost: "lost", Detail: "detail", Turn: "turn",
}

// String is the kind's word in the text twin.
func (k Kind) String() string {
	if k < kinds && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind%d", uint8(k))
}

var flagNames = []string{"preempted", "throttled", "groupthrottled", "target", "othertarget",
	"interrupt", "leaving", "new", "migrate", "slack", "major", "huge", "memcg", "write", "reads"}

// Text is a stream parsed from its text twin.
type Text struct {
	header  Header
	recs    []Record
	threads []Thread
	stacks  map[uint32][]Frame
}

// Header of the stream.
func (t *Text) Header() Header { return t.header }

// Each calls f with all records at once.
func (t *Text) Each(f func([]Record) error) error {
	if len(t.recs) == 0 {
		return nil
	}
	return f(append([]Record(nil), t.recs...))
}

// Threads lists the named threads.
func (t *Text) Threads() []Thread { return t.threads }

// Stack returns a stack's frames.
func (t *Text) Stack(id uint32) []Frame { return t.stacks[id] }

// Ended is "": a text is whole.
func (t *Text) Ended() string { return "" }

// ParseText reads a text twin, and sorts its records by time.
func ParseText(text string) (*Text, error) {
	t := &Text{stacks: map[uint32][]Frame{}, header: Header{Source: "bpf", AllTasks: true, PerTask: true}}
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := t.line(line); err != nil {
			return nil, fmt.Errorf("read kernel stream: line %d: %w", n+1, err)
		}
	}
	t.recs, _ = sortRecords(t.recs, nil)
	return t, nil
}

// fields of a line.
type fields struct {
	m    map[string]string
	rest []string // without "="
	err  error
}

func split(line string) *fields {
	f := &fields{m: map[string]string{}}
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " \t") {
		word, rest, _ := strings.Cut(line, " ")
		key, value, ok := strings.Cut(word, "=")
		if ok && strings.HasPrefix(value, `"`) {
			quoted, err := strconv.QuotedPrefix(line[len(key)+1:])
			if err != nil {
				f.err = fmt.Errorf("%s: %w", key, err)
				return f
			}
			rest = line[len(key)+1+len(quoted):]
			value, _ = strconv.Unquote(quoted)
		}
		if ok {
			f.m[key] = value
		} else {
			f.rest = append(f.rest, word)
		}
		line = rest
	}
	return f
}

func (f *fields) number(key string, bits int) uint64 {
	s, ok := f.m[key]
	delete(f.m, key)
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(s, 0, bits)
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s=%q: want a number", key, s)
	}
	return n
}

func (f *fields) word(key string) string {
	s := f.m[key]
	delete(f.m, key)
	return s
}

func (f *fields) has(word string) bool {
	for i, w := range f.rest {
		if w == word {
			f.rest = append(f.rest[:i], f.rest[i+1:]...)
			return true
		}
	}
	return false
}

// end refuses fields that no kind of line has.
func (f *fields) end() error {
	if f.err != nil {
		return f.err
	}
	for k := range f.m {
		return fmt.Errorf("field %q is not known", k)
	}
	if len(f.rest) > 0 {
		return fmt.Errorf("word %q is not known", f.rest[0])
	}
	return nil
}

func (t *Text) line(line string) error {
	name, rest, _ := strings.Cut(line, " ")
	if name == "stack" {
		return t.stack(rest)
	}
	f := split(rest)
	switch name {
	case "header":
		h := &t.header
		h.PerTask, h.AllTasks = f.has("pertask"), f.has("alltasks")
		h.Source, h.Kernel, h.PID = f.word("source"), f.word("kernel"), uint32(f.number("pid", 32))
		h.StopNote, h.SafeNote, h.NoteFrom = f.number("stopnote", 64), f.number("safenote", 64), f.word("notefrom")
		var err error
		if h.Recorded, err = sightsOf(f.word("recorded")); err != nil {
			return err
		}
		if m := f.word("missing"); m != "" {
			for part := range strings.SplitSeq(m, "; ") {
				what, why, _ := strings.Cut(part, ": ")
				m := Missing{Why: why}
				if m.What, err = sightsOf(what); err != nil {
					return err
				}
				h.Missing = append(h.Missing, m)
			}
		}
		for s := range strings.SplitSeq(f.word("cpus"), ",") {
			if c, err := strconv.Atoi(s); err == nil {
				h.CPUs = append(h.CPUs, c)
			}
		}
		return f.end()
	case "thread":
		th := Thread{Target: f.has("target"), Kernel: f.has("kernel"),
			Since: int64(f.number("since", 63)), TID: uint32(f.number("tid", 32)), PID: uint32(f.number("pid", 32)),
			NSTID: uint32(f.number("ns", 32)), Comm: f.word("comm"), Cgroup: f.word("cgroup")}
		t.threads = append(t.threads, th)
		return f.end()
	}
	for k, n := range kindNames {
		if n == "" || n != name {
			continue
		}
		r := Record{Kind: Kind(k), Time: int64(f.number("t", 63)), CPU: uint16(f.number("cpu", 16)),
			TID:   uint32(f.number("tid", 32)),
			Other: uint32(f.number("other", 32)), Kernel: uint32(f.number("kernel", 32)),
			User: uint32(f.number("user", 32))}
		if s := f.word("flags"); s != "" {
			for w := range strings.SplitSeq(s, ",") {
				bit, ok := flag(w)
				if !ok {
					return fmt.Errorf("flag %q is not known", w)
				}
				r.Flags |= bit
			}
		}
		if s := f.word("args"); s != "" {
			for i, w := range strings.Split(s, ",") {
				if i >= len(r.Arg) {
					return fmt.Errorf("args=%s: at most %d", s, len(r.Arg))
				}
				v, err := strconv.ParseUint(w, 0, 64)
				if err != nil {
					return fmt.Errorf("args=%s: want numbers", s)
				}
				r.Arg[i] = v
			}
		}
		t.recs = append(t.recs, r)
		return f.end()
	}
	return fmt.Errorf("%q is no record", name)
}

// sightsOf parses sights that commas separate.
func sightsOf(list string) (l []Sight, err error) {
	if list == "" {
		return nil, nil
	}
	for w := range strings.SplitSeq(list, ",") {
		if !slices.Contains(sights, Sight(w)) {
			return nil, fmt.Errorf("sight %q is not known", w)
		}
		l = append(l, Sight(w))
	}
	return l, nil
}

func joinSights(l []Sight) string {
	words := make([]string, len(l))
	for i, s := range l {
		words[i] = string(s)
	}
	return strings.Join(words, ",")
}

func flag(word string) (Flags, bool) {
	for i, n := range flagNames {
		if n == word {
			return 1 << i, true
		}
	}
	return 0, false
}

func (t *Text) stack(s string) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
	n, err := strconv.ParseUint(strings.TrimPrefix(word, "id="), 0, 32)
	if err != nil || !strings.HasPrefix(word, "id=") {
		return fmt.Errorf("stack %q: want id=NUMBER", word)
	}
	var frames []Frame
	for part := range strings.SplitSeq(rest, ";") {
		var f Frame
		f.Func, f.Waits = strings.CutPrefix(strings.TrimSpace(part), "!")
		f.Func, f.Inferred = strings.CutPrefix(f.Func, "?")
		if fn, where, ok := strings.Cut(f.Func, "@"); ok {
			f.Func = fn
			module, off, _ := strings.Cut(where, "+0x")
			f.Module = module
			f.Offset, _ = strconv.ParseUint(off, 16, 64)
		}
		frames = append(frames, f)
	}
	t.stacks[uint32(n)] = frames[:min(len(frames), maxDepth)]
	return nil
}

// WriteText writes a stream as its text twin.
func WriteText(out io.Writer, s Source) error {
	w := bufio.NewWriter(out)
	h := s.Header()
	cpus := make([]string, len(h.CPUs))
	for i, c := range h.CPUs {
		cpus[i] = strconv.Itoa(c)
	}
	fmt.Fprintf(w, "header source=%s kernel=%s pid=%d cpus=%s", h.Source, h.Kernel, h.PID, strings.Join(cpus, ","))
	optional(w, h.PerTask, " pertask")
	optional(w, h.AllTasks, " alltasks")
	optional(w, h.StopNote != 0, " stopnote=%#x", h.StopNote)
	optional(w, h.SafeNote != 0, " safenote=%#x", h.SafeNote)
	optional(w, h.NoteFrom != "", " notefrom=%q", h.NoteFrom)
	optional(w, len(h.Recorded) > 0, " recorded=%s", joinSights(h.Recorded))
	var missing []string
	for _, m := range h.Missing {
		missing = append(missing, joinSights(m.What)+": "+m.Why)
	}
	optional(w, len(missing) > 0, " missing=%q", strings.Join(missing, "; "))
	w.WriteByte('\n')
	seen := map[uint32]bool{}
	err := s.Each(func(l []Record) error {
		for i := range l {
			r := &l[i]
			for _, id := range []uint32{r.Kernel, r.User} {
				seen[id] = true
			}
			fmt.Fprintf(w, "%v t=%d", r.Kind, r.Time)
			optional(w, r.CPU != 0, " cpu=%d", r.CPU)
			optional(w, r.TID != 0, " tid=%d", r.TID)
			optional(w, r.Other != 0, " other=%d", r.Other)
			if r.Flags != 0 {
				sep := " flags="
				for i, n := range flagNames {
					if r.Flags&(1<<i) != 0 {
						w.WriteString(sep + n)
						sep = ","
					}
				}
			}
			optional(w, r.Kernel != 0, " kernel=%d", r.Kernel)
			optional(w, r.User != 0, " user=%d", r.User)
			if r.Arg != [3]uint64{} {
				fmt.Fprintf(w, " args=%d,%d,%d", r.Arg[0], r.Arg[1], r.Arg[2])
			}
			w.WriteByte('\n')
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range s.Threads() {
		fmt.Fprintf(w, "thread tid=%d pid=%d comm=%q", t.TID, t.PID, t.Comm)
		optional(w, t.NSTID != 0, " ns=%d", t.NSTID)
		optional(w, t.Cgroup != "", " cgroup=%q", t.Cgroup)
		optional(w, t.Target, " target")
		optional(w, t.Kernel, " kernel")
		optional(w, t.Since != 0, " since=%d", max(t.Since, 0))
		w.WriteByte('\n')
	}
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		frames := s.Stack(id)
		if len(frames) == 0 {
			continue
		}
		fmt.Fprintf(w, "stack id=%d ", id)
		for i, f := range frames {
			optional(w, i > 0, ";")
			optional(w, f.Waits, "!")
			optional(w, f.Inferred, "?")
			w.WriteString(strings.Map(plainName, f.Func))
			optional(w, f.Module != "", "@%s+%#x", strings.Map(plainName, f.Module), f.Offset)
		}
		w.WriteByte('\n')
	}
	return w.Flush()
}

func optional(w io.Writer, ok bool, format string, args ...any) {
	if ok {
		fmt.Fprintf(w, format, args...)
	}
}

// plainName replaces in names the characters that separate frames.
func plainName(r rune) rune {
	if r == ';' || r == '@' || r < ' ' {
		return '_'
	}
	return r
}
