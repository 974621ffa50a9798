package sched

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// stackOf reads a stack of "function@module", the innermost first.
func stackOf(text string) (l []kernel.Frame) {
	for _, f := range strings.Split(text, ";") {
		name, module, _ := strings.Cut(f, "@")
		l = append(l, kernel.Frame{Func: name, Module: module})
	}
	return l
}

// TestInterpreterOf has stacks as they are: of stripped builds, of builds with symbols, and of
// waits in the same programs that are for something else.
func TestInterpreterOf(t *testing.T) {
	for _, c := range []struct {
		what, stack string
		want        Interpreter
	}{
		{"Debian's Python, stripped",
			"__futex_abstimed_wait_common@libc.so.6;pthread_cond_timedwait@libc.so.6;@/usr/bin/python3.11;PyEval_RestoreThread@/usr/bin/python3.11", CPython},
		{"take_gil in its caller",
			"__futex_abstimed_wait_common@libc.so.6;pthread_cond_timedwait@libc.so.6;PyEval_RestoreThread@/usr/lib/libpython3.12.so.1.0", CPython},
		{"embedded, with symbols",
			"__futex_abstimed_wait_common@libc.so.6;pthread_cond_timedwait@libc.so.6;take_gil@/usr/bin/uwsgi;PyEval_RestoreThread@/usr/bin/uwsgi", CPython},
		{"waits until another has it",
			"__futex_abstimed_wait_common@libc.so.6;pthread_cond_wait@libc.so.6;@/usr/bin/python3.11;_PyEval_EvalFrameDefault@/usr/bin/python3.11", CPython},
		{"threading.Lock", "__futex_abstimed_wait_common@libc.so.6;sem_wait@libc.so.6;PyThread_acquire_lock_timed@/usr/bin/python3.11", NoInterpreter},
		{"a lock without semaphores",
			"__futex_abstimed_wait_common@libc.so.6;pthread_cond_timedwait@libc.so.6;PyThread_acquire_lock_timed@/usr/bin/python3.11", NoInterpreter},
		{"an extension's condition",
			"__futex_abstimed_wait_common@libc.so.6;pthread_cond_wait@libc.so.6;blas_thread_server@/lib/libopenblas.so.0", NoInterpreter},
		{"the GIL's own mutex",
			"__lll_lock_wait@libc.so.6;__pthread_mutex_cond_lock@libc.so.6;pthread_cond_timedwait@libc.so.6;@/usr/bin/python3.11", NoInterpreter},
		{"Debian's Ruby, stripped",
			"__futex_abstimed_wait_common@libc.so.6;pthread_cond_wait@libc.so.6;rb_native_cond_wait@/usr/lib/libruby-3.1.so.3.1;@/usr/lib/libruby-3.1.so.3.1;rb_thread_io_blocking_region@/usr/lib/libruby-3.1.so.3.1", Ruby},
		{"its timed waiter", "__futex_abstimed_wait_common@libc.so.6;pthread_cond_timedwait@libc.so.6;@/usr/lib/libruby-3.1.so.3.1;@/usr/lib/libruby-3.1.so.3.1;rb_thread_io_blocking_region@/usr/lib/libruby-3.1.so.3.1", Ruby},
		{"after its time slice",
			"__futex_abstimed_wait_common@libc.so.6;pthread_cond_wait@libc.so.6;rb_native_cond_wait@libruby-3.1.so.3.1;@libruby-3.1.so.3.1;@libruby-3.1.so.3.1;rb_threadptr_execute_interrupts@libruby-3.1.so.3.1", Ruby},
		{"Ruby 3.3 with symbols",
			"__futex_abstimed_wait_common@libc.so.6;pthread_cond_wait@libc.so.6;rb_native_cond_wait@/opt/ruby/bin/ruby;thread_sched_wait_running_turn@/opt/ruby/bin/ruby", Ruby},
		{"Ruby's Queue#pop", "__futex_abstimed_wait_common@libc.so.6;pthread_cond_wait@libc.so.6;rb_native_cond_wait@libruby-3.1.so.3.1;@libruby-3.1.so.3.1;rb_ensure@libruby-3.1.so.3.1", NoInterpreter},
		{"a C++ program", "__futex_abstimed_wait_common@libc.so.6;pthread_cond_wait@libc.so.6;worker@/srv/app", NoInterpreter},
	} {
		if got, _ := interpreterOf(stackOf(c.stack)); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// TestShortStacks has stacks that were cut off: they say neither yes nor no.
func TestShortStacks(t *testing.T) {
	for stack, want := range map[string]bool{
		"__futex_abstimed_wait_common@libc.so.6": false,
		"__futex_abstimed_wait_common@libc.so.6;pthread_cond_wait@libc.so.6;rb_native_cond_wait@libruby-3.1.so.3.1": false,
		"__futex_abstimed_wait_common@libc.so.6;pthread_cond_wait@libc.so.6;worker@/srv/app":                        true,
	} {
		if _, known := interpreterOf(stackOf(stack)); known != want {
			t.Errorf("%s: known is %v", stack, known)
		}
	}
}

// TestJVMWait has stacks of OpenJDK 17.
func TestJVMWait(t *testing.T) {
	for stack, want := range map[string]JVMWait{
		"syscall@libc.so.6;LinuxWaitBarrier::wait@libjvm.so;SafepointSynchronize::block@libjvm.so":                                                                   JVMSafepoint,
		"pthread_cond_wait@libc.so.6;os::PlatformMonitor::wait@libjvm.so;Monitor::wait@libjvm.so;VMThread::wait_until_executed@libjvm.so":                            JVMSafepoint,
		"__lll_lock_wait@libc.so.6;pthread_mutex_lock@libc.so.6;Mutex::lock_contended@libjvm.so;Mutex::lock@libjvm.so;GenCollectedHeap::mem_allocate_work@libjvm.so": JVMSafepoint,
		"__lll_lock_wait@libc.so.6;pthread_mutex_lock@libc.so.6;Mutex::lock_contended@libjvm.so;Mutex::lock@libjvm.so;VM_GC_Operation::doit_prologue@libjvm.so":      JVMSafepoint,
		"__lll_lock_wait@libc.so.6;pthread_mutex_lock@libc.so.6;Mutex::lock_contended@libjvm.so;Mutex::lock@libjvm.so;SymbolTable::lookup@libjvm.so":                 JVMNone,
		"nanosleep@libc.so.6;os::naked_short_sleep@libjvm.so;SafepointSynchronize::synchronize_threads@libjvm.so;VMThread::run@libjvm.so":                            JVMReaching,
		"pthread_cond_wait@libc.so.6;os::PlatformEvent::park@libjvm.so;ObjectMonitor::EnterI@libjvm.so;ObjectMonitor::enter@libjvm.so":                               JVMMonitor,
		"pthread_cond_timedwait@libc.so.6;os::PlatformEvent::park@libjvm.so;ObjectMonitor::wait@libjvm.so;ObjectSynchronizer::wait@libjvm.so":                        JVMNone, // Object.wait
		"pthread_cond_timedwait@libc.so.6;os::PlatformMonitor::wait@libjvm.so;VMThread::wait_for_operation@libjvm.so;VMThread::run@libjvm.so":                        JVMNone, // nothing to do
		"pthread_cond_wait@libc.so.6;Parker::park@libjvm.so;Unsafe_Park@libjvm.so":                                                                                   JVMNone,
	} {
		if got := jvmWait(stackOf(stack)); got != want {
			t.Errorf("%s: %d, want %d", stack, got, want)
		}
	}
}
