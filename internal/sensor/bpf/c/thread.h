// What is remembered of each thread of the target between two tracepoints.
#pragma once
#include "stack.h"

struct begin {
	u64 at, a, b;
};

struct thread {
	u64 left;        // when it was switched out blocked; 0 not
	u64 owed;        // ns of waits whose stacks were not told
	u64 user;        // user stack of the wait, where that had to be taken as it began
	struct begin reclaim, memcg, compaction, mmap, lock, fault;
	u64 lock_addr;
	u64 queued;      // since when it waits for a CPU; 0 not
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

static const struct thread no_thread;

// thread_of finds a thread's memory, and makes it. 0 when there are too many threads.
INLINE struct thread *thread_of(u32 tid)
{
	struct thread *t = map_lookup(&threads, &tid);
	if (likely(t))
		return t;
	map_update(&threads, &tid, &no_thread, BPF_NOEXIST);
	return map_lookup(&threads, &tid);
}

#define SLICES 16

// One that is not of the target had a CPU.
struct slice {
	u64 from, to;
	u64 tid;
};

// What a CPU's programs leave for each other.
struct cpu {
	u64 pending;  // the thread that comes owes the stacks of a wait: since when it waited
	u64 due;      // of the timer that is being served
	u64 user_at;  // when the next user stack may be taken as a wait begins
	u64 kernel_at; // when the next kernel stack of a waker may be
	u64 since;    // when the last switch was
	u64 next;     // of slices, the oldest
	struct slice slices[SLICES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

INLINE struct cpu *this_cpu(void)
{
	u32 zero = 0;
	return map_lookup(&cpus, &zero);
}

// end tells a stretch that ends now, if it lasted.
INLINE void end(u8 kind, u16 flags, u32 tid, struct begin *b, u64 floor)
{
	u64 now = ktime_get_ns(), at = b->at;
	b->at = 0;
	if (!at || now - at < floor)
		return;
	struct middle *m = reserve(sizeof(*m));
	if (!m)
		return;
	fill(&m->s, kind, flags | F_TARGET, at, tid, 0, 0);
	m->arg[0] = now - at;
	m->arg[1] = b->a;
	m->arg[2] = b->b;
	submit(m);
}
