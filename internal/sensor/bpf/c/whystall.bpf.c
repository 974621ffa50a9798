//go:build ignore

// The programs that record what the kernel does to one process. They run in the context of the
// thread they watch, so each first checks whether it is concerned at all. They use tp_btf where the
// kernel allows it, so that no debug information is needed beyond the kernel's own BTF. They use no
// kprobe and no fentry, as not every kernel has them.
#include "record.h"
#include "memory.h"
#include "names.h"
#include "quota.h"
#include "sched.h"
#include "signal.h"
#include "socket.h"
#include "symbols.h"

char _license[] SEC("license") = "GPL";
