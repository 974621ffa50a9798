package oncpu

import (
	"math"
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// interpreters is what samples show of interpreters in a process.
type interpreters struct {
	// modules have an evaluation loop. All of their code works for what is interpreted: own code
	// there is no function of the module.
	modules map[string]bool
	makes   bool // one of them makes machine code at run time
	// parts remembers which parts of Go's runtime functions are of.
	parts map[string]goSet
}

// interpreters looks for evaluation loops on all stacks that samples met. Stacks that were found
// by scanning count too: that a module has such a function is sure.
func (w *Works) interpreters() interpreters {
	in := interpreters{modules: map[string]bool{}, parts: map[string]goSet{}}
	seen := map[uint32]bool{}
	w.k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		if !seen[e.User] {
			seen[e.User] = true
			in.look(w.k.Stack(e.User))
		}
		return true
	}, kernel.Sample)
	return in
}

func (x *interpreters) look(frames []kernel.Frame) {
	for i := range frames {
		f := &frames[i]
		if anonymous(f.Module) || sched.SystemModule(f.Module) || x.modules[f.Module] {
			continue
		}
		makes := makesCode(f)
		if makes || evalLoop(f.Func) {
			x.modules[f.Module] = true
			x.makes = x.makes || makes
		}
	}
}

// interprets reports whether a function is an interpreter's, or code that one has made.
func (x *interpreters) interprets(f *kernel.Frame) bool {
	return x.modules[f.Module] || madeCode(f.Func) || f.Func == "" && x.makes && anonymous(f.Module)
}

// evalLoop reports whether a function is the evaluation loop of an interpreter.
func evalLoop(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	return evalLoops[name] || strings.HasPrefix(name, "_PyEval_Eval") || strings.HasPrefix(name, "PyEval_Eval")
}

var evalLoops = words(`rb_vm_exec vm_exec vm_exec_core vm_exec_loop Perl_runops_standard execute_ex luaV_execute lj_BC_CALL lj_vm_call
	JS_CallInternal process_main duk_js_execute_bytecode`)

// makesCode reports whether a function is of a virtual machine that makes machine code: the JVM,
// V8, BEAM, .NET.
func makesCode(f *kernel.Frame) bool {
	name := f.Module[strings.LastIndexByte(f.Module, '/')+1:]
	return name == "libjvm.so" || name == "libcoreclr.so" || strings.HasPrefix(name, "libv8") ||
		strings.HasPrefix(f.Func, "Builtins_") || strings.HasPrefix(f.Func, "v8::internal::") ||
		strings.HasPrefix(f.Func, "beam_jit_")
}

// madeCode reports whether a name is of code that a virtual machine has made and named for
// profilers, as in /tmp/perf-PID.map.
func madeCode(name string) bool { return hasPrefix(name, madePrefixes) }

var madePrefixes = []string{"LazyCompile:", "Function:", "JS:", "Eval:", "Script:",
	"BytecodeHandler:", "Builtin:", "py::"}
