package sched

import (
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// The functions on a thread's kernel stack say what it waits in. Names come and go between kernel
// versions and with inlining, so the tables name several functions on each way in: it takes one to
// be there.

// stackClass is what a kernel stack says.
type stackClass struct {
	block  Block
	signal bool // a signal is being sent
	exit   bool // a thread ends
}

// stackClasses remembers what stacks say, each of which many waits share.
type stackClasses struct {
	src   kernel.Source
	known map[uint32]stackClass
}

func (c *stackClasses) of(id uint32) stackClass {
	if id == 0 {
		return stackClass{}
	}
	if s, ok := c.known[id]; ok {
		return s
	}
	s := classify(c.src.Stack(id))
	c.known[id] = s
	return s
}

// BlockOf is what a thread with this kernel stack waits in.
func BlockOf(frames []kernel.Frame) Block { return classify(frames).block }

// classify decides by the names on a kernel stack, from the innermost outwards.
//  1. A function of memory management wins wherever it stands: a reclaim that waits for a disk is a
//     reclaim. The innermost of them counts, except where an outer one says for whom it worked
//     (because).
//  2. Else the innermost function in the table of other waits counts.
//  3. A stack with names of which none is in a table is BlockOther; one without names is
//     BlockUnknown.
//
// mmap_lock is a read-write semaphore like others. It is recognised by the function right outside
// of the semaphore's own, which takes that lock and no other.
func classify(frames []kernel.Frame) (c stackClass) {
	named := false
	weak := BlockUnknown // of a wait that is not memory management's
	rwsem := false       // the frame inside of this one was a read-write semaphore's
	for _, f := range frames {
		name := bare(f.Func)
		if name == "" {
			continue
		}
		if signals[name] {
			c.signal = true
		}
		if name == "do_exit" || name == "mm_release" || name == "exit_mm_release" {
			c.exit = true
		}
		if plumbing(name) {
			rwsem = rwsem || strings.HasPrefix(name, "rwsem_down_") ||
				strings.HasPrefix(name, "down_read") || strings.HasPrefix(name, "down_write")
			continue
		}
		named = true
		if rwsem && takesMmapLock(name) && c.block == BlockUnknown {
			c.block = BlockMmapLock
		}
		if weak == BlockUnknown && (rwsem || strings.HasPrefix(name, "__mutex_lock")) {
			weak = BlockKernelLock // whatever code wants it
		}
		rwsem = false
		if b := memoryBlock(name); c.block == BlockUnknown || because(c.block, b) {
			c.block = b
		}
		if weak == BlockUnknown {
			weak = waits[name]
			if weak == BlockUnknown {
				weak = waitsByPrefix(name)
			}
		}
	}
	switch {
	case c.block != BlockUnknown:
	case weak != BlockUnknown:
		c.block = weak
	case named:
		c.block = BlockOther
	}
	return c
}

// memoryBlock is what a function of memory management is for; BlockUnknown for any other.
func memoryBlock(name string) Block {
	switch b := memory[name]; {
	case b != BlockUnknown:
		return b
	case strings.HasPrefix(name, "flush_tlb"):
		return BlockTLB
	case strings.HasPrefix(name, "mmap_read_lock"), strings.HasPrefix(name, "mmap_write_lock"):
		return BlockMmapLock
	}
	return BlockUnknown
}

// because reports whether a function further out is the reason for what the inner one does: the
// same code is called for both.
func because(inner, outer Block) bool {
	switch inner {
	case BlockReclaim:
		return outer == BlockMemcg
	case BlockNUMA:
		return outer == BlockCompaction
	case BlockTLB:
		return outer == BlockNUMA || outer == BlockReclaim || outer == BlockMemcg ||
			outer == BlockCompaction || outer == BlockFault
	}
	return false
}

// bare is a kernel function's name without the suffixes of compilers and the prefixes of system
// call wrappers.
func bare(name string) string {
	if i := strings.IndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	for _, p := range []string{"__x64_sys_", "__arm64_sys_", "__do_sys_", "__se_sys_", "__ia32_sys_"} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return "sys_" + rest
		}
	}
	return name
}

// plumbing reports whether a function is part of how every wait ends up in the scheduler.
func plumbing(name string) bool {
	switch name {
	case "__schedule", "schedule", "schedule_preempt_disabled", "schedule_timeout",
		"schedule_hrtimeout_range", "schedule_hrtimeout_range_clock",
		"schedule_hrtimeout", "schedule_rtlock", "preempt_schedule", "preempt_schedule_common",
		"__cond_resched", "bit_wait", "context_switch", "finish_task_switch",
		"__switch_to", "__traceiter_sched_switch", "__down_read_common", "__down_write_common",
		"call_rwsem_down_read_failed", "call_rwsem_down_write_failed":
		return true
	}
	return strings.HasPrefix(name, "rwsem_") || strings.HasPrefix(name, "down_read") ||
		strings.HasPrefix(name, "down_write") ||
		strings.HasPrefix(name, "__down_read") || strings.HasPrefix(name, "__down_write") ||
		strings.HasPrefix(name, "bpf_")
}

// memory has the functions of memory management in which a thread may wait.
var memory = blocks(map[Block]string{
	BlockFault: `handle_mm_fault __handle_mm_fault do_user_addr_fault exc_page_fault asm_exc_page_fault do_page_fault __do_page_fault
		do_translation_fault do_mem_abort filemap_fault __filemap_fault handle_userfault do_swap_page do_fault __do_fault do_anonymous_page
		do_wp_page handle_pte_fault do_huge_pmd_anonymous_page fixup_user_fault faultin_page hugetlb_fault hugetlb_no_page swapin_readahead`,
	BlockReclaim: `try_to_free_pages do_try_to_free_pages __alloc_pages_direct_reclaim __perform_reclaim shrink_node shrink_node_memcgs shrink_lruvec
		shrink_one shrink_many shrink_folio_list shrink_page_list shrink_inactive_list shrink_active_list shrink_list shrink_slab shrink_slab_memcg do_shrink_slab
		evict_folios try_to_shrink_lruvec lru_gen_shrink_node throttle_direct_reclaim reclaim_throttle wait_iff_congested too_many_isolated
		node_reclaim __node_reclaim drop_slab reclaim_clean_pages_from_list __alloc_pages_may_oom out_of_memory`,
	BlockMemcg: `try_to_free_mem_cgroup_pages mem_cgroup_handle_over_high __mem_cgroup_handle_over_high reclaim_high try_charge try_charge_memcg
		mem_cgroup_oom mem_cgroup_oom_synchronize mem_cgroup_out_of_memory`,
	BlockCompaction: `compact_zone compact_zone_order try_to_compact_pages __alloc_pages_direct_compact compact_node isolate_migratepages
		isolate_migratepages_block isolate_freepages compaction_alloc`,
	BlockNUMA: `do_numa_page do_huge_pmd_numa_page numa_migrate_prep migrate_misplaced_page migrate_misplaced_folio task_numa_work change_prot_numa
		migrate_pages migrate_pages_batch migrate_pages_sync migrate_folios_move unmap_and_move migration_entry_wait __migration_entry_wait
		migration_entry_wait_on_locked pmd_migration_entry_wait do_migrate_pages sys_move_pages sys_migrate_pages`,
	BlockTLB: `smp_call_function_many_cond smp_call_function_many smp_call_function on_each_cpu_cond_mask on_each_cpu_mask native_flush_tlb_multi
		native_flush_tlb_others arch_tlbbatch_flush try_to_unmap_flush kvm_flush_tlb_multi hyperv_flush_tlb_multi csd_lock_wait`,
	BlockMmapLock: `lock_mm_and_find_vma get_mmap_lock_carefully upgrade_mmap_lock_carefully __vma_start_write vma_start_write vma_start_write_killable
		__mmap_lock_do_trace_start_locking lock_vma_under_rcu vma_start_read`,
})

// mmapLockers have the functions that take an mmap_lock themselves: the lock's own function is
// compiled into them.
var mmapLockers = words(`do_user_addr_fault exc_page_fault do_page_fault __do_page_fault do_translation_fault do_mem_abort vm_mmap_pgoff __vm_munmap vm_munmap
	sys_munmap sys_mmap sys_mremap sys_brk sys_madvise sys_mprotect sys_pkey_mprotect do_madvise madvise_lock madvise_behavior madvise_do_behavior do_mprotect_pkey
	sys_remap_file_pages do_mlock __mm_populate sys_munlock sys_mlockall sys_munlockall apply_vma_lock_flags exit_mm exit_mmap mm_release mmput __mmput dup_mm dup_mmap
	acct_collect internal_get_user_pages_fast gup_fast_fallback __gup_longterm_locked get_user_pages_unlocked get_user_pages_remote __get_user_pages_locked
	pin_user_pages fixup_user_fault process_vm_rw_core process_vm_rw process_vm_rw_single_vec __access_remote_vm access_remote_vm m_start smaps_rollup_start show_smaps_rollup pagemap_read
	clear_refs_write task_numa_work change_prot_numa userfaultfd_ioctl do_shmat ksys_shmdt do_mbind kernel_move_pages do_pages_stat do_move_pages_to_node
	setup_arg_pages begin_new_exec exec_mmap khugepaged hpage_collapse_scan_pmd collapse_huge_page set_mm_exe_file replace_mm_exe_file prctl_set_mm sys_prctl
	uprobe_register register_for_each_vma vma_prepare_lock unuse_mm try_to_unuse __do_munmap mmap_lock_acquire do_vmi_munmap`)

// takesMmapLock reports whether a function that calls a read-write semaphore does so for an
// mmap_lock.
func takesMmapLock(name string) bool { return mmapLockers[name] || memory[name] == BlockMmapLock }

// waits has the functions in which a thread waits for something else.
var waits = blocks(map[Block]string{
	BlockFutex: `futex_wait futex_wait_queue futex_wait_queue_me futex_do_wait __futex_wait futex_wait_restart futex_wait_multiple futex_wait_multiple_setup
		futex_lock_pi futex_wait_requeue_pi do_futex sys_futex sys_futex_wait sys_futex_waitv rt_mutex_wait_proxy_lock`,
	BlockNetwork: `ep_poll do_epoll_wait do_epoll_pwait sys_epoll_wait sys_epoll_pwait sys_epoll_pwait2 ep_send_events inet_csk_accept inet_csk_wait_for_connect inet_accept inet_wait_for_connect
		inet_stream_connect __inet_stream_connect sk_wait_data sk_stream_wait_memory sk_stream_wait_connect sk_stream_wait_close __skb_wait_for_more_packets
		unix_stream_data_wait unix_stream_read_generic unix_wait_for_peer unix_accept unix_stream_connect sock_alloc_send_pskb sock_wait_for_wmem do_poll do_sys_poll
		poll_schedule_timeout do_select core_sys_select do_pselect __lock_sock lock_sock_nested sock_recvmsg __sock_recvmsg sock_sendmsg __sock_sendmsg sock_read_iter
		sock_write_iter sys_accept sys_accept4 sys_connect sys_recvfrom sys_recvmsg sys_sendto sys_sendmsg sys_poll sys_ppoll sys_select sys_pselect6`,
	BlockTimer: `do_nanosleep hrtimer_nanosleep common_nsleep sys_nanosleep sys_clock_nanosleep hrtimer_nanosleep_restart`,
	BlockPipe: `pipe_read pipe_write anon_pipe_read anon_pipe_write fifo_pipe_read pipe_wait pipe_wait_readable pipe_wait_writable wait_for_partner fifo_open wait_for_space
		n_tty_read n_tty_write tty_read tty_write file_tty_write tty_wait_until_sent pty_write eventfd_read eventfd_write signalfd_read_iter timerfd_read inotify_read`,
	BlockDisk: `io_schedule io_schedule_timeout io_schedule_prepare bit_wait_io folio_wait_bit folio_wait_bit_common folio_wait_bit_killable __folio_lock
		__folio_lock_killable __folio_lock_or_retry folio_wait_writeback folio_wait_stable wait_on_page_bit wait_on_page_bit_common wait_on_page_bit_killable __lock_page wait_on_page_writeback
		wbt_wait rq_qos_wait __rq_qos_throttle blk_mq_get_tag blk_execute_rq submit_bio_wait bio_await_chain __wait_on_buffer __sync_dirty_buffer __bread_gfp balance_dirty_pages
		balance_dirty_pages_ratelimited balance_dirty_pages_ratelimited_flags file_write_and_wait_range filemap_write_and_wait_range __filemap_fdatawait_range
		file_fdatawait_range do_fsync sys_fsync sys_fdatasync vfs_fsync_range sync_inodes_sb wait_sb_inodes writeback_inodes_sb wb_wait_for_completion wait_transaction_locked
		wait_current_trans request_wait_answer_disk dio_await_one iomap_dio_rw __iomap_dio_rw blkdev_issue_flush blkcg_maybe_throttle_current read_swap_cache_async swap_readpage
		__blockdev_direct_IO nfs_wait_bit_killable rpc_wait_bit_killable`,
	BlockChild: `do_wait kernel_wait4 kernel_waitid sys_wait4 sys_waitid wait_for_vfork_done`,
	BlockIdle:  `worker_thread kthread_worker_fn smpboot_thread_fn rcu_gp_kthread kswapd kcompactd rescuer_thread`,
})

// waitsByPrefix is waits for whole modules of the kernel, whose functions have a prefix.
func waitsByPrefix(name string) Block {
	for _, p := range []struct {
		prefix string
		block  Block
	}{
		{"futex_wait", BlockFutex}, {"tcp_", BlockNetwork}, {"udp_", BlockNetwork},
		{"udpv6_", BlockNetwork}, {"inet_", BlockNetwork}, {"unix_", BlockNetwork},
		{"netlink_", BlockNetwork}, {"packet_", BlockNetwork}, {"vsock_", BlockNetwork},
		{"sctp_", BlockNetwork}, {"jbd2_", BlockDisk}, {"blk_mq_", BlockDisk},
		{"ext4_", BlockDisk}, {"xfs_", BlockDisk}, {"xlog_", BlockDisk}, {"btrfs_", BlockDisk},
		{"f2fs_", BlockDisk}, {"nfs_", BlockDisk}, {"nfs4_", BlockDisk}, {"tty_", BlockPipe},
	} {
		if strings.HasPrefix(name, p.prefix) {
			return p.block
		}
	}
	return BlockUnknown
}

// signals has the functions that send a signal.
var signals = words(`signal_wake_up_state signal_wake_up complete_signal __send_signal_locked __send_signal send_signal_locked send_signal
	do_send_sig_info do_send_specific do_tkill send_sigqueue posixtimer_send_sigqueue group_send_sig_info`)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// blocks turns a table of names by what they wait in around.
func blocks(table map[Block]string) map[string]Block {
	m := map[string]Block{}
	for b, names := range table {
		for _, w := range strings.Fields(names) {
			m[w] = b
		}
	}
	return m
}
