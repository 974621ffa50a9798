package profiler

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// idlers are functions in which a CPU has nothing to do.
var idlers = words(`swapper intel_idle intel_idle_irq intel_idle_ibrs native_safe_halt pv_native_safe_halt default_idle default_idle_call cpu_idle do_idle cpu_startup_entry
	mwait_idle mwait_idle_with_hints poll_idle acpi_idle_do_entry acpi_processor_ffh_cstate_enter acpi_safe_halt cpuidle_enter_state cpuidle_idle_call cpuidle_enter
	arch_cpu_idle cpu_startup_entry hlt_play_dead haltpoll_enter xen_safe_halt cpu_bringup_and_idle start_secondary tick_nohz_idle_enter tick_nohz_idle_exit
	cpu_idle_poll rest_init arch_local_irq_enable wfi cpu_do_idle`)

// idles reports whether a sample is of a CPU that had nothing to do.
func idles(s *sample) bool {
	if s.comm == "swapper" || strings.HasPrefix(s.comm, "swapper/") || s.comm == "idle" {
		return true
	}
	for i := range s.kernel {
		if idlers[s.kernel[i].Func] {
			return true
		}
	}
	return idleStack(s.program)
}

// idleStack reports whether a stack of which nothing marks the kernel's functions is of an idle
// CPU: two of its functions are those in which a CPU idles.
func idleStack(program []kernel.Frame) bool {
	n := 0
	for i := range program {
		if program[i].Module == "" && idlers[program[i].Func] {
			n++
		}
	}
	return n >= 2
}

// unresolved reports whether a name stands for an address that no symbol covers.
func unresolved(name string) bool {
	return name == "" || name == "[unknown]" || strings.HasPrefix(name, "0x") ||
		strings.EqualFold(name, "unknown") || allZero(name)
}

func allZero(s string) bool { return strings.Trim(s, "0") == "" }

// older are names that functions had in older kernels, where a rule knows the present one. The
// spinlocks before 4.2 spin in the very function that takes them.
var older = map[string]string{
	"rwsem_down_write_failed": "rwsem_down_write_slowpath", "rwsem_down_read_failed": "rwsem_down_read_slowpath",
	"__rwsem_down_write_failed_common": "rwsem_down_write_slowpath", "_spin_lock": "queued_spin_lock_slowpath",
	"_spin_lock_irqsave": "queued_spin_lock_slowpath",
	"_spin_lock_irq":     "queued_spin_lock_slowpath", "_spin_lock_bh": "queued_spin_lock_slowpath",
	"__ticket_spin_lock": "queued_spin_lock_slowpath", "_raw_spin_lock": "queued_spin_lock_slowpath",
	"_raw_spin_lock_irqsave": "queued_spin_lock_slowpath", "_raw_spin_lock_irq": "queued_spin_lock_slowpath",
	"_raw_spin_lock_bh":          "queued_spin_lock_slowpath",
	"mutex_spin_on_owner.isra.0": "mutex_spin_on_owner", "__write_lock_failed": "queued_write_lock_slowpath",
	"do_raw_spin_lock": "queued_spin_lock_slowpath", "__read_lock_failed": "queued_read_lock_slowpath",
}

// modern gives a kernel stack whose innermost function has its present name. queued: the profile
// shows a kernel whose spinlocks queue in a function of their own, so that who takes a free one
// does not spin.
func modern(frames []kernel.Frame, queued bool) []kernel.Frame {
	if len(frames) == 0 {
		return nil
	}
	name, _, _ := strings.Cut(frames[0].Func, ".")
	now, ok := older[name]
	if !ok || queued && now == "queued_spin_lock_slowpath" {
		return frames
	}
	out := append([]kernel.Frame(nil), frames...)
	out[0].Func = now
	return out
}

// queues reports whether a function is only in kernels whose spinlocks queue in a function of their
// own.
func queues(name string) bool {
	return strings.Contains(name, "queued_spin_lock_slowpath") || strings.HasPrefix(name, "__x64_sys_") ||
		strings.HasPrefix(name, "__arm64_sys_") || strings.HasPrefix(name, "asm_") ||
		strings.HasPrefix(name, "el0t_64_")
}

// inFault reports whether a kernel stack is within a page fault, and whether that is one of a
// virtual machine's memory on its host.
func inFault(frames []kernel.Frame) (fault, guest bool) {
	for i := range frames {
		switch name := frames[i].Func; {
		case faultFuncs[name]:
			fault = true
		case guestFaults[name]:
			return true, true
		}
	}
	return fault, false
}

var (
	faultFuncs = words(`page_fault do_page_fault __do_page_fault asm_exc_page_fault exc_page_fault do_user_addr_fault handle_mm_fault __handle_mm_fault
		handle_pte_fault hugetlb_fault do_anonymous_page do_huge_pmd_anonymous_page do_fault do_translation_fault do_mem_abort el0_da filemap_fault do_async_page_fault`)
	guestFaults = words("tdp_page_fault kvm_mmu_page_fault handle_ept_violation npf_interception kvm_tdp_page_fault direct_page_fault kvm_tdp_mmu_map")
)

// listLockers put pages on the lists of a NUMA node and take them off, many under one lock. With
// interrupts off no tick sees the spinning: it comes when they give the lock back.
var listLockers = words("pagevec_lru_move_fn folio_batch_move_lru release_pages folios_put_refs")

// insideSoftirq is the part of a kernel stack that a softirq is: what is inside of the function
// that runs softirqs.
func insideSoftirq(frames []kernel.Frame) []kernel.Frame {
	for i := range frames {
		switch frames[i].Func {
		case "handle_softirqs", "__do_softirq", "__softirqentry_text_start":
			return frames[:i]
		}
	}
	return nil
}

// zeroes reports whether a kernel function clears pages that a program gets.
func zeroes(name string) bool {
	return strings.HasPrefix(name, "clear_page") || strings.HasPrefix(name, "clear_huge_page") ||
		strings.HasPrefix(name, "clear_subpage") || name == "folio_zero_user"
}

func name0(frames []kernel.Frame) string {
	if len(frames) == 0 {
		return ""
	}
	return frames[0].Func
}

// asker is the function that wants a lock of the kernel: the innermost that is not the lock's.
func asker(frames []kernel.Frame) string {
	for i := range frames {
		name, _, _ := strings.Cut(frames[i].Func, ".")
		if name != "" && !lockFunc(name) && !unresolved(name) {
			return name
		}
	}
	return ""
}

func lockFunc(name string) bool {
	return strings.Contains(name, "spin_lock") || strings.Contains(name, "rwsem_") ||
		strings.Contains(name, "mutex_lock") || strings.Contains(name, "mutex_spin") ||
		strings.Contains(name, "mutex_optimistic") || strings.Contains(name, "osq_lock") ||
		strings.HasPrefix(name, "down_") || strings.HasPrefix(name, "__down_") || strings.Contains(name, "queued_") ||
		strings.HasPrefix(name, "_raw_") || name == "kvm_wait" ||
		strings.HasPrefix(name, "__pv_") || strings.HasPrefix(name, "pv_")
}

// slowClock are functions that read a clock which is no register of the CPU.
var slowClock = words("read_hpet acpi_pm_read acpi_pm_read_slow acpi_pm_read_verified read_acpi_pm uv_read_rtc read_hpet_counter")

// spinsForLock reports whether a function of a program spins for a lock which another thread has:
// spinlocks of libraries and servers. One that only takes a free lock is no spinner.
func spinsForLock(name string) bool {
	if i := strings.IndexAny(name, "(@"); i > 0 { // arguments, or a symbol's version
		name = name[:i]
	}
	low := strings.ToLower(name)
	// The type's name alone says nothing: its other functions free the lock, or make it.
	_, does, typed := strings.Cut(low, "spinlock")
	takes := typed && !strings.Contains(does, "unlock") &&
		slices.ContainsFunc([]string{"lock", "acquire", "spin", "enter", "slow", "wait"},
			func(verb string) bool { return strings.Contains(does, verb) })
	return userSpinners[name] || takes ||
		strings.Contains(low, "spintoacquire") || strings.Contains(low, "mutex_spin") ||
		strings.Contains(low, "spin_and_try_lock")
}

// takesMutex reports whether a function takes a lock or gives it back, and sleeps or wakes another
// thread by a futex where others want it too.
func takesMutex(name string) bool {
	if i := strings.IndexAny(name, "(@"); i > 0 {
		name = name[:i]
	}
	name = strings.TrimLeft(name, "_")
	for _, p := range []string{"lll_lock", "lll_unlock", "lll_mutex", "L_lock_", "L_unlock_", "GI_lll_lock",
		"pthread_mutex_", "GI_pthread_mutex_", "pthread_rwlock_", "std::mutex::", "runtime.lock", "runtime.unlock",
		"ObjectMonitor::", "parking_lot"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return strings.HasSuffix(name, "::lock_contended") || strings.HasSuffix(name, "::lock_slow")
}

// userSpinners are glibc's, PostgreSQL's, InnoDB's and OpenMP's.
var userSpinners = words("pthread_spin_lock __pthread_spin_lock s_lock perform_spin_delay ut_delay rw_lock_s_lock_spin rw_lock_x_lock_spin")

// semaphoreCall reports whether a function is of a system call on System V semaphores, which
// programs use as locks.
func semaphoreCall(name string) bool {
	return strings.Contains(name, "semtimedop") || strings.HasSuffix(name, "sys_semop") ||
		strings.HasSuffix(name, "sys_semctl") || strings.HasPrefix(name, "semctl_")
}

// jvmCollector reports whether a thread of a JVM collects garbage, by its name.
func jvmCollector(comm string) bool {
	for _, p := range []string{"GC Thread", "G1 ", "G1_", "GC task thread", "Gang worker", "ParGC",
		"Concurrent Mark", "ZGC", "ZWorker", "Shenandoah", "VM_GC"} {
		if strings.HasPrefix(comm, p) {
			return true
		}
	}
	return false
}

// jvmCollectors are starts of names of the classes in which HotSpot's collectors work.
var jvmCollectors = []string{"GCTaskThread::", "GCTaskManager::", "StealTask::",
	"ParallelTaskTerminator::", "TaskTerminator::", "PSScavenge::", "PSPromotionManager::", "PSParallelCompact::",
	"PSMarkSweep::", "ParallelScavengeHeap::", "ParCompactionManager::", "G1ParTask::",
	"G1ParScanThreadState::", "G1CollectedHeap::", "G1ConcurrentMark::", "G1CMTask::", "G1RemSet::",
	"ConcurrentMarkThread::", "CMSCollector::", "CMTask::", "DefNewGeneration::",
	"ParNewGeneration::", "GenCollectedHeap::", "GenMarkSweep::", "VM_ParallelGC", "VM_GenCollect", "VM_G1",
	"ZMark::", "ZRelocate::", "ZHeap::", "ShenandoahHeap::", "ShenandoahConcurrent"}

// jvmCollects reports whether a stack is of a JVM that collects garbage.
func jvmCollects(frames []kernel.Frame) bool {
	for i := range frames {
		if slices.ContainsFunc(jvmCollectors, func(p string) bool { return strings.HasPrefix(frames[i].Func, p) }) {
			return true
		}
	}
	return false
}

// callsKernel reports whether a function is the C library's way into a system call: time in it is
// the kernel's, where that was not sampled.
func callsKernel(f *kernel.Frame) bool {
	name := strings.TrimSuffix(f.Func, " (inlined)")
	own := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "__GI_"), "___"), "__")
	own = strings.TrimPrefix(own, "libc_")
	if own == name && !strings.Contains(f.Module, "libc") && !strings.Contains(f.Module, "libpthread") {
		return false
	}
	own = strings.TrimSuffix(strings.TrimSuffix(own, "_nocancel"), "64")
	return isSystemCall(own) && own != "time" && own != "gettimeofday" && own != "clock_gettime"
}

// collects reports whether a stack is of a goroutine of Go's collector.
func collects(frames []kernel.Frame) bool {
	for i := range frames {
		if name := frames[i].Func; name == "runtime.bgsweep" || name == "runtime.gcBgMarkWorker" ||
			name == "runtime.bgscavenge" {
			return true
		}
	}
	return false
}

// entries are the functions through which a thread comes into the kernel: what stands outside of
// them on a stack is the program's.
var entries = words(`entry_SYSCALL_64_after_hwframe entry_SYSCALL_64 entry_SYSCALL_64_fastpath entry_SYSCALL_64_safe_stack system_call_fastpath system_call
	tracesys tracesys_phase2 sysret_check do_syscall_64 asm_exc_page_fault page_fault async_page_fault ret_from_fork ret_from_fork_asm kernel_thread_helper
	asm_sysvec_apic_timer_interrupt asm_common_interrupt asm_sysvec_call_function asm_sysvec_reschedule_ipi apic_timer_interrupt reschedule_interrupt
	ret_from_intr common_interrupt return_from_SYSCALL_64 el0t_64_sync el0_sync el0_svc el0_da el0_ia secondary_startup_64 secondary_startup_64_no_verify
	entry_INT80_compat sysenter_do_call syscall_return_slowpath stub_clone return_from_execve ret_from_sys_call retint_user int_signal`)

// split divides the functions of a stack, the innermost first, into the kernel's and the program's
// where only the names tell. Without an entry of the kernel all are the program's, unless the
// innermost is known to be the kernel's.
func split(names []string, kernelFirst bool) (inKernel, inProgram []kernel.Frame) {
	last := -1
	for i, name := range names {
		if entries[name] {
			last = i
		}
	}
	if last < 0 && kernelFirst {
		last = len(names) - 1
	}
	all := make([]kernel.Frame, len(names))
	for i, name := range names {
		if all[i].Func = name; i <= last {
			all[i].Module = "kernel"
		}
	}
	return all[: last+1 : last+1], all[last+1:]
}
