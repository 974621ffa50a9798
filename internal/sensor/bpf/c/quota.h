// The moments at which a quota gives threads back to the run queues, which no scheduler's tracepoint tells; and timers' times.
#pragma once
#include "thread.h"

SEC("tp_btf/hrtimer_expire_entry")
int hrtimer_expire(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];
	u64 f = (u64)timer->function;
	if (f == period_timer || f == slack_timer) {
		tell(K_UNTHROTTLE, 0, 0, 0, f == slack_timer);
		return 0;
	}
	struct cpu *c = this_cpu();
	if (c) // CLOCK_MONOTONIC is the only clock whose times we could compare
		c->due = f == wakeup_timer && timer->base->clockid == 1 ? timer->node.expires : 0;
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int hrtimer_expired(u64 *ctx)
{
	struct cpu *c = this_cpu();
	if (c)
		c->due = 0;
	return 0;
}

// tp_btf refuses this tracepoint for its argument, a pointer to a function.
SEC("raw_tp/csd_function_entry")
int csd_function(u64 *ctx)
{
	if (ctx[0] == csd_unthrottle)
		tell(K_UNTHROTTLE, 0, 0, 0, 2);
	return 0;
}
