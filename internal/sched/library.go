package sched

import "strings"

// LanguageFunc reports whether a demangled name is of C++'s or Rust's own library. Such functions,
// between the kernel and the program's own code, only pass on what their caller wants. Rust writes
// the type of a method in angle brackets; C++ writes the type of a template's result in front.
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

// LockFunc reports whether a demangled name is of a library that makes locks, conditions or queues
// for programs and is linked into them. What matters is the function that calls it.
func LockFunc(name string) bool {
	name = strings.TrimLeft(name, "<&")
	for _, space := range [...]string{"parking_lot::", "parking_lot_core::", "lock_api::",
		"crossbeam", "rayon_core::", "mio::", "absl::", "boost::"} {
		if strings.HasPrefix(name, space) {
			return true
		}
	}
	return false
}

// ThreadRoot reports whether a function is what starts a thread, outside of all of its own code.
func ThreadRoot(name string) bool {
	switch name {
	case "start_thread", "clone", "clone3", "__clone", "__clone3", "__GI___clone3",
		"__clone_internal", "_start", "__libc_start_main",
		"__libc_start_call_main", "__libc_start_main_impl":
		return true
	}
	return strings.HasPrefix(name, "__libc_start_")
}
