package oncpu

import (
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// nativeProgram says what a stack of compiled code was at, that of Go programs outside of the
// runtime included.
func nativeProgram(frames []kernel.Frame, made interpreters) program {
	in := &frames[0]
	name := bareLibrary(in.Func)
	p := program{kind: account.WorkOwn, name: in.Func, site: siteOf(frames), threads: makesThread(frames)}
	if library(in.Module) && name != "syscall" {
		p.call = name
	}
	switch {
	case spinCalls[name]:
		p.kind, p.name = account.WorkSpin, name
	case in.Waits:
		p.kind, p.name = account.WorkSpin, account.SpinLoop
	case p.threads:
		p.kind, p.name = account.WorkThreads, name
	case copies(name):
		p.kind, p.name = account.WorkMemmove, copyName(name)
	case allocates(in.Func, name) && !made.modules[in.Module]:
		p.kind, p.name = account.WorkAlloc, allocName(frames)
	case made.interprets(in):
		p.kind = account.WorkInterprets
		switch {
		case in.Func == "" && anonymous(in.Module):
			p.name = account.MadeCode
		case in.Func == "":
			p.name = unnamed(in.Module)
		}
	case library(in.Module):
		p.kind, p.name = account.WorkLibrary, name
		if name == "" {
			p.name = in.Module[strings.LastIndexByte(in.Module, '/')+1:]
		}
	case in.Func == "":
		p.name = unnamed(in.Module)
	}
	return p
}

// unnamed is the name of code that no symbol covers.
func unnamed(module string) string {
	if anonymous(module) {
		return "unnamed code"
	}
	return "unnamed code of " + module[strings.LastIndexByte(module, '/')+1:]
}

// anonymous reports whether a module is memory without a file.
func anonymous(module string) bool { return module == "" || module[0] == '[' && module != vdso }

// bareLibrary is the name of a C library's function as programs call it: "memcpy" of
// "__GI_memcpy@@GLIBC_2.14" and of "__memcpy_avx512_unaligned_erms".
func bareLibrary(name string) string {
	name, _, _ = strings.Cut(name, "@")
	for strings.HasPrefix(name, "_") {
		name = name[1:]
	}
	name = strings.TrimPrefix(name, "GI_")
	name = strings.TrimLeft(strings.TrimPrefix(name, "libc_"), "_")
	for _, processor := range [...]string{"_avx", "_evex", "_sse"} {
		if i := strings.Index(name, processor); i > 0 {
			name = name[:i]
		}
	}
	return name
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
		if strings.HasPrefix(name, "pthread_create") || strings.HasPrefix(name, "nptl_") ||
			name == "allocate_stack" || name == "advise_stack_range" {
			return true
		}
	}
	return false
}

// copies reports whether a function copies or fills memory. C libraries have one of each for each
// kind of processor.
func copies(name string) bool { return copyName(name) != "" }

func copyName(name string) string {
	for _, base := range [...]string{"memcpy", "memmove", "memset", "mempcpy", "wmemcpy", "wmemset"} {
		if rest, ok := strings.CutPrefix(name, base); ok &&
			(rest == "" || rest[0] == '_' || rest == "@plt" || rest == "_chk") {
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
	return allocCalls[name] || hasPrefix(full, allocPrefixes) ||
		strings.HasPrefix(full, "operator new") || strings.HasPrefix(full, "operator delete")
}

var allocPrefixes = []string{"je_", "_rjem_", "tc_malloc", "tc_free", "tc_new", "tc_delete",
	"tcmalloc::", "mi_", "_mi_", "alloc::alloc::", "__rust_alloc", "__rust_dealloc",
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
