// Who is on a CPU, who woke whom, and into which run queue.
#pragma once
#include "record.h"

SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	bool preempt = ctx[0];
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 now = ktime_get_ns();
	bool leaves = prev->tgid == target, comes = next->tgid == target;
	// The argument is what the scheduler acted upon: the field may have been changed since by who wakes it.
	u32 state = state_arg ? (u32)ctx[3] : prev->__state;
	u16 flags = (preempt ? F_PREEMPTED : 0) | (leaves ? F_TARGET : 0) | (comes ? F_OTHER_TARGET : 0);

	if (leaves) {
		if (field_exists(prev->throttled)) {
			if (prev->throttled)
				flags |= F_THROTTLED;
		} else if (field_exists(((struct cfs_rq *)0)->throttle_count)) {
			if (prev->se.cfs_rq->throttle_count)
				flags |= F_GROUP_THROTTLED;
		}
	}
	if (leaves && state && !preempt) {
		struct middle *m = reserve(sizeof(*m));
		if (!m)
			return 0;
		fill(&m->s, K_SWITCH, flags, now, prev->pid, next->pid, state);
		m->arg[0] = state;
		syscall_of(prev, &m->arg[1], &m->arg[2]);
		submit(m);
		return 0;
	}
	struct small *s = reserve(sizeof(*s));
	if (!s)
		return 0;
	fill(s, K_SWITCH, flags, now, prev->pid, next->pid, state);
	submit(s);
	return 0;
}

SEC("tp_btf/sched_waking")
int sched_waking(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	if (t->tgid != target)
		return 0;
	struct task_struct *by = get_current_task_btf();
	if (in_interrupt(by)) {
		tell(K_WAKING, F_TARGET | F_INTERRUPT | (by->tgid == target ? F_OTHER_TARGET : 0), t->pid, by->pid, 0);
		return 0;
	}
	if (by->tgid != target) {
		tell(K_WAKING, F_TARGET, t->pid, by->pid, 0);
		return 0;
	}
	struct large *l = reserve(sizeof(*l));
	if (!l)
		return 0;
	fill(&l->m.s, K_WAKING, F_TARGET | F_OTHER_TARGET, ktime_get_ns(), t->pid, by->pid, 0);
	l->m.arg[0] = 0;
	syscall_of(by, &l->m.arg[1], &l->m.arg[2]);
	l->kernel = l->user = 0;
	submit(l);
	return 0;
}

INLINE void queued(struct task_struct *t, u32 cpu, u16 flags)
{
	if (t->tgid == target)
		tell(K_WAKEUP, F_TARGET | flags, t->pid, 0, cpu);
}

SEC("tp_btf/sched_wakeup")
int sched_wakeup(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	queued(t, t->thread_info.cpu, 0);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int sched_wakeup_new(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	queued(t, t->thread_info.cpu, F_NEW);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int sched_migrate_task(u64 *ctx)
{
	queued((void *)ctx[0], ctx[1], F_MIGRATE);
	return 0;
}
