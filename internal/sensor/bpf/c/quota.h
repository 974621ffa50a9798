// The moments at which a quota gives threads back to the run queues, which no tracepoint of the
// scheduler reports; when timers were due; and what runs at the scheduler's tick.
#pragma once
#include "thread.h"

// sample records what a thread of the target executes at the scheduler's tick. A timer of our own
// could fire as often as we like, but in a virtual machine each of its interrupts takes tens of
// microseconds: a thousand a second took 12 % from a server.
INLINE void sample(void *ctx)
{
	struct task_struct *t = get_current_task_btf();
	if (t->tgid != target || !stacks)
		return;
	u64 user = stack_of(ctx, 1, 1), kernel = 0;
#if defined(__TARGET_ARCH_x86)
	if (!on_own_stack(t)) // otherwise it was in user mode
#endif
		kernel = stack_of(ctx, 1, 0);
	struct large *l = reserve(sizeof(*l));
	if (!l)
		return;
	fill(&l->m.s, K_SAMPLE, F_TARGET, ktime_get_ns(), t->pid, 0, 0);
	l->m.arg[0] = tick_period;
	l->m.arg[1] = l->m.arg[2] = 0;
	l->kernel = kernel;
	l->user = user;
	submit(l);
}

SEC("tp_btf/hrtimer_expire_entry")
int hrtimer_expire(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];
	u64 f = (u64)timer->function;
	if (f == period_timer || f == slack_timer) {
		tell(K_UNTHROTTLE, 0, 0, 0, f == slack_timer);
		return 0;
	}
	if (f == tick_timer) {
		sample(ctx);
		return 0;
	}
	if (f != wakeup_timer || timer->base->clockid != 1)
		return 0; // only times of CLOCK_MONOTONIC can be compared with ours
	struct cpu *c = this_cpu();
	if (!c)
		return 0;
	c->due = timer->node.expires;
	c->due_at = ktime_get_ns();
	c->due_task = 0;
	struct hrtimer_sleeper *s = (void *)timer;
	probe_read_kernel(&c->due_task, sizeof(c->due_task), &s->task);
	return 0;
}

// tp_btf refuses this tracepoint because of its argument, a pointer to a function.
SEC("raw_tp/csd_function_entry")
int csd_function(u64 *ctx)
{
	if (ctx[0] == csd_unthrottle)
		tell(K_UNTHROTTLE, 0, 0, 0, 2);
	return 0;
}
