// Each stack is written once, with a hash of its addresses; records have the hash. bpf_get_stackid
// would lose one in ten, as two stacks often fall on one of its slots.
#pragma once
#include "record.h"

#define DEPTH 127

struct stack {
	struct small s; // arg: whether a user stack
	u64 hash;
	u64 addr[DEPTH + 1];
};

// One for each CPU and kind of writer: the scheduler's programs run with interrupts off, and
// samples are taken in an interrupt.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct stack);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, u32);
} told SEC(".maps");

// tell_stack returns the hash of the addresses in st, and writes them if the hash is new; 0 if that
// was not possible.
__attribute__((noinline)) u64 tell_stack(struct stack *st, long bytes, u32 user)
{
	if (!st || bytes < 8)
		return 0;
	u32 n = (u32)bytes / 8;
	u64 h = 0x9e3779b97f4a7c15 + user;
	for (u32 i = 0; i < DEPTH; i++) {
		if (i >= n)
			break;
		h ^= st->addr[i];
		h *= 0xff51afd7ed558ccd;
		h ^= h >> 32;
	}
	h |= 1;
	if (map_lookup(&told, &h))
		return h;
	u32 one = 1;
	fill(&st->s, K_STACK, 0, ktime_get_ns(), 0, 0, user);
	st->hash = h;
	if (!output(st, sizeof(st->s) + 8 + (n & 127) * 8, 1))
		return 0;
	map_update(&told, &h, &one, 0);
	return h;
}

// stack_of writes the stack of the current task, and returns its hash.
INLINE u64 stack_of(void *ctx, u32 slot, bool user)
{
	struct stack *st = map_lookup(&scratch, &slot);
	if (!st)
		return 0;
	return tell_stack(st, get_stack(ctx, st->addr, DEPTH * 8, user ? BPF_F_USER_STACK : 0), user);
}

// kernel_stack_of writes the stack in which a task sleeps in the kernel, and returns its hash.
INLINE u64 kernel_stack_of(struct task_struct *t)
{
	u32 slot = 0;
	struct stack *st = map_lookup(&scratch, &slot);
	if (!st)
		return 0;
	return tell_stack(st, get_task_stack(t, st->addr, DEPTH * 8, 0), 0);
}
