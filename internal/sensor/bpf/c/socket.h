// From when on a socket had data for a reader that found it empty. Who found it empty and who read it are told with it, so that the
// wait between is known by both its ends: what comes to a socket that nobody found empty keeps nobody waiting.
#pragma once
#include "thread.h"

struct socket {
	u64 empty; // when a thread of the target found it so; 0 it has not since it read from it
	u64 ready; // when data came after that; 0 not yet
	u64 number;
	u32 by;    // who found it empty
	u32 pad;
};

// By address of the socket, those that the target reads: of more than these the least used are forgotten.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct socket);
} sockets SEC(".maps");

volatile u64 socket_numbers;
volatile u32 socket_mask; // of the sockets one in so many plus one is looked at

INLINE bool passed_over(u64 sk)
{
	return (u32)(sk * 0x9e3779b97f4a7c15 >> 40) & socket_mask;
}

#define EAGAIN 11

SEC("tp_btf/sk_data_ready")
int socket_ready(u64 *ctx)
{
	u64 sk = ctx[0];
	if (passed_over(sk))
		return 0;
	struct socket *s = map_lookup(&sockets, &sk);
	if (s && s->empty && !s->ready)
		s->ready = ktime_get_ns();
	return 0;
}

SEC("tp_btf/sock_recv_length")
int socket_read(u64 *ctx)
{
	struct task_struct *t = get_current_task_btf();
	if (t->tgid != target)
		return 0;
	u64 sk = ctx[0];
	if (passed_over(sk))
		return 0;
	int got = ctx[1];
	struct socket *s = map_lookup(&sockets, &sk);
	if (got != -EAGAIN && (!s || !s->empty))
		return 0;
	u64 now = ktime_get_ns();
	if (got == -EAGAIN) {
		if (!s) {
			struct socket fresh = {.empty = now, .by = t->pid};
			fresh.number = __sync_fetch_and_add(&socket_numbers, 1) + 1;
			map_update(&sockets, &sk, &fresh, 0);
			return 0;
		}
		// Data that came while this call looked is not taken for what ends the wait after it: too late rather than too early.
		s->ready = 0;
		s->empty = now;
		s->by = t->pid;
		return 0;
	}
	u64 empty = s->empty, ready = s->ready;
	s->empty = 0;
	s->ready = 0;
	if (!empty || !ready || ready < empty || now < ready)
		return 0;
	struct middle *m = reserve(sizeof(*m));
	if (!m)
		return 0;
	fill(&m->s, K_SOCKET_READY, F_TARGET, ready, t->pid, s->by, 0);
	m->arg[0] = now - ready;
	m->arg[1] = s->number;
	m->arg[2] = empty;
	submit(m);
	return 0;
}
