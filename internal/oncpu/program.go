package oncpu

import (
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// program is what a user stack says.
type program struct {
	kind    account.WorkKind
	name    string
	site    account.Site
	leaf    bool   // only the innermost function is known
	threads bool   // a library makes or ends a thread
	call    string // what the C library's function that asked the kernel is called
}

// programOf says what a thread was at in the program, by its stack, the innermost first. Frames
// that were found by scanning may never have been called, so what follows the first of them is not
// asked.
func programOf(frames []kernel.Frame, made interpreters) program {
	for i := range frames {
		if frames[i].Inferred {
			frames = frames[:i]
			break
		}
	}
	if len(frames) == 0 {
		return program{kind: account.WorkUnknown}
	}
	var p program
	if n := len(frames); n > 1 && frames[0].Module == vdso && goRuntime(frames[1].Func) {
		// The runtime asks for the time, for its own ends or for somebody who wants to know.
		if p = goProgram(frames[1:], made); p.kind != account.WorkGoRuntime {
			return p
		}
	}
	if goRuntime(frames[0].Func) || goTypes(frames[0].Func) {
		p = goProgram(frames, made)
	} else {
		p = nativeProgram(frames, made)
	}
	p.leaf = len(frames) == 1
	return p
}

// vdso is the module of what the kernel lends to every program.
const vdso = "[vdso]"

// siteOf is the program's own function on a user stack: the innermost that is neither a library's
// nor Go's runtime or standard library. Where there is none it is the innermost that is neither of
// the system nor the runtime's.
func siteOf(frames []kernel.Frame) account.Site {
	var own account.Site
	for i := range frames {
		f := &frames[i]
		if f.Func == "" || library(f.Module) || goRuntime(f.Func) || goTypes(f.Func) ||
			sched.Plumbing(f.Func) || sched.ThreadRoot(f.Func) {
			continue
		}
		site := account.Site{Func: f.Func, File: f.Module}
		if !goStandard(f.Func) {
			return site
		}
		if own.Func == "" && !hasPrefix(f.Func, goPassing) {
			own = site
		}
	}
	return own
}

// goPassing are packages that only pass on what their caller wants.
var goPassing = []string{"syscall.", "internal/"}

// library reports whether a module is a shared library of the system, not one of the program's
// own.
func library(module string) bool {
	if sched.SystemModule(module) {
		return true
	}
	name := module[strings.LastIndexByte(module, '/')+1:]
	if !strings.HasSuffix(name, ".so") && !strings.Contains(name, ".so.") {
		return false
	}
	return hasPrefix(module, systemFolders)
}

var systemFolders = []string{"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/local/lib/",
	"/lib32/", "/usr/lib32/"}
