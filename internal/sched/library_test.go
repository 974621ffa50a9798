package sched

import "testing"

// TestLibraryNames: names as they stand in the symbol tables of C++ and Rust programs, demangled.
func TestLibraryNames(t *testing.T) {
	for name, want := range map[string][2]bool{
		"<std::sys::sync::mutex::futex::Mutex>::lock_contended":      {true, false},
		"<std::sys::thread::unix::Thread>::new::thread_start":        {true, false},
		"core::ops::function::FnOnce::call_once{{vtable.shim}}":      {true, false},
		"std::condition_variable::wait":                              {true, false},
		"void std::__invoke_impl<void, Worker>":                      {true, false},
		"parking_lot::raw_mutex::RawMutex::lock_slow":                {false, true},
		"<parking_lot_core::thread_parker::imp::ThreadParker>::park": {false, true},
		"shopd::Ledger::charge":                                      {false, false},
		"<shopd::Ledger as core::ops::drop::Drop>::drop":             {false, false},
		"stdx::lock":          {false, false},
		"voidance::std::wait": {false, false},
		"":                    {false, false},
	} {
		if LanguageFunc(name) != want[0] || LockFunc(name) != want[1] {
			t.Errorf("%q: of a language %v, of a lock %v, want %v", name, LanguageFunc(name), LockFunc(name), want)
		}
	}
}
