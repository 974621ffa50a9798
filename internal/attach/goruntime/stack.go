package goruntime

import (
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// stack is one goroutine, or several with the same stack.
type stack struct {
	count   int
	id      int    // 0: not printed
	state   string // "chan receive", "semacquire"; "": not printed (debug=1)
	minutes int    // waited; 0: less than one, or not printed
	locked  bool   // to its thread
	frames  []frame
	created string // function that started it; "": not printed
	pc      string // first address of a profile's stack, whose own frames of the runtime are not named
	parked  bool   // pc is where the runtime parks goroutines
	counted bool   // of a profile with counts, which has no states
}

// frame is one call of a stack, innermost first.
type frame struct {
	fn    string   // "net/http.(*conn).serve"
	args  []uint64 // as far as they are printed as plain numbers; arguments in braces are left out
	at    string   // "server.go:1851"
	vague bool     // the compiler is not sure of the first argument: "0xc0001?"
}

// receiver is the type whose method a function is, "main.(*Store)"; "": it is no method of a
// pointer.
func receiver(fn string) string {
	if i := strings.Index(fn, ")."); i > 0 && strings.Contains(fn[:i], ".(*") {
		return fn[:i+1]
	}
	return ""
}

// library reports whether a function is below what a program's own code calls to wait.
func library(fn string) bool {
	for _, p := range []string{"runtime.", "sync.", "internal/", "syscall.", "runtime/",
		"os.(*File)", "os.(*fileStat)", "net.runtime_", "net.(*pollDesc)."} {
		if strings.HasPrefix(fn, p) {
			return true
		}
	}
	return false
}

// own is the first frame that is not a library's that merely waits; the first one if all are. Of a
// goroutine that panics it is the one that panicked first.
func (s *stack) own() frame {
	for _, f := range s.frames[s.panicked():] {
		if !library(f.fn) && !strings.HasPrefix(f.fn, "time.") {
			return f
		}
	}
	if len(s.frames) > 0 {
		return s.frames[0]
	}
	return frame{}
}

// whole reports whether a stack has its end: it says who started the goroutine, or ends where all
// start.
func (s *stack) whole() bool {
	if s.created != "" || len(s.frames) == 0 {
		return s.created != ""
	}
	end := s.frames[len(s.frames)-1].fn
	return end == "main.main" || end == "runtime.main" || strings.HasPrefix(end, "runtime.goexit")
}

// through is the first function below the innermost that is no library's for time and connections.
func (s *stack) through() string {
	for _, f := range s.frames[s.panicked():] {
		if !library(f.fn) && f.fn != "panic" && !strings.HasPrefix(f.fn, "time.") &&
			!strings.HasPrefix(f.fn, "net.") && !strings.HasPrefix(f.fn, "bufio.") && f.fn != s.own().fn {
			return f.fn
		}
	}
	return ""
}

// caller is " called by" and the first function of another package than that of the innermost; "":
// there is none.
func (s *stack) caller() string {
	of := packageOf(s.own().fn)
	for _, f := range s.frames {
		if !library(f.fn) && packageOf(f.fn) != of {
			return " called by " + f.fn
		}
	}
	return ""
}

// packageOf is the package of a function: "net/http" of "net/http.(*conn).serve".
func packageOf(fn string) string {
	slash := strings.LastIndexByte(fn, '/') + 1
	name, _, _ := strings.Cut(fn[slash:], ".")
	return fn[:slash] + name
}

// panicked is how many frames say that a goroutine panics; 0: it does not.
func (s *stack) panicked() int {
	for i := len(s.frames) - 1; i >= 0 && (s.state == "running" || s.state == ""); i-- {
		if fn := s.frames[i].fn; fn == "panic" || fn == "runtime.gopanic" {
			return (i + 1) % len(s.frames) // who panicked may be cut off
		}
	}
	return 0
}

// systemCall is the function of package syscall that a stack is in, "syscall.Fsync"; "": in none.
func (s *stack) systemCall() string {
	for _, f := range s.frames[:min(len(s.frames), 5)] {
		name, ok := strings.CutPrefix(f.fn, "syscall.")
		if !ok {
			continue
		}
		if name != "" && !strings.Contains(name, ".") && name[0] >= 'A' && name[0] <= 'Z' &&
			!strings.Contains(name, "Syscall") {
			return f.fn
		}
	}
	return ""
}

// has reports whether a frame's function starts with one of these.
func (s *stack) has(prefixes ...string) bool {
	for _, f := range s.frames {
		for _, p := range prefixes {
			if strings.HasPrefix(f.fn, p) {
				return true
			}
		}
	}
	return false
}

// parseHeader parses "goroutine 12 [semacquire, 5 minutes, locked to thread]:". Since Go 1.23 a
// crash prints "goroutine 12 gp=0xc000002380 m=0 mp=0x5c2 [running]:".
func parseHeader(line string) (s stack, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "goroutine ")
	d := digits(rest)
	if !ok || d == 0 || d > 18 {
		return s, false
	}
	s.id, _ = strconv.Atoi(rest[:d])
	open, closing := strings.IndexByte(rest, '['), strings.LastIndexByte(rest, ']')
	if open < d || closing < open ||
		strings.TrimLeft(rest[closing+1:],
			"{}:\"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._- ,") != "" ||
		!strings.Contains(rest[closing:], ":") {
		return s, false
	}
	if between := strings.TrimSpace(rest[d:open]); between != "" && !strings.HasPrefix(between, "gp=") {
		return s, false
	}
	s.count = 1
	for i, part := range strings.Split(rest[open+1:closing], ", ") {
		minutes, isMinutes := strings.CutSuffix(part, " minutes")
		switch {
		case i == 0:
			s.state = part
		case isMinutes:
			s.minutes, _ = whole(minutes)
		case part == "locked to thread":
			s.locked = true
		}
	}
	return s, s.state != ""
}

// countedHeader parses "48 goroutines [semacquire, 4 minutes]:", as tools print that join stacks
// which are alike. They have no number.
func countedHeader(line string) (s stack, ok bool) {
	d := digits(line)
	state, ok := strings.CutPrefix(line[d:], " goroutines [")
	if !ok || d == 0 || d > 6 {
		return s, false
	}
	s, ok = parseHeader("goroutine 0 [" + state)
	s.count, _ = strconv.Atoi(line[:d])
	return s, ok && s.count > 0
}

// parseCall parses "main.(*cache).get(0x41bf05?, {0x4b69d0, 0x1})", also "created by main.main in
// goroutine 1".
func parseCall(line string) (f frame, created, ok bool) {
	line = strings.TrimSpace(line)
	if rest, is := strings.CutPrefix(line, "created by "); is {
		rest, _, _ = strings.Cut(rest, " in goroutine ")
		return frame{fn: goName(rest)}, true, rest != "" && !strings.ContainsAny(rest, " \t")
	}
	if at := strings.LastIndexAny(line, " \t"); at > 0 { // somebody put the place behind the call
		if place, isPlace := parsePlace(line[at+1:]); isPlace {
			line, f.at = strings.TrimSpace(line[:at]), place
		}
	}
	if len(line) > 4096 {
		return f, false, false
	}
	if !strings.HasSuffix(line, ")") { // the end of a long line may be cut off, or stand in the next
		if at := strings.Index(line, "(0x"); at <= 0 || strings.Trim(line[at+1:], "0123456789abcdefx, ?.{}") != "" {
			return f, false, false
		}
		line += ")"
	}
	open := argsStart(line)
	if open <= 0 {
		return f, false, false
	}
	f.fn = goName(line[:open])
	if !strings.Contains(f.fn, ".") && f.fn != "panic" && f.fn != "main" ||
		strings.ContainsAny(f.fn, " \t\"'=<>;,") && !strings.Contains(f.fn, "[") {
		return f, false, false
	}
	args := line[open+1 : len(line)-1]
	if args != "" && args != "..." && !strings.Contains(args, "0x") &&
		!strings.Contains(args, "...") && !strings.Contains(args, "{") {
		return f, false, false
	}
	first, _, _ := strings.Cut(args, ",")
	f.vague = strings.HasSuffix(first, "?")
	for _, a := range strings.Split(args, ", ") {
		v, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(a, "0x"), "?"), 16, 64)
		if err != nil || !strings.HasPrefix(a, "0x") {
			f.args = append(f.args, 0)
			continue
		}
		f.args = append(f.args, v)
	}
	return f, false, true
}

// unstarred is a method's receiver as markdown leaves it: "(_Mutex).", "(Mutex).", "(\*Mutex).".
var unstarred = pattern.New(`\.\((?:_|\\\*|&#42;)?([A-Za-z]\w*(?:\[[^\]]*\])?)_?\)\.`)

// goName is a function's name without the folder that vendored its package, and with the star that
// markdown took from a method's receiver: Go prints parentheses around pointers only.
func goName(fn string) string {
	if at := strings.LastIndex(fn, "/vendor/"); at >= 0 {
		fn = fn[at+len("/vendor/"):]
	}
	if !strings.Contains(fn, ".(") || strings.Contains(fn, ".(*") {
		return fn
	}
	return unstarred.ReplaceAllString(fn, ".(*$1).")
}

// argsStart is the offset of the parenthesis that opens the arguments: the partner of the last one.
func argsStart(line string) int {
	depth := 0
	for i := len(line) - 1; i >= 0; i-- {
		switch line[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// parsePlace parses "	/usr/local/go/src/sync/mutex.go:46 +0x5c" to "mutex.go:46".
func parsePlace(line string) (string, bool) {
	line = strings.TrimSpace(line)
	line, _, _ = strings.Cut(line, "+0x") // a blank before it may be lost
	line, _, _ = strings.Cut(line, " fp=0x")
	line = strings.TrimSpace(strings.TrimSuffix(line, " +"))
	colon := strings.LastIndexByte(line, ':')
	if colon <= 0 || digits(line[colon+1:]) == 0 || digits(line[colon+1:]) != len(line)-colon-1 {
		return "", false
	}
	file := line[:colon]
	if !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".goc") &&
		!strings.HasSuffix(file, ".s") && !strings.HasSuffix(file, ".c") && file != "<autogenerated>" && file != "??" {
		return "", false
	}
	return line[strings.LastIndexAny(file, "/\\ \t")+1:], true
}
