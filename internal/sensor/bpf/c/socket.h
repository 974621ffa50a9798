// Since when a socket had data for a reader that found it empty. The event has which thread found
// it empty and which one read it, so that both ends of the wait between are known. Data for a
// socket that no thread found empty keeps no thread waiting. And when a thread goes on from one
// socket to another without waiting. In a loop around many sockets, requests wait that lie in a
// socket until the loop comes to it: there a read that leaves nothing finds the socket empty, too.
#pragma once
#include "thread.h"

struct socket {
	u64 sk;
	u64 empty; // when a thread of the target found it empty; 0: not since it last read data
	u64 ready; // when data came after that; 0: not yet
	u64 number;
	u32 by;    // the thread that found it empty
	u32 pad;
};

#define SOCKETS 16384 // a power of two

// The sockets that the target reads, by a hash of the address. Of two sockets with the same hash
// the first is forgotten. The programs run for every read of the machine, and an array costs a
// tenth of a hash map.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SOCKETS);
	__type(key, u32);
	__type(value, struct socket);
} sockets SEC(".maps");

volatile u64 socket_numbers;

// socket_at returns a socket's place, which may hold another socket.
INLINE struct socket *socket_at(u64 sk)
{
	u64 low;
	// The verifier allows no arithmetic on a pointer, but half of one is a number.
	asm volatile("r1 = %1\nw1 = w1\n%0 = r1" : "=r"(low) : "r"(sk) : "r1");
	u64 h = low * 0x9e3779b97f4a7c15;
	u32 at = h >> 50;
	return map_lookup(&sockets, &at);
}

#define EAGAIN 11

// Turns of a loop are told apart from so many ns on: shorter ones are together with the next.
#define TURN 100000

// turn writes that a thread which did not wait meanwhile goes on to another socket: a loop around
// many sockets then starts with the next request.
INLINE void turn(u32 tid, u64 sk)
{
	struct thread *t = turns ? thread_of(tid) : 0;
	if (!t || t->sk == sk)
		return;
	bool first = !t->sk;
	u64 now = ktime_get_ns();
	t->sk = sk;
	if (!first && now - t->turn < TURN)
		return;
	t->turn = now;
	if (!first)
		tell_at(K_TURN, F_TARGET, now, tid, 0, 0);
}

SEC("tp_btf/sk_data_ready")
int socket_ready(u64 *ctx)
{
	u64 sk = ctx[0];
	struct socket *s = socket_at(sk);
	if (s && s->sk == sk && s->empty && !s->ready)
		s->ready = ktime_get_ns();
	return 0;
}

// taken writes since when the data was there that a thread has read, if it came after the socket had
// been found empty. In a loop it leaves out what is shorter than a turn.
INLINE void taken(struct socket *s, u32 tid)
{
	u64 now = ktime_get_ns();
	u64 empty = s->empty, ready = s->ready;
	s->empty = 0;
	s->ready = 0;
	if (!empty || !ready || ready < empty || now < ready || (turns && now - ready < TURN))
		return;
	struct middle *m = reserve(sizeof(*m));
	if (!m)
		return;
	fill(&m->s, K_SOCKET_READY, F_TARGET, ready, tid, s->by, 0);
	m->arg[0] = now - ready;
	m->arg[1] = s->number;
	m->arg[2] = empty;
	submit(m);
}

// emptied notes that a thread found a socket empty. Data that came during this call does not count
// as the end of the wait that follows: too late is better than too early. If the call has read
// something, more may be there.
INLINE void emptied(struct socket *s, struct sock *sk, u32 tid, bool some)
{
	if (s->sk != (u64)sk) {
		s->sk = (u64)sk;
		s->number = __sync_fetch_and_add(&socket_numbers, 1) + 1;
	}
	s->ready = 0;
	s->empty = ktime_get_ns();
	s->by = tid;
	if (some && sk->sk_receive_queue.qlen)
		s->empty = 0;
}

SEC("tp_btf/sock_recv_length")
int socket_read(u64 *ctx)
{
	struct task_struct *t = get_current_task_btf();
	if (t->tgid != target)
		return 0;
	u64 sk = ctx[0];
	int got = ctx[1];
	if (got > 0)
		turn(t->pid, sk);
	struct socket *s = socket_at(sk);
	if (!s)
		return 0;
	if (got != -EAGAIN && s->sk == sk && s->empty)
		taken(s, t->pid);
	if (got == -EAGAIN || (turns && got > 0))
		emptied(s, (struct sock *)sk, t->pid, got > 0);
	return 0;
}
