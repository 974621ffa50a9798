package sched

import "strings"

// LanguageFunc tells functions of C++'s and Rust's own libraries by their demangled names: between the kernel and the program's own code they
// only pass on what their caller wants. Rust's methods stand in angle brackets, C++'s templates behind their result's type.
func LanguageFunc(name string) bool {
	name = strings.TrimLeft(name, "<&")
	for _, result := range [...]string{"void ", "bool ", "std::cv_status "} {
		name = strings.TrimPrefix(name, result)
	}
	for _, space := range [...]string{"std::", "core::", "alloc::", "__rust_", "__gnu_cxx::", "__gthread_"} {
		if strings.HasPrefix(name, space) {
			return true
		}
	}
	return false
}

// LockFunc tells functions of libraries that make locks, conditions and queues for programs, where those are linked in: what is interesting is who
// calls them.
func LockFunc(name string) bool {
	name = strings.TrimLeft(name, "<&")
	for _, space := range [...]string{"parking_lot::", "parking_lot_core::", "lock_api::", "crossbeam", "rayon_core::", "mio::", "absl::", "boost::"} {
		if strings.HasPrefix(name, space) {
			return true
		}
	}
	return false
}

// ThreadRoot knows what stands above a thread's own code.
func ThreadRoot(name string) bool {
	switch name {
	case "start_thread", "clone", "clone3", "__clone", "__clone3", "__GI___clone3", "__clone_internal", "_start", "__libc_start_main",
		"__libc_start_call_main", "__libc_start_main_impl":
		return true
	}
	return strings.HasPrefix(name, "__libc_start_")
}
