//go:build ignore

// The programs that tell what the kernel does to one process. They run in the context of whoever they watch: each
// looks first whether it is concerned at all. tp_btf where the kernel allows it, so that no debug information of
// the kernel's internals is needed beyond its own BTF; no kprobe, no fentry: not every kernel has them.
#include "record.h"
#include "memory.h"
#include "names.h"
#include "quota.h"
#include "sched.h"
#include "signal.h"
#include "socket.h"
#include "symbols.h"

char _license[] SEC("license") = "GPL";
