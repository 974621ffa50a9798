package kernelfile

import (
	"slices"
	"strings"
)

// takesLock knows functions that take any lock: which one, only their caller says.
func takesLock(name string) bool {
	switch name {
	case "mutex_lock", "mutex_lock_nested", "mutex_lock_killable", "mutex_lock_interruptible", "mutex_lock_io",
		"down_read", "down_write", "down_read_killable", "down_write_killable", "rt_mutex_lock", "ww_mutex_lock":
		return true
	}
	return schedules(name)
}

// locksPage knows functions that wait until whoever has a page locked unlocks it. Who that is, and
// what that one waits for, is not on the stack.
func locksPage(name string) bool {
	switch name {
	case "__lock_page", "lock_page", "__lock_page_killable", "__lock_page_or_retry", "__folio_lock",
		"folio_lock", "__folio_lock_killable", "__folio_lock_or_retry":
		return true
	}
	return false
}

// locks knows the functions of the kernel's locks that sleep, under a name of their own.
func locks(name string) bool {
	return takesLock(name) && !schedules(name)
}

// asksHelper knows where the kernel waits for a program that it has started in user space. What
// called it may be a file system over a network, whose server has nothing to do with that wait.
func asksHelper(name string) bool {
	switch name {
	case "call_usermodehelper_exec", "call_usermodehelper", "call_usermodehelper_keys", "call_sbin_request_key",
		"wait_for_key_construction":
		return true
	}
	return false
}

// worksOn reports whether a thread of a pool of the kernel sleeps within its work: such a pool's
// function is on the stack at rest as well, and then it is the innermost one.
func worksOn(functions []string, at string) bool {
	switch at {
	case "worker_thread", "rescuer_thread", "kthread_worker_fn":
		return false
	}
	return slices.ContainsFunc(functions, func(f string) bool {
		return f == "process_one_work" || f == "process_scheduled_works" || f == "kthread_worker_fn"
	})
}

// waitsForPage knows functions that wait for a page of a file, wherever the file is.
func waitsForPage(name string) bool {
	return locksPage(name) || strings.HasPrefix(name, "folio_wait_") || strings.HasPrefix(name, "wait_on_page_")
}

// freesMemory knows the threads of the kernel that free or compact memory for all others.
func freesMemory(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	switch name {
	case "kswapd", "balance_pgdat", "kcompactd", "kcompactd_do_work", "khugepaged":
		return true
	}
	return false
}

// endsTransaction knows where the thread of ext4's or ext3's journal sleeps by itself, without a
// block in flight: until the last task that has the transaction open is done.
func endsTransaction(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	switch name {
	case "jbd2_journal_commit_transaction", "journal_commit_transaction",
		"jbd2_journal_wait_updates", "jbd2_journal_lock_updates":
		return true
	}
	return false
}

// schedules knows functions that stand on every stack of a thread that sleeps.
func schedules(name string) bool {
	switch name {
	case "__schedule", "schedule", "schedule_timeout", "schedule_preempt_disabled", "io_schedule",
		"io_schedule_timeout", "__switch_to", "context_switch", "bit_wait", "bit_wait_io",
		"__wait_on_bit", "out_of_line_wait_on_bit", "wait_for_completion", "__wait_for_common",
		"wait_for_common", "__down", "down", "_raw_spin_lock_irqsave", "dump_stack",
		"prepare_to_wait", "prepare_to_wait_event", "prepare_to_wait_exclusive",
		"autoremove_wake_function", "__wake_up", "cv_wait_common", "__cv_wait", "__cv_wait_sig",
		"__cv_timedwait_common", "cv_timedwait_common", "__cv_timedwait", "__cond_resched",
		"schedule_hrtimeout_range", "schedule_hrtimeout_range_clock":
		return true
	}
	return strings.HasPrefix(name, "rwsem_down_") || strings.HasPrefix(name, "__mutex_lock") ||
		strings.HasPrefix(name, "__down_") || strings.HasPrefix(name, "call_rwsem_")
}

// decides knows functions by which a wait is for a local disk, or for memory that the thread itself
// frees, whatever called them. A page that is waited for may be of a file over a network.
func decides(f string) bool {
	for _, p := range []string{"jbd2_", "journal_", "ext2_", "ext3_", "ext4_", "xfs_", "xlog_", "_xfs_", "btrfs_", "f2fs_", "zio_", "blk_",
		"blkdev_", "submit_bio", "sync_buffer", "__wait_on_buffer", "wbt_", "rq_qos_", "md_", "raid", "dm_", "bch_", "scsi_", "nvme_",
		"try_to_free_pages", "__alloc_pages_direct", "try_to_compact_pages", "try_to_free_mem_cgroup", "mem_cgroup_reclaim", "try_charge"} {
		if strings.HasPrefix(f, p) {
			return true
		}
	}
	return false
}

// startsStack knows functions at the outer end of a stack: where the kernel is entered, and where
// its own threads start.
func startsStack(f string) bool {
	if stackEnd(f) || f == "kthread" || f == "worker_thread" || f == "kernel_thread_helper" || f == "child_rip" {
		return true
	}
	for _, p := range []string{"do_syscall_", "sys_", "SyS_", "SYSC_", "__x64_sys_", "__se_sys_", "__arm64_sys_", "__ia32_sys_", "ksys_",
		"el0_", "ret_fast_syscall", "sysenter_", "ia32_", "system_call", "tracesys", "syscall_", "page_fault", "asm_exc_page_fault",
		"do_page_fault", "exc_page_fault", "ret_from_"} {
		if strings.HasPrefix(f, p) {
			return true
		}
	}
	return false
}
