package stackdump

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// frame is one function of a stack.
type frame struct {
	fn   string // as the dump has it, without its arguments
	args string // what stood in its parentheses, as gdb prints it
	file string // source or library; "": not named
	at   string // where it returns to; "": not printed
	path string // of Python: the file with its folders, as the dump has it
}

// thread is one thread of a dump, or several with the same stack where the dump counts them.
type thread struct {
	name   string
	id     int     // TID, where the dump has it; otherwise the number that the dump gave it
	num    int     // the debugger's own number of it; 0: id is that, or it has none
	n      int     // how many threads have this stack
	frames []frame // innermost first

	// What the dump itself says of locks: JVMs do.
	wants string   // the lock that it waits for; "": it does not say
	what  string   // the type of that lock
	holds []string // locks that it holds
	owner string   // the name of the thread that has the lock which it wants; "": it does not say

	headed  bool    // it has a line of its own above its frames
	guessed bool    // frames were left out that gdb had guessed
	cropped bool    // its innermost frames are left out: the first one has another number than 0
	joins   bool    // it waits for another thread of the process to end
	old     bool    // of Python 2
	wanted  bool    // it holds a lock that others wait for
	pipe    bool    // it reads what another process writes
	state   string  // a word of the dump for what it does: RUNNABLE, active+gil; "": none
	number  int     // the JVM's own number of it
	virtual bool    // it runs on another thread, its carrier
	carries int     // the number of the virtual thread that runs on it; 0: none
	cpu     float64 // seconds of CPU since its start; 0 with age: the dump does not say
	age     float64 // seconds since its start; 0: the dump does not say
	wait            // what it does, from all of this
}

// dump is all threads of one part.
type dump struct {
	tool    string
	pid     int
	name    string // of the program
	threads []*thread
	bare    int            // threads without any frame, which are not among threads
	heads   []int          // the debugger's numbers of threads of which the header alone is there
	owners  map[string]int // lock -> TID, where the dump prints an owner
	signal  string         // that ended the program, as gdb says; "": none
	shown   *frame         // of a core file: where the thread that got the signal was; nil: not said
	caught  *thread        // whose stack has the program's own handler of a fault; nil: none has
	born    int            // threads that gdb announces; 0: it does not
	doubt   bool           // gdb warns that the core file may be of another program or library
	cycle   bool           // the dump itself found a deadlock
	counted bool           // several processes or samples are added up
	holders bool           // it prints who holds which lock: a lock without a holder is half a queue
	// interpreted: the frames are an interpreter's, and readPython decides on health.
	interpreted bool
	whole       string // the command that dumps all threads; "": gdb
}

// total is how many threads it has.
func (d *dump) total() int { return d.count(func(*thread) bool { return true }) }

// count is how many threads fit.
func (d *dump) count(fits func(*thread) bool) (n int) {
	for _, t := range d.threads {
		if fits(t) {
			n += t.n
		}
	}
	return n
}

// dropTorn drops the first thread where the text starts inside of its stack: what it does stood in
// the frames above.
func (d *dump) dropTorn() {
	if len(d.threads) < 2 {
		return
	}
	if t := d.threads[0]; t.cropped && !t.headed && t.doing == running && len(t.holds) == 0 && t.state == "" {
		d.threads = d.threads[1:]
	}
}

// short is a function's name as it is compared: no arguments, template parameters, versions of
// symbols or leading underscores, which differ from one build of a library to the next.
func short(fn string) string {
	if i := strings.Index(fn, "@"); i > 0 {
		fn = fn[:i]
	}
	if i := strings.Index(fn, "("); i > 0 && !strings.HasPrefix(fn[i:], "(anonymous") &&
		!strings.HasPrefix(fn[i:], "()") {
		fn = fn[:i]
	}
	fn = strings.TrimSuffix(fn, "()")
	var b strings.Builder
	depth := 0
	for i := range len(fn) {
		switch c := fn[i]; {
		case c == '<' && i > 0 && !strings.HasSuffix(fn[:i], "operator") && fn[i-1] != '.': // Foo.<init>
			depth++
		case c == '>' && depth > 0: // of a template
			depth--
		case depth == 0:
			b.WriteByte(c)
		}
	}
	fn = b.String()
	if strings.Contains(fn, ".plt_call.") {
		return "??" // a stub of ppc64, by the name of whichever symbol stands before it
	}
	fn = strings.TrimPrefix(strings.TrimLeft(fn, "_."), "GI_") // ppc64 has a dot before each name
	return strings.TrimLeft(strings.TrimSpace(fn), "_")
}

// base is the last word of a qualified name.
func base(fn string) string {
	if i := strings.LastIndex(fn, "::"); i >= 0 {
		fn = fn[i+2:]
	}
	if i := strings.LastIndexAny(fn, ".!"); i >= 0 && i+1 < len(fn) {
		fn = fn[i+1:]
	}
	return fn
}

// like reports whether a function is what a pattern says: a whole name, a last word, or with a star
// at its end a start of either. Patterns with a star in front are found anywhere; a star inside of
// one stands for anything.
func like(fn, pattern string) bool {
	if p, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.Contains(fn, strings.TrimSuffix(p, "*"))
	}
	if i := strings.IndexByte(pattern, '*'); i >= 0 && i < len(pattern)-1 {
		return likeParts(fn, pattern[:i], pattern[i+1:])
	}
	if p, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(fn, p) || strings.HasPrefix(base(fn), p) || strings.Contains(fn, "::"+p)
	}
	return fn == pattern || base(fn) == pattern || strings.HasSuffix(fn, "::"+pattern) ||
		strings.HasSuffix(fn, "."+pattern)
}

// likeParts reports whether a name, or what follows one of its marks between words, starts with the
// first part and has the others behind it, in order.
func likeParts(fn, first, rest string) bool {
	left, ok := strings.CutPrefix(fn, first)
	if !ok {
		_, left, ok = strings.Cut(fn, "::"+first)
	}
	if !ok {
		_, left, ok = strings.Cut(fn, "."+first)
	}
	for ok {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(left, part)
		}
		i := strings.Index(left, part)
		if i < 0 {
			return false
		}
		left, rest = left[i+len(part):], more
	}
	return false
}

// deep reports whether a thread stands within work: its stack has more functions of the program's
// own than a thread's loop that waits for work has.
func (t *thread) deep() bool {
	own := 0
	for _, f := range t.frames {
		if named(f) && !javasOwn(f.fn) && !pythonsOwn(f) {
			own++
		}
	}
	return own > ownLoopDepth
}

// ownLoopDepth is how many functions of the program's own a loop that waits for work has at most.
const ownLoopDepth = 3

// Facts of a dump that rules over several parts ask for.
const (
	FactLockWaiters attach.FactName = "/dump/lock/waiters:threads"      // Of: the lock's address or symbol
	FactSiteWaiters attach.FactName = "/dump/lock/site/waiters:threads" // Of: the function that wants the lock
	FactDumpThreads attach.FactName = "/dump/threads:threads"
	FactDumpIdle    attach.FactName = "/dump/idle:threads"
	FactDumpRemote  attach.FactName = "/dump/remote:threads"
)
