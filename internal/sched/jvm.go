package sched

import (
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// JVMWait is what a thread of a Java virtual machine waits for, by its stack.
type JVMWait uint8

const (
	JVMNone      JVMWait = iota
	JVMSafepoint         // the end of a safepoint, an operation that needs one, or room that such an operation makes
	JVMMonitor           // an object's monitor: synchronized
	JVMReaching          // of the thread that starts a safepoint: other threads have not reached it
)

// jvmFuncs are functions of HotSpot's, whose library has symbols also where it is stripped of
// others. Those of safepoints are called where a thread comes back to Java code.
var jvmFuncs = []struct {
	prefix string
	wait   JVMWait
}{
	{"LinuxWaitBarrier::wait", JVMSafepoint}, // from Java 13 on
	{"SafepointSynchronize::block", JVMSafepoint},
	{"SafepointMechanism::", JVMSafepoint},
	{"VMThread::wait_until_executed", JVMSafepoint},
	// A thread that finds no room asks for a collection under the heap's lock. All others that
	// allocate meanwhile wait for that lock, which has no other use.
	{"VM_GC_Operation::", JVMSafepoint},
	{"MemAllocator::", JVMSafepoint},
	{"GenCollectedHeap::mem_allocate", JVMSafepoint},
	{"ParallelScavengeHeap::mem_allocate", JVMSafepoint},
	{"G1CollectedHeap::attempt_allocation", JVMSafepoint},
	{"SafepointSynchronize::synchronize_threads", JVMReaching},
	{"SafepointSynchronize::begin", JVMReaching},
	{"ObjectMonitor::enter", JVMMonitor},
	{"ObjectMonitor::EnterI", JVMMonitor},
	{"ObjectMonitor::ReenterI", JVMMonitor},
}

// JVMWaitOf is what s, a wait, is for. Where it has no stack, the longest wait for the same futex
// says it.
func (k *Timeline) JVMWaitOf(s *Stretch) JVMWait {
	stack := s.User
	if stack == 0 && s.Block == BlockFutex {
		if f := k.FutexOf(s); f != nil {
			stack = f.User
		}
	}
	if stack == 0 {
		return JVMNone
	}
	return jvmWait(k.Stack(stack))
}

func jvmWait(frames []kernel.Frame) JVMWait {
	for i := range frames {
		f := &frames[i]
		if f.Inferred || i >= 2*mostFrames {
			break
		}
		for j := range jvmFuncs {
			if strings.HasPrefix(f.Func, jvmFuncs[j].prefix) {
				return jvmFuncs[j].wait
			}
		}
	}
	return JVMNone
}
