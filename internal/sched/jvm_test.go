package sched

import (
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Locks of a Java virtual machine, by stacks as HotSpot of Java 17 has them.
func TestJVMWaitsForRoom(t *testing.T) {
	frames := func(names ...string) (l []kernel.Frame) {
		for _, n := range names {
			l = append(l, kernel.Frame{Func: n})
		}
		return l
	}
	for _, c := range []struct {
		name  string
		stack []kernel.Frame
		want  JVMWait
	}{
		{"a safepoint", frames("syscall", "LinuxWaitBarrier::wait", "SafepointSynchronize::block", "SafepointMechanism::process"), JVMSafepoint},
		{"the heap's lock", frames("__lll_lock_wait", "pthread_mutex_lock", "Mutex::lock_contended", "Mutex::lock", "GenCollectedHeap::mem_allocate_work", "MemAllocator::allocate"), JVMSafepoint},
		{"the heap's lock, to ask for a collection", frames("__lll_lock_wait", "pthread_mutex_lock", "Mutex::lock_contended", "Mutex::lock", "VM_GC_Operation::doit_prologue", "VMThread::execute"), JVMSafepoint},
		{"the collection", frames("pthread_cond_wait", "os::PlatformMonitor::wait", "Monitor::wait", "VMThread::wait_until_executed", "VMThread::execute"), JVMSafepoint},
		{"a monitor", frames("pthread_cond_wait", "ObjectMonitor::enter"), JVMMonitor},
		{"another lock of the machine's", frames("__lll_lock_wait", "pthread_mutex_lock", "Mutex::lock_contended", "Mutex::lock", "SymbolTable::lookup"), JVMNone},
		{"a park", frames("pthread_cond_wait", "Parker::park", "Unsafe_Park"), JVMNone},
	} {
		if got := jvmWait(c.stack); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
