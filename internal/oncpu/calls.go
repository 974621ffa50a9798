package oncpu

import (
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// callName is a system call's name without the number of its version.
func callName(call string) string {
	if rest, ok := strings.CutPrefix(call, "new"); ok && len(rest) > 3 { // newfstatat, newuname
		return rest
	}
	return call
}

// entries are the functions through which a system call comes in.
var entries = words(`do_syscall_64 entry_SYSCALL_64 entry_SYSCALL_64_after_hwframe entry_SYSCALL_64_safe_stack do_int80_emulation do_fast_syscall_32
	syscall_exit_to_user_mode syscall_enter_from_user_mode x64_sys_call el0_svc el0_svc_common invoke_syscall do_el0_svc el0t_64_sync el0t_64_sync_handler`)

var faults = words(`asm_exc_page_fault exc_page_fault do_user_addr_fault do_page_fault __do_page_fault handle_mm_fault __handle_mm_fault do_translation_fault
	do_mem_abort el0_da faultin_page fixup_user_fault do_anonymous_page do_fault do_huge_pmd_anonymous_page hugetlb_fault`)

var memcgReclaim = words(`try_to_free_mem_cgroup_pages reclaim_high mem_cgroup_handle_over_high __mem_cgroup_handle_over_high mem_cgroup_oom
	mem_cgroup_out_of_memory mem_cgroup_oom_synchronize`)

// threadLife are functions that make or end a thread; threadCalls the system calls that do.
var (
	threadLife = words(`kernel_clone copy_process do_exit wake_up_new_task release_task ret_from_fork ret_from_fork_asm schedule_tail mm_release exit_mm_release
		exit_notify dup_task_struct`)
	threadCalls = words("clone clone3 fork vfork exit exit_group")
)

// switchers have a thread leave its CPU and come back.
var switchers = words(`__schedule schedule __switch_to __switch_to_asm finish_task_switch context_switch preempt_schedule_irq preempt_schedule preempt_schedule_common
	pick_next_task pick_next_task_fair sched_balance_newidle newidle_balance`)

// copiers move bytes between the kernel and the program.
var copiers = words(`rep_movs_alternative _copy_to_iter _copy_from_iter copy_to_iter copy_from_iter _copy_to_user _copy_from_user copyin copyout copy_page_to_iter
	copy_page_from_iter copy_page_from_iter_atomic copy_folio_from_iter_atomic copy_to_user_nofault raw_copy_to_user raw_copy_from_user simple_copy_to_iter
	skb_copy_datagram_iter __skb_datagram_iter skb_copy_datagram_from_iter __arch_copy_to_user __arch_copy_from_user rep_stos_alternative copy_user_enhanced_fast_string
	_copy_from_iter_full _copy_from_iter_nocache`)

// networkPrefixes start the names of functions of sockets and below.
var networkPrefixes = []string{"tcp_", "__tcp_", "udp_", "__udp_", "udpv6_", "ip_", "__ip_", "ip6_",
	"ipv6_", "inet_", "inet6_", "__inet_", "sock_", "__sock_", "skb_", "__skb_",
	"__alloc_skb", "alloc_skb", "kfree_skb", "consume_skb", "__dev_queue_xmit",
	"dev_hard_start_xmit", "dev_queue_xmit", "sch_direct_xmit", "__qdisc_run", "netif_", "__netif_",
	"nf_", "ipt_", "nft_", "loopback_xmit", "veth_xmit", "unix_", "lock_sock", "release_sock",
	"__release_sock", "__sys_send", "__sys_recv", "___sys_send", "___sys_recv",
	"__sys_accept", "__sys_connect", "sk_", "__sk_", "napi_", "netlink_"}

// tracers reports whether a function is of a tracer: an eBPF program, or a perf event.
func tracers(name string) bool {
	return strings.HasPrefix(name, "bpf_prog_") || strings.HasPrefix(name, "bpf_trace_run") ||
		strings.HasPrefix(name, "__bpf_trace_") ||
		strings.HasPrefix(name, "perf_swevent_") || strings.HasPrefix(name, "perf_trace_") ||
		strings.HasPrefix(name, "__perf_event_") ||
		name == "__perf_sw_event" || name == "___perf_sw_event" || strings.HasPrefix(name, "perf_event_")
}

// spinners are functions that do nothing but spin for a lock; sleepSpinners spin at first, and
// sleep where that does not help. The spinning is often compiled into them.
var (
	spinners = words(`native_queued_spin_lock_slowpath queued_spin_lock_slowpath __pv_queued_spin_lock_slowpath queued_read_lock_slowpath
		queued_write_lock_slowpath rwsem_spin_on_owner rwsem_optimistic_spin mutex_spin_on_owner osq_lock __rt_mutex_slowlock_spin pv_wait_head_or_lock
		kvm_wait virt_spin_lock hv_qlock_wait xen_qlock_wait`)
	sleepSpinners = words(`rwsem_down_write_slowpath rwsem_down_read_slowpath __mutex_lock __mutex_lock_slowpath mutex_optimistic_spin`)
)

// lockFunc reports whether a function is of the kernel's locks themselves.
func lockFunc(name string) bool {
	return spinners[name] || sleepSpinners[name] || strings.HasPrefix(name, "_raw_") ||
		strings.HasPrefix(name, "down_") || strings.HasPrefix(name, "__down_") ||
		strings.HasPrefix(name, "rwsem_") || strings.HasPrefix(name, "mutex_lock") ||
		strings.HasPrefix(name, "__mutex_") || name == "do_raw_spin_lock" ||
		name == "raw_spin_rq_lock_nested" || name == "call_rwsem_down_write_failed" ||
		name == "call_rwsem_down_read_failed"
}

// inodeLockers reports whether a function takes the lock of a file's inode: most file systems
// write and read files through such ones.
func inodeLockers(name string) bool {
	return strings.HasSuffix(name, "_write_iter") || strings.HasSuffix(name, "_read_iter") ||
		strings.HasSuffix(name, "_buffered_write") ||
		strings.HasSuffix(name, "_buffered_read") || strings.HasSuffix(name, "_file_write") ||
		strings.HasSuffix(name, "_ilock") || strings.HasPrefix(name, "inode_lock") ||
		name == "ext4_dio_write_iter" || name == "do_truncate" || name == "vfs_fallocate" ||
		name == "chown_common" || name == "netfs_start_io_write"
}

// faultName says what a page fault does.
func faultName(frames []kernel.Frame) string {
	name, huge := "", false
	switch plain(frames[0].Func) {
	case "exc_page_fault", "asm_exc_page_fault", "do_page_fault", "el0_da", "irqentry_exit_to_user_mode":
		return inOut
	}
	for i := range frames {
		f := plain(frames[i].Func)
		if name == "" {
			name = faultPart(f)
		}
		huge = huge || strings.HasPrefix(f, "do_huge_pmd_") || f == "clear_huge_page" ||
			f == "folio_zero_user" || f == "vma_alloc_anon_folio_pmd"
		if faults[f] && f != "do_anonymous_page" && f != "do_fault" {
			break
		}
	}
	switch {
	case huge && name == "zeroing":
		return "huge pages: zeroing"
	case huge:
		return "huge pages"
	case name == "":
		return "other"
	}
	return name
}

// faultPart is what a function within a page fault is for, "" if it does not say.
func faultPart(name string) string {
	switch {
	case strings.HasPrefix(name, "clear_page"), strings.HasPrefix(name, "clear_huge_page"),
		strings.HasPrefix(name, "clear_subpage"), name == "folio_zero_user",
		strings.HasPrefix(name, "clear_user_"), name == "clear_highpage":
		return "zeroing"
	case strings.Contains(name, "mem_cgroup"), strings.Contains(name, "memcg"),
		strings.HasPrefix(name, "try_charge"), name == "__css_rstat_updated":
		return "charging to the memory cgroup"
	case strings.HasPrefix(name, "filemap_"), name == "do_read_fault", name == "do_cow_fault",
		name == "do_shared_fault", name == "do_fault", name == "do_fault_around",
		name == "next_uptodate_folio", name == "finish_fault", name == "__do_fault", name == "shmem_fault":
		return account.FaultFiles
	case name == "do_wp_page", name == "wp_page_copy":
		return account.FaultCopies
	case name == "do_swap_page":
		return "swap"
	case strings.HasPrefix(name, "__alloc_pages"), strings.HasPrefix(name, "__alloc_frozen_pages"),
		strings.HasPrefix(name, "alloc_pages"), strings.HasPrefix(name, "vma_alloc_folio"),
		name == "get_page_from_freelist", name == "alloc_anon_folio":
		return "taking free pages"
	}
	return ""
}
