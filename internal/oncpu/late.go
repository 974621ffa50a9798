package oncpu

import (
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// A sample is taken in a timer's interrupt. While code has interrupts off the timer waits, and the
// sample is taken at the very instruction that enables them. So a sample there is of the code
// before, back to where they were disabled.

// unlockers enable interrupts for their caller, which had them off.
var unlockers = words(`_raw_spin_unlock_irqrestore _raw_spin_unlock_irq _raw_read_unlock_irqrestore _raw_write_unlock_irqrestore _raw_read_unlock_irq
	_raw_write_unlock_irq __raw_spin_unlock_irqrestore __raw_spin_unlock_irq raw_spin_rq_unlock_irqrestore local_irq_enable local_irq_restore`)

// enablers have an instruction inside that enables interrupts, and do little else with them on.
var enablers = words(`finish_task_switch exc_page_fault do_page_fault asm_exc_page_fault do_syscall_64 syscall_enter_from_user_mode
	entry_SYSCALL_64_after_hwframe entry_SYSCALL_64_safe_stack entry_SYSCALL_64 irqentry_exit_to_user_mode exit_to_user_mode_loop exit_to_user_mode_prepare
	syscall_exit_to_user_mode irqentry_exit handle_softirqs __do_softirq do_softirq preempt_schedule_irq el0_svc el0_da el0_ia local_daif_restore`)

// lateBy is the function that enabled interrupts where the sample was taken; "" if the sample was
// in time, for all that is known.
func lateBy(frames []kernel.Frame) string {
	for i := range frames {
		name := plain(frames[i].Func)
		switch {
		case unlockers[name] && i+1 < len(frames):
		case i > 0, enablers[name]:
			return name
		default:
			return ""
		}
	}
	return ""
}
