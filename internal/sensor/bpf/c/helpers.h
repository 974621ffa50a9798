// The kernel's helpers by their numbers, and the words by which loaders recognise maps and
// sections.
#pragma once
#include "kernel.h"

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) __typeof__(val) *name
#define __array(name, val) __typeof__(val) *name[]
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define field_exists(f) __builtin_preserve_field_info(f, 2)

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9 };
enum { BPF_F_MMAPABLE = 1 << 10, BPF_F_USER_STACK = 1 << 8, BPF_NOEXIST = 1 };

static void *(*map_lookup)(void *, const void *) = (void *)1;
static long (*map_update)(void *, const void *, const void *, u64) = (void *)2;
static long (*map_delete)(void *, const void *) = (void *)3;
static u64 (*ktime_get_ns)(void) = (void *)5;
static u32 (*get_smp_processor_id)(void) = (void *)8;
static long (*get_numa_node_id)(void) = (void *)42;
static long (*get_stack)(void *, void *, u32, u64) = (void *)67;
static long (*probe_read_user)(void *, u32, const void *) = (void *)112;
static long (*probe_read_kernel)(void *, u32, const void *) = (void *)113;
static long (*probe_read_kernel_str)(void *, u32, const void *) = (void *)115;
static long (*seq_write)(struct seq_file *, const void *, u32) = (void *)127;
static long (*get_task_stack)(struct task_struct *, void *, u32, u64) = (void *)141;
static void *(*this_cpu_ptr)(const void *) = (void *)154;
static long (*snprintf)(char *, u32, const char *, const void *, u32) = (void *)165;
static struct task_struct *(*get_current_task_btf)(void) = (void *)158;
static struct pt_regs *(*task_pt_regs)(struct task_struct *) = (void *)175;
static long (*kallsyms_lookup_name)(const char *, u32, u64, u64 *) = (void *)179;
