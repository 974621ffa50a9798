// The parts of the kernel's types that the programs read. Offsets are relocated when a program is
// loaded (CO-RE), so order and neighbours do not matter here. A type's name up to three underscores
// is the kernel's.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[0];
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct css_set {
	struct cgroup_subsys_state *subsys[16];
	struct cgroup *dfl_cgrp;
};

struct cfs_rq {
	int throttle_count;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct thread_info {
	u32 cpu;
	int preempt_count; // arm64
};

struct mm_struct;

struct sk_buff_head {
	u32 qlen;
};

struct sock {
	struct sk_buff_head sk_receive_queue;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	struct sched_entity se;
	bool throttled; // Linux 6.18
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct pid *thread_pid;
	char comm[16];
	struct css_set *cgroups;
	unsigned long numa_faults_locality[3]; // with NUMA balancing
	unsigned long numa_pages_migrated;
};

// Linux 6.2 to 6.14 on x86 keep the count here.
struct pcpu_hot {
	int preempt_count;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 orig_x0;
	s32 syscallno;
};
#else
#error "architecture not known"
#endif

struct hrtimer_clock_base {
	int clockid;
};

struct timerqueue_node {
	s64 expires;
};

struct hrtimer {
	struct timerqueue_node node;
	void *function;
	struct hrtimer_clock_base *base;
};

struct hrtimer_sleeper {
	struct task_struct *task;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

// Values of enums are relocated as well.
#define ENUM(type, value) __builtin_preserve_enum_value(*(enum type *)value, 1)

enum cgroup_subsys_id {
	cpu_cgrp_id = 1,
};
