// Which threads there are: those at the start by an iterator, later ones by fork, new names by
// rename.
#pragma once
#include "thread.h"

// follow reads a field behind a pointer. The verifier allows p->f as well, but for each it searches
// all of the kernel's types for four names: a millisecond of loading.
#define follow(p, f)                                       \
	({                                                     \
		__typeof__((p)->f) to = 0;                         \
		probe_read_kernel(&to, sizeof(to), &(p)->f);       \
		to;                                                \
	})

INLINE u64 cgroup_of(struct task_struct *t)
{
	struct css_set *set = follow(t, cgroups);
	struct cgroup *group;
	if (cgroup_default) {
		group = follow(set, dfl_cgrp);
	} else {
		struct cgroup_subsys_state *css = follow(set, subsys[ENUM(cgroup_subsys_id, cpu_cgrp_id)]);
		group = follow(css, cgroup);
	}
	struct kernfs_node *node = follow(group, kn);
	return follow(node, id);
}

// numbers_of finds a task's numbers in its own innermost pid namespace and in the recorder's.
// Namespaces nest 32 deep at most; it looks no deeper than 8.
INLINE void numbers_of(struct task_struct *t, u32 *innermost, u32 *self)
{
	struct pid *p = follow(t, thread_pid);
	*innermost = *self = 0;
	if (!p)
		return;
	u32 level = follow(p, level);
	struct upid *at = &p->numbers[0];
	u64 base = (u64)__builtin_preserve_access_index(at);
	u32 size = __builtin_preserve_type_info(*(struct upid *)0, 1);
	for (u32 i = 0; i < 8; i++) {
		if (i > level)
			break;
		struct upid u = {};
		if (probe_read_kernel(&u, sizeof(u), (void *)(base + i * size)))
			break;
		if (i == level)
			*innermost = u.nr;
		unsigned int inum = 0;
		probe_read_kernel(&inum, sizeof(inum), &u.ns->ns.inum);
		if (inum == self_ns)
			*self = u.nr;
	}
}

INLINE void name_of(struct task_struct *t, struct name *n)
{
	u32 tid = t->pid, tgid = t->tgid, inner, self;
	numbers_of(t, &inner, &self);
	u16 flags = tgid == target ? F_TARGET : 0;
	if (t->flags & 0x00200000) // PF_KTHREAD
		flags |= F_KERNEL_THREAD;
	fill(&n->s, K_NAME, flags, ktime_get_ns(), tid, tgid, inner);
	n->self_tid = self;
	n->self_tgid = 0;
	n->cgroup = cgroup_of(t);
	__builtin_memcpy(n->comm, t->comm, sizeof(n->comm));
}

SEC("iter/task")
int everybody(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	if (!t)
		return 0;
	struct name n;
	name_of(t, &n);
	seq_write(ctx->meta->seq, &n, sizeof(n));
	return 0;
}

SEC("tp_btf/sched_process_fork")
int process_fork(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	u32 by = parent->pid, tid = child->pid;
	bool ours = parent->tgid == target;
	struct name *n = reserve(sizeof(*n));
	if (n) {
		name_of(child, n);
		submit(n);
	}
	if (ours)
		tell(K_FORK, F_OTHER_TARGET | (child->tgid == target ? F_TARGET : 0), tid, by, child->tgid);
	return 0;
}

SEC("tp_btf/task_rename")
int rename(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	struct name *n = reserve(sizeof(*n));
	if (!n)
		return 0;
	name_of(t, n);
	probe_read_kernel_str(n->comm, sizeof(n->comm), (void *)ctx[1]);
	submit(n);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int process_exec(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	if (t->tgid == target)
		tell(K_EXEC, F_TARGET, t->pid, 0, ctx[1]);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int process_exit(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	if (t->tgid == target) {
		u32 tid = t->pid;
		tell(K_EXIT, F_TARGET, tid, 0, 0);
		forget_thread(tid);
	}
	return 0;
}
