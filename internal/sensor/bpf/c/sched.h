// Which thread is on a CPU, which woke which, and into which run queue; stacks of waits and of
// wakers.
#pragma once
#include "thread.h"

// tell_wait writes the stacks of a wait that ended.
INLINE void tell_wait(u32 tid, u64 kernel, u64 user)
{
	if (!kernel && !user)
		return;
	struct large *l = reserve(sizeof(*l));
	if (!l)
		return;
	fill(&l->m.s, K_WAIT_STACK, F_TARGET, ktime_get_ns(), tid, 0, 0);
	l->m.arg[0] = l->m.arg[1] = l->m.arg[2] = 0;
	l->kernel = kernel;
	l->user = user;
	submit(l);
}

// told_by_call reports whether the call alone says what a wait is for: an interruptible wait in one
// of these calls is the one that the call makes. Their other waits, for a fault, a lock or a disk,
// are uninterruptible. Only the kernel's stack distinguishes those, and taking it costs as much as
// all the rest.
INLINE bool told_by_call(u32 state, u64 nr)
{
	return (state & 0xff) == 1 && (nr == NR_FUTEX + 1 || nr == NR_EPOLL_PWAIT + 1 || nr == NR_EPOLL_WAIT + 1 || nr == NR_NANOSLEEP + 1 || nr == NR_CLOCK_NANOSLEEP + 1);
}

// leaving remembers that a thread of the target starts to wait, and in which call.
INLINE void leaving(void *ctx, struct task_struct *prev, u64 now, bool blocks, bool by_call)
{
	struct thread *t = thread_of(prev->pid);
	if (!t)
		return;
	if (!blocks) {
		t->queued = now;
		return;
	}
	t->queued = 0;
	t->sk = 0;
	if (!stacks)
		return;
	t->left = now;
	t->by_call = by_call;
	t->user = 0;
	// If the kernel does not report the thread's return, the user stack must be taken now, before
	// it is known whether the wait will be long: a few thousand a second.
	struct cpu *c = this_cpu();
	if (!at_exit && c && now > c->user_at) {
		c->user_at = now + (stack_gap > 200000 ? stack_gap : 200000);
		t->user = user_stack_of(ctx, prev, 0, 1000000, 0);
	}
}

// held writes which threads had the CPU while a thread of the target was queued: the last few of
// them.
INLINE void held(struct cpu *c, u32 tid, u64 queued, u64 now)
{
	u32 at = c->next;
	for (u32 i = 0; i < SLICES; i++) {
		struct slice *s = &c->slices[(at + i) % SLICES];
		if (!s->tid || s->to <= queued)
			continue;
		u64 from = s->from > queued ? s->from : queued;
		struct middle *m = reserve(sizeof(*m));
		if (!m)
			return;
		fill(&m->s, K_HELD, F_TARGET, s->to < now ? s->to : now, tid, s->tid, 0);
		m->arg[0] = s->to - from;
		m->arg[1] = m->arg[2] = 0;
		submit(m);
	}
}

// How many floors short waits add up to before the stack of one of them is written.
#define SHORTS 5
// From how many floors on the stacks of a wait are written, however many such waits there are.
#define ALWAYS 16
// Waits from here on, ns, are few. Their kernel stacks are written whatever the call is, as the
// freezer of a cgroup stops threads in the middle of any call.
#define LONG 100000000

// coming decides whether the stacks of the wait that ends are written.
INLINE void coming(struct task_struct *next, u64 now, struct cpu *c)
{
	u32 tid = next->pid;
	struct thread *t = thread_known(tid);
	if (!t)
		return;
	if (fold && t->queued)
		held(c, tid, t->queued, now);
	t->queued = 0;
	if (!t->left)
		return;
	u64 left = t->left;
	t->left = 0;
	if (!stacks)
		return;
	u64 floor = wait_floor, took = now - left;
	bool fresh = 0;
	if (stack_gap) {
		u64 nr, first;
		syscall_of(next, &nr, &first);
		fresh = site_is_new(c, 0, nr, first, now);
		if (!fresh && took >= floor && took < ALWAYS * floor && !may(&c->stack_at[0], stack_gap, 4, now))
			return;
	}
	if (took < floor && !fresh) {
		// What short waits are for is written now and then: on a busy server all of them would cost
		// more than everything else.
		u64 owed = t->owed + took;
		if (owed < SHORTS * floor) {
			t->owed = owed;
			return;
		}
		t->owed = 0;
	}
	bool by_call = t->by_call && took < LONG;
	if (at_exit)
		c->pending = PENDING | (fresh ? PENDING_FRESH : 0) | (by_call ? PENDING_BY_CALL : 0);
	else
		tell_wait(tid, by_call && t->user ? 0 : kernel_stack_of(next), t->user);
}

// group_throttled sets the flag if t's run queue is out of quota. Newer kernels mark the thread
// itself, so there it is never set.
INLINE u16 group_throttled(struct task_struct *t)
{
	if (!field_exists(t->throttled) && field_exists(((struct cfs_rq *)0)->throttle_count) && t->se.cfs_rq->throttle_count)
		return F_GROUP_THROTTLED;
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	bool preempt = ctx[0];
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 now = ktime_get_ns();
	bool leaves = prev->tgid == target, comes = next->tgid == target;
	// The argument is what the scheduler acted upon. A waker may have changed the field since.
	u32 state = state_arg ? (u32)ctx[3] : prev->__state;
	u16 flags = (preempt ? F_PREEMPTED : 0) | (leaves ? F_TARGET : 0) | (comes ? F_OTHER_TARGET : 0);
	bool blocks = leaves && state && !preempt, by_call = 0;

	if (leaves) {
		if (field_exists(prev->throttled) && prev->throttled)
			flags |= F_THROTTLED;
		flags |= group_throttled(prev);
	}
	if (blocks) {
		struct middle *m = reserve(sizeof(*m));
		if (m) {
			fill(&m->s, K_SWITCH, flags, now, prev->pid, next->pid, state);
			m->arg[0] = state;
			syscall_of(prev, &m->arg[1], &m->arg[2]);
			by_call = told_by_call(state, m->arg[1]);
			submit(m);
		}
	} else if (!fold || leaves || comes) {
		struct small *s = reserve(sizeof(*s));
		if (s) {
			fill(s, K_SWITCH, flags, now, prev->pid, next->pid, state);
			submit(s);
		}
	}
	// A thread in TASK_DEAD does not come back.
	if (leaves && !(state & 0x80) && (stacks || fold || turns))
		leaving(ctx, prev, now, blocks, by_call);
	struct cpu *c = this_cpu();
	if (!c)
		return 0;
	c->pending = 0;
	if (fold && !leaves && prev->pid) {
		struct slice *s = &c->slices[c->next % SLICES];
		s->from = c->since;
		s->to = now;
		s->tid = prev->pid;
		c->next++;
	}
	c->since = now;
	if (comes && (stacks || fold))
		coming(next, now, c);
	return 0;
}

// A thread is back from the scheduler, on its own stacks.
SEC("tp_btf/sched_exit_tp")
int sched_exit(u64 *ctx)
{
	struct cpu *c = this_cpu();
	if (!c || !c->pending)
		return 0;
	bool fresh = c->pending & PENDING_FRESH, by_call = c->pending & PENDING_BY_CALL;
	c->pending = 0;
	struct task_struct *t = get_current_task_btf();
	if (t->tgid != target)
		return 0;
	u64 user = user_stack_of(ctx, t, 0, 1000000, fresh);
	u64 kernel = by_call && user ? 0 : stack_of(ctx, 0, 0);
	tell_wait(t->pid, kernel, user);
	return 0;
}

// How long after a timer started to be served, ns, a wake-up may be its doing: both are lines of
// one function.
#define SERVED 50000

// reads reports whether a system call, by its number plus one, reads from a socket. Who reads from
// one end of a socket of the Unix family wakes those that wait to read at the other: there is room
// to write, and no data.
INLINE bool reads(u64 nr)
{
	return nr == NR_READ + 1 || nr == NR_READV + 1 || nr == NR_RECVFROM + 1 || nr == NR_RECVMSG + 1;
}

// wakes writes which thread wakes a thread of the target. If the waker is one of the target's as
// well, it adds the call that the waker is in.
INLINE void wakes(void *ctx, struct task_struct *t, u64 now)
{
	struct task_struct *by = get_current_task_btf();
	bool own = by->tgid == target;
	if (in_interrupt(by)) {
		tell_at(K_WAKING, F_TARGET | F_INTERRUPT | (own ? F_OTHER_TARGET : 0), now, t->pid, by->pid, 0);
		struct cpu *c = this_cpu();
		if (!c || c->due_task != (u64)t || now - c->due_at > SERVED)
			return;
		c->due_task = 0;
		struct middle *m = reserve(sizeof(*m));
		if (!m)
			return;
		fill(&m->s, K_TIMER_DUE, F_TARGET, now, t->pid, 0, 0);
		m->arg[0] = m->arg[2] = 0;
		// A timer may fire early, within its slack.
		m->arg[1] = c->due < now ? c->due : now;
		submit(m);
		return;
	}
	u64 nr = 0, first = 0, kernel = 0, user = 0;
	if (own || by->mm)
		syscall_of(by, &nr, &first);
	if (!own) {
		tell_at(K_WAKING, F_TARGET | (reads(nr) ? F_READS : 0), now, t->pid, by->pid, 0);
		return;
	}
	struct cpu *c = this_cpu();
	bool taken = stacks && c, fresh = 0;
	if (taken && stack_gap) {
		fresh = site_is_new(c, 1, nr, first, now);
		taken = fresh || may(&c->stack_at[1], stack_gap, 4, now);
	}
	if (!taken) {
		struct middle *m = reserve(sizeof(*m));
		if (!m)
			return;
		fill(&m->s, K_WAKING, F_TARGET | F_OTHER_TARGET, now, t->pid, by->pid, 0);
		m->arg[0] = 0;
		m->arg[1] = nr;
		m->arg[2] = first;
		submit(m);
		return;
	}
	user = user_stack_of(ctx, by, 1, 500000, fresh);
	// The call's number says nearly all that the kernel's part of the stack could say, which costs
	// twice as much: only a few of those are taken.
	if (nr != NR_FUTEX + 1 && nr != NR_TGKILL + 1 && now > c->kernel_at) {
		c->kernel_at = now + 1000000;
		kernel = stack_of(ctx, 0, 0);
	}
	struct large *l = reserve(sizeof(*l));
	if (!l)
		return;
	fill(&l->m.s, K_WAKING, F_TARGET | F_OTHER_TARGET, now, t->pid, by->pid, 0);
	l->m.arg[0] = 0;
	l->m.arg[1] = nr;
	l->m.arg[2] = first;
	l->kernel = kernel;
	l->user = user;
	submit(l);
}

// queued_at remembers since when a thread waits for a CPU, if that is needed.
INLINE void queued_at(u32 tid, u64 now)
{
	if (!fold)
		return;
	struct thread *m = thread_of(tid);
	if (m)
		m->queued = now;
}

SEC("tp_btf/sched_waking")
int sched_waking(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	if (t->tgid != target)
		return 0;
	u64 now = ktime_get_ns();
	wakes(ctx, t, now);
	queued_at(t->pid, now);
	return 0;
}

INLINE void queued(struct task_struct *t, u32 cpu, u16 flags)
{
	if (t->tgid != target)
		return;
	u64 now = ktime_get_ns();
	tell_at(K_WAKEUP, F_TARGET | flags, now, t->pid, 0, cpu);
	if (flags & F_NEW)
		queued_at(t->pid, now);
}

// This is only for kernels where the group must be asked whether it is throttled. A woken thread is
// queued on the CPU it left, unless sched_migrate_task says that it moves.
SEC("tp_btf/sched_wakeup")
int sched_wakeup(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	queued(t, t->thread_info.cpu, group_throttled(t));
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int sched_wakeup_new(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	queued(t, t->thread_info.cpu, F_NEW | group_throttled(t));
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int sched_migrate_task(u64 *ctx)
{
	queued((void *)ctx[0], ctx[1], F_MIGRATE);
	return 0;
}
