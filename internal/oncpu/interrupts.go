package oncpu

import "strings"

// softirqRunner reports whether a function runs softirqs.
func softirqRunner(name string) bool {
	return name == "handle_softirqs" || name == "__do_softirq" || name == "__softirqentry_text_start"
}

// softirqKind is the kind of a softirq, as /proc/softirqs has it, by the function that the kernel
// calls for it.
func softirqKind(handler string) string {
	switch handler {
	case "net_rx_action":
		return "NET_RX"
	case "net_tx_action":
		return "NET_TX"
	case "run_timer_softirq", "__run_timers", "__run_timer_base", "run_timer_base":
		return "TIMER"
	case "hrtimer_run_softirq":
		return "HRTIMER"
	case "rcu_core_si", "rcu_core", "rcu_do_batch", "rcu_process_callbacks":
		return "RCU"
	case "run_rebalance_domains", "sched_balance_softirq", "sched_balance_domains":
		return "SCHED"
	case "blk_done_softirq", "blk_complete_reqs":
		return "BLOCK"
	case "tasklet_action", "tasklet_hi_action", "tasklet_action_common":
		return "TASKLET"
	case "irq_poll_softirq":
		return "IRQ_POLL"
	}
	return "other"
}

// runsSoftirq takes a function outside of what runs softirqs: who had them run. It may be the end
// of an interrupt, or the thread's own call that lets them run again.
func (s *sight) runsSoftirq(name string) {
	switch {
	case strings.HasPrefix(name, "__local_bh_enable"), name == "do_softirq",
		name == "local_bh_enable", strings.HasPrefix(name, "_raw_spin_unlock_bh"),
		strings.HasPrefix(name, "_raw_read_unlock_bh"), strings.HasPrefix(name, "_raw_write_unlock_bh"):
		s.ownSoftirq, s.ranBy = true, true
	case strings.Contains(name, "irq_exit"), interruptEntry(name):
		s.ranBy = true
	}
}

// interruptEntry reports whether a function is where an interrupt comes in.
func interruptEntry(name string) bool {
	return strings.HasPrefix(name, "asm_sysvec_") || strings.HasPrefix(name, "sysvec_") ||
		name == "asm_common_interrupt" || name == "common_interrupt" ||
		name == "asm_exc_nmi" || name == "exc_nmi" || name == "el1h_64_irq" ||
		name == "el0t_64_irq" || name == "el1_interrupt" || name == "el0_interrupt"
}

// interruptKind is what an interrupt is for.
func interruptKind(entry string) string {
	switch {
	case strings.Contains(entry, "call_function"):
		return "call from another CPU"
	case strings.Contains(entry, "apic_timer"), strings.Contains(entry, "stimer"):
		return "timer"
	case strings.Contains(entry, "reschedule"):
		return "reschedule"
	case strings.Contains(entry, "irq_work"):
		return "irq_work"
	case strings.Contains(entry, "nmi"):
		return "NMI"
	}
	return "device"
}

// backToThread are functions at the end of an interrupt that work for the thread which it
// interrupted.
var backToThread = words(`exit_to_user_mode_loop exit_to_user_mode_prepare irqentry_exit irqentry_exit_to_user_mode irqentry_exit_cond_resched
	raw_irqentry_exit_cond_resched dynamic_irqentry_exit_cond_resched preempt_schedule_irq resume_user_mode_work task_work_run arm64_preempt_schedule_irq`)
