// What is remembered of each thread of the target between two tracepoints.
#pragma once
#include "stack.h"

struct begin {
	u64 at, a, b;
};

// What a thread may be in the middle of.
enum { RECLAIM, MEMCG, COMPACTION, MMAP, LOCK, FAULT, STRETCHES };

// What the kernel had counted when a fault started, see numa_counts.
struct numa {
	u32 remote, local, moved;
};

// Faults of NUMA balancing that are not written yet.
struct hints {
	u64 ns;
	u32 moved, faults, remote;
};

struct thread {
	u64 tid;
	u64 left;        // when it was switched out blocked; 0: it was not
	u64 owed;        // ns of waits whose stacks were not written
	u64 user;        // user stack of the wait, if it had to be taken at its start
	struct begin open[STRETCHES];
	struct hints hints;
	struct numa numa;
	u64 queued;      // since when it waits for a CPU; 0: it does not
	u64 by_call;     // whether the call alone says what the wait is for
	u64 sk;          // the socket that it read last; 0: none since it waited
	u64 turn;        // since when it works on what it read, as far as that is written
};

#define THREADS 16384 // a power of two

// By the low bits of the thread's number: an array costs a tenth of a hash map. Two of the target's
// threads share the bits only if 16384 threads were created between them; then one is forgotten for
// the other.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREADS);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

static const struct thread no_thread;

INLINE struct thread *thread_known(u32 tid)
{
	u32 at = tid & (THREADS - 1);
	struct thread *t = map_lookup(&threads, &at);
	return t && t->tid == tid ? t : 0;
}

// thread_of finds what is remembered of a thread, and makes it anew if need be.
INLINE struct thread *thread_of(u32 tid)
{
	u32 at = tid & (THREADS - 1);
	struct thread *t = map_lookup(&threads, &at);
	if (t && unlikely(t->tid != tid)) {
		*t = no_thread;
		t->tid = tid;
	}
	return t;
}

INLINE void forget_thread(u32 tid)
{
	struct thread *t = thread_known(tid);
	if (t)
		t->tid = 0;
}

#define SLICES 32

// A time in which a thread that is not the target's had a CPU.
struct slice {
	u64 from, to;
	u64 tid;
};

#define PENDING 1
#define PENDING_FRESH 2   // at a site that was not seen before
#define PENDING_BY_CALL 4 // the call says what the wait was for

// What a CPU's programs leave for each other.
struct cpu {
	u64 pending;  // PENDING_: the stacks of the coming thread's wait are to be taken
	u64 due;      // when the timer that was served last was due
	u64 due_task; // the task that it wakes
	u64 due_at;   // when its serving started
	u64 user_at;  // when the next user stack may be taken at the start of a wait
	u64 kernel_at; // when the next kernel stack of a waker may be taken
	u64 stack_at[2]; // see may: user stacks of waits and of wakers, if not all are taken
	u64 site_at;  // see may: stacks of new sites
	u64 copy_at[2]; // see may: copies of stacks, of waits and of wakers
	u64 copies;   // so far, for their names
	u64 since;    // when the last switch was
	u64 next;     // of slices: the oldest
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

#if defined(__TARGET_ARCH_x86)
#define COPY 2048

// A copy of the innermost bytes of a user stack, for the recorder to unwind.
struct copy {
	struct small s;
	u64 hash, ip, sp, bp;
	u8 bytes[COPY];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct copy);
} copying SEC(".maps");

// copy_of writes a copy of the current task's user stack, and returns its name; 0 if there is none.
static __attribute__((noinline)) u64 copy_of(struct pt_regs *r, struct cpu *c, u32 tid)
{
	u32 zero = 0, cpu = get_smp_processor_id();
	struct copy *st = map_lookup(&copying, &zero);
	if (!st || !c || !r)
		return 0;
	st->ip = r->ip;
	st->sp = r->sp;
	st->bp = r->bp;
	u32 n = COPY;
	if (probe_read_user(st->bytes, COPY, (void *)st->sp)) {
		// The stack ends earlier: copy up to the end of the page, which is mapped.
		n = 4096 - (st->sp & 4095);
		if (n > COPY - 1)
			return 0;
		if (probe_read_user(st->bytes, n, (void *)st->sp))
			return 0;
	}
	st->hash = ++c->copies << 17 | (u64)cpu << 1; // even: hashes are odd
	fill(&st->s, K_COPY, 0, ktime_get_ns(), tid, 0, 1);
	return output(st, sizeof(*st) - COPY + n, 1) ? st->hash : 0;
}
#endif

// may reports whether one more is allowed now, at one in gap ns and burst of them at once; *at is
// up to when the time is used up.
INLINE bool may(u64 *at, u64 gap, u64 burst, u64 now)
{
	u64 used = *at;
	if (used + burst * gap < now)
		used = now - burst * gap;
	if (used + gap > now)
		return 0;
	*at = used + gap;
	return 1;
}

// user_stack_of writes the current task's user stack, by frame pointers or as a copy, and returns
// its hash or name. There is a copy of each new site, and of each kind one in gap ns on average.
INLINE u64 user_stack_of(void *ctx, struct task_struct *t, u32 kind, u64 gap, bool fresh)
{
#if defined(__TARGET_ARCH_x86)
	if (copies) {
		struct cpu *c = this_cpu();
		if (c && (fresh || may(&c->copy_at[kind & 1], gap, 50, ktime_get_ns()))) {
			u64 name = copy_of(task_pt_regs(t), c, t->pid);
			if (name)
				return name;
		}
	}
#endif
	return stack_of(ctx, 0, 1);
}

#define SITES 4096 // a power of two

// System calls in which threads of the target waited or woke others, by a hash of the call and of a
// futex's address.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SITES);
	__type(key, u32);
	__type(value, u64);
} sites SEC(".maps");

#if defined(__TARGET_ARCH_x86)
#define NR_FUTEX 202
#define NR_READ 0
#define NR_READV 19
#define NR_RECVFROM 45
#define NR_RECVMSG 47
#define NR_EPOLL_WAIT 232
#define NR_EPOLL_PWAIT 281
#define NR_NANOSLEEP 35
#define NR_CLOCK_NANOSLEEP 230
#define NR_TGKILL 234
#else
#define NR_FUTEX 98
#define NR_READ 63
#define NR_READV 65
#define NR_RECVFROM 207
#define NR_RECVMSG 212
#define NR_EPOLL_WAIT 22 // it is epoll_pwait
#define NR_EPOLL_PWAIT 22
#define NR_NANOSLEEP 101
#define NR_CLOCK_NANOSLEEP 115
#define NR_TGKILL 131
#endif

// site_is_new reports, for a few hundred calls a second at most, whether no call like this one was
// seen before, or it has been forgotten.
INLINE bool site_is_new(struct cpu *c, u32 kind, u64 nr, u64 first, u64 now)
{
	u64 h = nr << 1 | kind;
	if (nr == NR_FUTEX + 1)
		h ^= first << 10;
	h *= 0x9e3779b97f4a7c15;
	h ^= h >> 29;
	h = h * 0xff51afd7ed558ccd | 1;
	u32 at = h >> 52;
	u64 *s = map_lookup(&sites, &at);
	if (!s || *s == h || !may(&c->site_at, 2000000, 50, now))
		return 0;
	*s = h;
	return 1;
}

// end writes a stretch that ends now, if it lasted.
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
