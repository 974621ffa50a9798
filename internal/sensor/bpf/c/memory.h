// What a thread of the target does for memory: stretches of reclaim, of compaction, of waiting for
// an address space, of page faults (those of NUMA balancing apart), and flushed pages.
#pragma once
#include "thread.h"

// ours returns what is remembered of the current thread, if it is one of the target's.
INLINE struct thread *ours(u32 *tid)
{
	struct task_struct *t = get_current_task_btf();
	if (t->tgid != target)
		return 0;
	*tid = t->pid;
	return thread_of(t->pid);
}

INLINE void start(struct begin *b, u64 first, u64 second)
{
	b->at = ktime_get_ns();
	b->a = first;
	b->b = second;
}

// opens starts a stretch of the current thread.
INLINE int opens(u32 stretch, u64 first, u64 second)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		start(&t->open[stretch], first, second);
	return 0;
}

// closes ends the stretch, and reports it if it lasted.
INLINE int closes(u32 stretch, u8 kind, u16 flags, u64 floor)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		end(kind, flags, tid, &t->open[stretch], floor);
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int reclaim_begin(u64 *ctx)
{
	return opens(RECLAIM, (u32)ctx[0], (u32)ctx[1]);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int reclaim_end(u64 *ctx)
{
	return closes(RECLAIM, K_RECLAIM, 0, 0);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int memcg_reclaim_begin(u64 *ctx)
{
	return opens(MEMCG, (u32)ctx[0], (u32)ctx[1]);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int memcg_reclaim_end(u64 *ctx)
{
	return closes(MEMCG, K_RECLAIM, F_MEMCG, 0);
}

// The order that is asked for. The kernel reports it before it compacts each of the zones.
SEC("tp_btf/mm_compaction_try_to_compact_pages")
int compaction_try(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t) {
		t->open[COMPACTION].a = (u32)ctx[0];
		t->open[COMPACTION].b = (u32)ctx[1];
	}
	return 0;
}

SEC("tp_btf/mm_compaction_begin")
int compaction_begin(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		t->open[COMPACTION].at = ktime_get_ns();
	return 0;
}

SEC("tp_btf/mm_compaction_end")
int compaction_end(u64 *ctx)
{
	return closes(COMPACTION, K_COMPACTION, 0, 0);
}

// A shorter wait, ns, is no wait: the lock was free, or nearly so.
#define SHORT 10000

SEC("tp_btf/mmap_lock_start_locking")
int mmap_lock_start(u64 *ctx)
{
	return opens(MMAP, ctx[0], 0);
}

SEC("tp_btf/mmap_lock_acquire_returned")
int mmap_lock_acquired(u64 *ctx)
{
	return closes(MMAP, K_MMAP_LOCK, ctx[1] & 1 ? F_WRITE : 0, SHORT);
}

// A thread flushes other CPUs, or its own after a change of its mappings. Flushes by a switch, or
// on behalf of another CPU, are left out.
SEC("tp_btf/tlb_flush")
int tlb_flush(u64 *ctx)
{
	u32 reason = ctx[0];
	if (reason != 3 && reason != 4) // TLB_LOCAL_MM_SHOOTDOWN, TLB_REMOTE_SEND_IPI
		return 0;
	struct task_struct *t = get_current_task_btf();
	if (t->tgid != target)
		return 0;
	struct middle *m = reserve(sizeof(*m));
	if (!m)
		return 0;
	fill(&m->s, K_TLB_FLUSH, F_TARGET, ktime_get_ns(), t->pid, 0, 0);
	m->arg[0] = 0;
	m->arg[1] = ctx[1];
	m->arg[2] = reason;
	submit(m);
	return 0;
}

SEC("tp_btf/contention_begin")
int contention_begin(u64 *ctx)
{
	struct task_struct *task = get_current_task_btf();
	if (task->tgid != target || in_interrupt(task))
		return 0;
	return opens(LOCK, ctx[0], (u32)ctx[1]);
}

SEC("tp_btf/contention_end")
int contention_end(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	// Locks that an interrupt takes come between start and end.
	if (t && t->open[LOCK].at && t->open[LOCK].a == ctx[0])
		end(K_KERNEL_LOCK, 0, tid, &t->open[LOCK], SHORT);
	return 0;
}

// The kernel counts for each thread the faults that NUMA balancing caused: on memory of another
// node, and of its own. It restarts the counts now and then, so only whether they have changed
// means something.
INLINE void numa_counts(struct task_struct *task, struct numa *n)
{
	n->remote = task->numa_faults_locality[0];
	n->local = task->numa_faults_locality[1];
	n->moved = task->numa_pages_migrated;
}

SEC("tp_btf/page_fault_user")
int page_fault(u64 *ctx)
{
	struct task_struct *task = get_current_task_btf();
	if (task->tgid != target)
		return 0;
	struct thread *t = thread_of(task->pid);
	if (!t)
		return 0;
	if (field_exists(task->numa_pages_migrated))
		numa_counts(task, &t->numa);
	start(&t->open[FAULT], ctx[0], ctx[2]);
	return 0;
}

// hinted reports whether NUMA balancing caused the fault that ends now, and records it. There may
// be hundreds of thousands a second, so short ones are written together, as if they had come one
// after another up to now.
INLINE bool hinted(struct task_struct *task, struct thread *t)
{
	u64 at = t->open[FAULT].at;
	if (!field_exists(task->numa_pages_migrated) || !at)
		return 0;
	struct numa now;
	numa_counts(task, &now);
	if (now.remote == t->numa.remote && now.local == t->numa.local && now.moved == t->numa.moved)
		return 0;
	u64 end = ktime_get_ns();
	struct hints *h = &t->hints;
	t->open[FAULT].at = 0;
	h->ns += end - at;
	h->moved += now.moved - t->numa.moved;
	h->faults++;
	if (now.remote != t->numa.remote)
		h->remote++;
	if (h->ns < SHORT)
		return 1;
	struct middle *m = reserve(sizeof(*m));
	if (m) {
		fill(&m->s, K_NUMA_MOVE, F_TARGET, end - h->ns, task->pid, 0, 0);
		m->arg[0] = h->ns;
		m->arg[1] = h->moved;
		m->arg[2] = (u64)h->faults << 32 | h->remote << 16 | (u16)get_numa_node_id();
		submit(m);
	}
	*h = (struct hints){};
	return 1;
}

// The kernel's software events report a fault as it ends, and whether it was a major one.
INLINE int fault_end(u16 flags, u64 floor)
{
	struct task_struct *task = get_current_task_btf();
	if (task->tgid != target)
		return 0;
	struct thread *t = thread_of(task->pid);
	if (t && !hinted(task, t))
		end(K_FAULT, flags, task->pid, &t->open[FAULT], floor);
	return 0;
}

SEC("perf_event")
int fault_minor(void *ctx)
{
	return fault_end(0, SHORT);
}

SEC("perf_event")
int fault_major(void *ctx)
{
	return fault_end(F_MAJOR, 0);
}
