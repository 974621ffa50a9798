// What the programs write, as internal/sensor/bpf/event.go reads it, and how they write it.
#pragma once
#include "helpers.h"

// Kinds; event.go has the same list.
enum {
	K_SWITCH = 1,
	K_WAKING,
	K_WAKEUP,
	K_FORK,
	K_EXIT,
	K_EXEC,
	K_NAME,
	K_STACK,
	K_WAIT_STACK,
	K_UNTHROTTLE,
	K_SIGNAL,
	K_DELIVERED,
	K_SAMPLE,
	K_FAULT,
	K_RECLAIM,
	K_COMPACTION,
	K_MMAP_LOCK,
	K_TLB_FLUSH,
	K_KERNEL_LOCK,
	K_NUMA_MOVE,
	K_SOCKET_READY,
	K_TIMER_DUE,
	K_HELD,
	K_COPY,
	K_TURN,
};

// Flags, likewise.
enum {
	F_PREEMPTED = 1,
	F_THROTTLED = 2,
	F_GROUP_THROTTLED = 4,
	F_TARGET = 8,
	F_OTHER_TARGET = 16,
	F_INTERRUPT = 32,
	F_NEW = 64,
	F_MIGRATE = 128,
	F_MEMCG = 256,
	F_WRITE = 512,
	F_KERNEL_THREAD = 1024,
	F_LEAVING = 2048,
	F_MAJOR = 4096,
	F_READS = 8192,
};

// A record has one of three sizes, which the ring's own length of it distinguishes.
struct small {
	u64 time;
	u32 tid, other;
	u32 arg;
	u16 flags;
	u8 kind, pad;
};

struct middle {
	struct small s;
	u64 arg[3];
};

struct large {
	struct middle m;
	u64 kernel, user; // stacks' hashes
};

struct name {
	struct small s; // other: tgid; arg: number in its innermost pid namespace
	u32 self_tid, self_tgid; // in the recorder's pid namespace; 0: not in it
	u64 cgroup;
	char comm[16];
};

// Set before loading.
const volatile u32 target;         // tgid, in the first pid namespace
const volatile u32 self_ns;        // inode of the recorder's pid namespace
const volatile u32 state_arg;      // whether sched_switch has prev_state (Linux 5.18)
const volatile u32 preempt_from;   // PREEMPT_
const volatile u32 cgroup_default; // whether the cpu controller is in the default hierarchy

enum { PREEMPT_STACK, PREEMPT_VAR, PREEMPT_HOT, PREEMPT_THREAD };

const volatile u32 at_exit;        // whether sched_exit_tp reports that a thread is back (Linux 6.16)
// Addresses of functions; 0: not known.
const volatile u64 period_timer, slack_timer, csd_unthrottle, wakeup_timer, tick_timer;
const volatile u64 tick_period; // ns

// Changed while running: what is written in less detail.
volatile u32 stacks = 1;           // whether stacks are taken
volatile u32 turns;                // whether the turns of loops around many sockets are told apart
volatile u32 copies;               // whether the stack's bytes are copied, of programs without frame pointers
volatile u32 fold;                 // whether others' switches are folded
// From how many ns on a wait's stacks are written. Of shorter waits one is, whenever they add up to a few
// floors.
volatile u64 wait_floor = 1000000;
// In so many ns of a CPU one user stack of waits and one of wakers is taken, and a few of calls not seen
// before; 0: all are.
volatile u64 stack_gap;

// The programs write into a log for each CPU, which the recorder has mapped. A BPF ring buffer
// takes a lock and two calls for each record, and eight times as long. This log needs neither: only
// an interrupt's program can come in between, on the same CPU.
struct log {
	u64 head, pad[7]; // bytes given away since the start; written by the programs
	u64 tail, pad2[7]; // bytes read since the start; written by the recorder
	u8 data[0]; // log_size bytes, and room for a record that starts at their end
};

// The start of a record. tag is its position in units of 8 bytes: what is left of an earlier round
// has a different one.
struct head {
	u32 size; // without this head; with BUSY while it is being written
	u32 tag;
};

#define BUSY (1u << 31)
#define LARGEST 2112 // bytes of a record and its head
#define MARGIN (4 * LARGEST) // what interrupts may write between the check for room and taking it

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 128);
} logs SEC(".maps");

const volatile u64 log_size; // bytes, a power of two

// What was lost, by CPU: a cache line each.
struct loss {
	u64 records, stacks, pad[6];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct loss);
} losses SEC(".maps");

static __attribute__((noinline)) int lost(u32 cpu, bool stack)
{
	struct loss *l = map_lookup(&losses, &cpu);
	if (!l)
		return 0;
	// An interrupt's program may run inside this one.
	if (stack)
		__sync_fetch_and_add(&l->stacks, 1);
	else
		__sync_fetch_and_add(&l->records, 1);
	return 0;
}

// reserve returns a place for size bytes, a multiple of 8, in the log; 0 if it is full.
INLINE void *reserve(u32 size)
{
	u32 cpu = get_smp_processor_id();
	struct log *l = map_lookup(&logs, &cpu);
	u64 need = size + sizeof(struct head);
	if (unlikely(!l || l->head - l->tail + need + MARGIN > log_size)) {
		lost(cpu, 0);
		return 0;
	}
	u64 at = __sync_fetch_and_add(&l->head, need);
	struct head *h = (void *)l->data + (at & (log_size - 8));
	*(u64 *)h = (at >> 3) << 32 | BUSY | size;
	return h + 1;
}

INLINE void submit(void *r)
{
	struct head *h = (struct head *)r - 1;
#if defined(__TARGET_ARCH_x86)
	asm volatile("" ::: "memory"); // x86 keeps stores in order
	h->size &= ~BUSY;
#else
	__sync_lock_test_and_set(&h->size, h->size & ~BUSY);
#endif
}

// output writes bytes from one of the programs' own maps.
static __attribute__((noinline)) int output(void *from, u32 size, bool stack)
{
	u32 cpu = get_smp_processor_id();
	struct log *l = map_lookup(&logs, &cpu);
	size &= ~7u;
	if (size > LARGEST - sizeof(struct head))
		return 0;
	u64 need = size + sizeof(struct head);
	if (!l || l->head - l->tail + need + MARGIN > log_size) {
		lost(cpu, stack);
		return 0;
	}
	u64 at = __sync_fetch_and_add(&l->head, need);
	struct head *h = (void *)l->data + (at & (log_size - 8));
	*(u64 *)h = (at >> 3) << 32 | BUSY | size;
	probe_read_kernel(h + 1, size, from);
	submit(h + 1);
	return 1;
}

INLINE void fill(struct small *s, u8 kind, u16 flags, u64 time, u32 tid, u32 other, u32 arg)
{
	s->time = time;
	s->tid = tid;
	s->other = other;
	s->arg = arg;
	s->flags = flags;
	s->kind = kind;
	s->pad = 0;
}

INLINE void tell_at(u8 kind, u16 flags, u64 time, u32 tid, u32 other, u32 arg)
{
	struct small *s = reserve(sizeof(*s));
	if (!s)
		return;
	fill(s, kind, flags, time, tid, other, arg);
	submit(s);
}

INLINE void tell(u8 kind, u16 flags, u32 tid, u32 other, u32 arg)
{
	tell_at(kind, flags, ktime_get_ns(), tid, other, arg);
}

// A constant that our loader replaces by the kernel's per-CPU variable that marker stands for: the
// eBPF library does not bind such variables.
#define percpu(marker)                                     \
	({                                                     \
		void *p;                                           \
		asm volatile("%0 = " #marker " ll" : "=r"(p));     \
		this_cpu_ptr(p);                                   \
	})

// syscall_of returns the number of the system call that a task of the target is in, plus one, and
// its first argument.
INLINE void syscall_of(struct task_struct *t, u64 *nr, u64 *first)
{
	struct pt_regs *r = task_pt_regs(t);
#if defined(__TARGET_ARCH_x86)
	s64 n = r->orig_ax;
	*first = r->di;
#else
	s64 n = r->syscallno;
	*first = r->orig_x0;
#endif
	*nr = n < 0 ? 0 : n + 1;
}

// on_own_stack reports whether we run on the current task's stack, and not on one for interrupts.
// It is a function of its own because a program with much on its stack has that stack elsewhere
// (Linux 6.13).
static __attribute__((noinline)) bool on_own_stack(struct task_struct *t)
{
	struct pt_regs *bottom = task_pt_regs(t);
	u64 above;
	asm volatile("%0 = %1\n%0 -= r10" : "=&r"(above) : "r"(bottom));
	return above < 16384;
}

// in_interrupt reports whether the current task is a bystander. It goes by the preemption count:
// bits of softirq being served, hardirq, NMI. Without that it goes by our own stack: interrupts in
// the kernel run on a stack of their own, those in user mode on the task's, which is then in no
// system call. A page fault, or the way back to user mode, that wakes a thread counts as an
// interrupt as well.
INLINE bool in_interrupt(struct task_struct *by)
{
	int count = 0;
	if (preempt_from == PREEMPT_VAR) {
		count = *(int *)percpu(0x5ca1ab1e00000001);
	} else if (preempt_from == PREEMPT_HOT) {
		count = ((struct pcpu_hot *)percpu(0x5ca1ab1e00000002))->preempt_count;
	} else if (preempt_from == PREEMPT_THREAD) {
		count = by->thread_info.preempt_count;
	} else {
		if (!by->pid)
			return 1;
		if (!on_own_stack(by))
			return 1;
		u64 nr, first;
		if (!by->mm)
			return 0;
		syscall_of(by, &nr, &first);
		return !nr;
	}
	return count & 0x00ff0100;
}
