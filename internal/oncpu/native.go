package oncpu

import (
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// nativeProgram says what a stack of compiled code was at, that of Go programs outside of the
// runtime included.
func nativeProgram(frames []kernel.Frame) program {
	in := &frames[0]
	name := bareLibrary(in.Func)
	p := program{kind: account.WorkOwn, name: in.Func, site: siteOf(frames), threads: makesThread(frames)}
	if library(in.Module) {
		p.call = name
	}
	switch {
	case spinCalls[name]:
		p.kind, p.name = account.WorkSpin, name
	case p.threads:
		p.kind, p.name = account.WorkThreads, name
	case copies(name):
		p.kind, p.name = account.WorkMemmove, copyName(name)
	case allocates(in.Func, name):
		p.kind, p.name = account.WorkAlloc, allocName(frames)
	case interprets(frames):
		p.kind = account.WorkInterprets
	case library(in.Module):
		p.kind, p.name = account.WorkLibrary, name
		if name == "" {
			p.name = in.Module[strings.LastIndexByte(in.Module, '/')+1:]
		}
	case in.Func == "":
		p.name = "unnamed code"
		if in.Module != "" {
			p.name = "unnamed code of " + in.Module[strings.LastIndexByte(in.Module, '/')+1:]
		}
	}
	return p
}

// bareLibrary is the name of a C library's function as programs call it: "memcpy" of
// "__GI_memcpy@@GLIBC_2.14".
func bareLibrary(name string) string {
	name, _, _ = strings.Cut(name, "@")
	for strings.HasPrefix(name, "_") {
		name = name[1:]
	}
	name = strings.TrimPrefix(name, "GI_")
	return strings.TrimLeft(strings.TrimPrefix(name, "libc_"), "_")
}

// spinCalls are functions that do nothing but look again for what is not there yet.
var spinCalls = words("pthread_spin_lock sched_yield pthread_yield")

// makesThread reports whether the functions of the program's side make or end a thread. These are
// calls into a library. So only a library's frames inside the program's own innermost function say
// anything. The innermost four are enough.
func makesThread(frames []kernel.Frame) bool {
	for i := range frames[:min(len(frames), 4)] {
		f := &frames[i]
		if !library(f.Module) {
			return false
		}
		name := bareLibrary(f.Func)
		if strings.HasPrefix(name, "pthread_create") || strings.HasPrefix(name, "nptl_") || name == "allocate_stack" || name == "advise_stack_range" {
			return true
		}
	}
	return false
}

// copies reports whether a function copies or fills memory. C libraries have one of each for each
// kind of processor: memcpy_avx512_unaligned_erms.
func copies(name string) bool { return copyName(name) != "" }

func copyName(name string) string {
	for _, base := range [...]string{"memcpy", "memmove", "memset", "mempcpy", "wmemcpy", "wmemset"} {
		if rest, ok := strings.CutPrefix(name, base); ok && (rest == "" || rest[0] == '_' || rest == "@plt" || rest == "_chk") {
			return base
		}
	}
	return ""
}

// allocCalls are functions of allocators by their names in the C library and in such as replace
// it.
var allocCalls = words(`malloc free calloc realloc reallocarray memalign aligned_alloc posix_memalign cfree int_malloc int_free int_realloc int_memalign int_free_chunk
	int_free_merge_chunk int_free_create_chunk malloc_consolidate unlink_chunk sysmalloc systrim malloc_trim tcache_get tcache_put tcache_thread_shutdown arena_get2
	heap_trim heap_grow heap_shrink new_heap sbrk brk alloc_perturb free_perturb mtrim grow_heap sysmalloc_mmap`)

// allocates reports whether a function is an allocator's: by its bare name, or by the prefix of a
// library that replaces the C library's.
func allocates(full, name string) bool {
	return allocCalls[name] || hasPrefix(full, allocPrefixes) || strings.HasPrefix(full, "operator new") || strings.HasPrefix(full, "operator delete")
}

var allocPrefixes = []string{"je_", "_rjem_", "tc_malloc", "tc_free", "tc_new", "tc_delete", "tcmalloc::", "mi_", "_mi_", "alloc::alloc::", "__rust_alloc", "__rust_dealloc",
	"__rust_realloc", "__rdl_alloc", "__rdl_dealloc", "arena_malloc", "arena_dalloc", "arena_slab_"}

// allocName is the outermost function of the allocator: what the program calls.
func allocName(frames []kernel.Frame) string {
	name := bareLibrary(frames[0].Func)
	for i := range frames {
		bare := bareLibrary(frames[i].Func)
		if !allocates(frames[i].Func, bare) {
			break
		}
		name = bare
	}
	return name
}

// interprets reports whether the innermost function is an interpreter's: code that it has made
// itself, or a function of the module in which its evaluation loop lies, called by that loop.
func interprets(frames []kernel.Frame) bool {
	in := &frames[0]
	if madeCode(in.Func) {
		return true
	}
	for i := range frames {
		if frames[i].Module != in.Module {
			return false // a module of its own: computing for the interpreted program
		}
		if evalLoop(frames[i].Func) {
			return true
		}
	}
	return false
}

// evalLoop reports whether a function is the evaluation loop of an interpreter.
func evalLoop(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	return evalLoops[name] || strings.HasPrefix(name, "Builtins_") || strings.HasPrefix(name, "_PyEval_Eval") || strings.HasPrefix(name, "PyEval_Eval")
}

var evalLoops = words(`rb_vm_exec vm_exec vm_exec_core vm_exec_loop vm_call_iseq_setup vm_sendish Perl_runops_standard execute_ex luaV_execute lj_BC_CALL lj_vm_call
	JS_CallInternal process_main beam_jit_call_bif duk_js_execute_bytecode`)

// madeCode reports whether a name is of code that a virtual machine has made and named for
// profilers, as in /tmp/perf-PID.map.
func madeCode(name string) bool {
	return hasPrefix(name, []string{"LazyCompile:", "Function:", "JS:", "Eval:", "Script:", "BytecodeHandler:", "Builtin:", "py::", "Interpreter"})
}
