package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// program is one program, what it is attached to, and what is not seen without it.
type program struct {
	name       string // of the C function
	tracepoint string
	sees       string // for people
	traits     traits
}

// traits say what is special about a program.
type traits uint8

const (
	vital     traits = 1 << iota // nothing is of use without it
	rawOnly                      // tp_btf refuses the tracepoint
	perf                         // no tracepoint: a perf event on each CPU
	forStacks                    // only if stacks are taken
	forGroups                    // only if the kernel does not mark throttled threads themselves
	optional                     // newer kernels only: without it another way is taken, and nothing is missing
	remote                       // only if quotas give time to other CPUs by calling a function there
)

var programs = []program{
	{"sched_switch", "sched_switch", "who is on which CPU", vital},
	{"sched_exit", "sched_exit_tp", "stacks as a thread returns", forStacks | optional},
	{"sched_waking", "sched_waking", "who wakes whom", vital},
	{"sched_wakeup", "sched_wakeup", "run queues", forGroups},
	{"sched_wakeup_new", "sched_wakeup_new", "new threads' run queues", 0},
	{"sched_migrate_task", "sched_migrate_task", "moves between CPUs", 0},
	{"process_fork", "sched_process_fork", "threads created while recording", vital},
	{"rename", "task_rename", "new names of threads", 0},
	{"process_exec", "sched_process_exec", "that the target runs another program", 0},
	{"process_exit", "sched_process_exit", "ends of threads", 0},
	{"hrtimer_expire", "hrtimer_expire_entry", "when a quota gives time, and timers", 0},
	{"csd_function", "csd_function_entry", "when a quota gives time to another CPU", rawOnly | remote},
	{"signal_generate", "signal_generate", "preemption asked", 0},
	{"signal_deliver", "signal_deliver", "preemption delivered", 0},
	{"reclaim_begin", "mm_vmscan_direct_reclaim_begin", "direct reclaim", 0},
	{"reclaim_end", "mm_vmscan_direct_reclaim_end", "the end of direct reclaim", 0},
	{"memcg_reclaim_begin", "mm_vmscan_memcg_reclaim_begin", "reclaim of a memory cgroup", 0},
	{"memcg_reclaim_end", "mm_vmscan_memcg_reclaim_end", "the end of reclaim of a memory cgroup", 0},
	{"compaction_try", "mm_compaction_try_to_compact_pages", "what memory is compacted for", 0},
	{"compaction_begin", "mm_compaction_begin", "compaction", 0},
	{"compaction_end", "mm_compaction_end", "the end of compaction", 0},
	{"mmap_lock_start", "mmap_lock_start_locking", "waits for mmap_lock", 0},
	{"mmap_lock_acquired", "mmap_lock_acquire_returned", "the end of waits for mmap_lock", 0},
	{"tlb_flush", "tlb_flush", "TLB flushes", 0},
	{"contention_begin", "contention_begin", "waits for the kernel's locks", 0},
	{"contention_end", "contention_end", "the end of waits for the kernel's locks", 0},
	{"socket_ready", "sk_data_ready", "when sockets have data", 0},
	{"socket_read", "sock_recv_length", "who finds sockets empty, and who reads them", 0},
	{"page_fault", "page_fault_user", "page faults, and those of NUMA balancing", 0},
	{"fault_minor", "minor page faults", "ends of minor page faults and those of NUMA balancing", perf},
	{"fault_major", "major page faults", "ends of major page faults", perf},
}

// kernelTypes is the running kernel's own description of its types.
type kernelTypes struct {
	spec  *btf.Spec
	cache *btf.Cache // decoding them takes 60 ms: once
}

func loadTypes() (*kernelTypes, error) {
	cache := btf.NewCache()
	spec, err := cache.Kernel()
	if err != nil {
		return nil, fmt.Errorf("read types of the kernel: %w: needs a kernel with CONFIG_DEBUG_INFO_BTF, 5.8 or later", err)
	}
	return &kernelTypes{spec, cache}, nil
}

// tracepoint reports whether there is a tracepoint of that name, and how many arguments it has.
func (k *kernelTypes) tracepoint(name string) (args int, ok bool) {
	var def *btf.Typedef
	if k.spec.TypeByName("btf_trace_"+name, &def) != nil {
		return 0, false
	}
	ptr, ok := def.Type.(*btf.Pointer)
	if !ok {
		return 0, false
	}
	proto, ok := ptr.Target.(*btf.FuncProto)
	if !ok {
		return 0, false
	}
	return len(proto.Params) - 1, true
}

func (k *kernelTypes) field(typ, name string) bool {
	var s *btf.Struct
	if k.spec.TypeByName(typ, &s) != nil {
		return false
	}
	for _, m := range s.Members {
		if m.Name == name {
			return true
		}
	}
	return false
}

// variable returns the type id of a per-CPU variable, 0 if there is none.
func (k *kernelTypes) variable(name string) btf.TypeID {
	var v *btf.Var
	if k.spec.TypeByName(name, &v) != nil {
		return 0
	}
	id, err := k.spec.TypeID(v)
	if err != nil {
		return 0
	}
	return id
}

// From what the programs learn whether they run in an interrupt; record.h has the same list.
const (
	preemptStack = iota
	preemptVar
	preemptHot
	preemptThread
)

// preemptFrom tries what the kernel's types promise: its variables have addresses only if it was
// built with CONFIG_KALLSYMS_ALL.
func preemptFrom(types *kernelTypes) uint32 {
	from, mark := uint32(preemptStack), uint64(0)
	switch {
	case runtime.GOARCH == "arm64":
		return preemptThread
	case types.variable("__preempt_count") != 0:
		from, mark = preemptVar, markPreempt
	case types.variable("pcpu_hot") != 0 && types.field("pcpu_hot", "preempt_count"):
		from, mark = preemptHot, markHot
	default:
		return preemptStack
	}
	p := &ebpf.ProgramSpec{Type: ebpf.RawTracepoint, License: "GPL", Instructions: asm.Instructions{
		asm.LoadImm(asm.R1, int64(mark), asm.DWord), asm.Mov.Imm(asm.R0, 0), asm.Return(),
	}}
	types.bind(p, from)
	prog, err := ebpf.NewProgram(p)
	if err != nil {
		return preemptStack
	}
	prog.Close()
	return from
}

// Constants in the programs that stand for addresses of per-CPU variables; see percpu in record.h.
const (
	markPreempt = 0x5ca1ab1e00000001
	markHot     = 0x5ca1ab1e00000002
)

// bind replaces these constants: a load with the pseudo source 3 (BPF_PSEUDO_BTF_ID) gets the
// variable's address from the kernel.
func (k *kernelTypes) bind(p *ebpf.ProgramSpec, from uint32) {
	const pseudoBTFID = asm.R3
	var wanted btf.TypeID
	switch from {
	case preemptVar:
		wanted = k.variable("__preempt_count")
	case preemptHot:
		wanted = k.variable("pcpu_hot")
	}
	for i := range p.Instructions {
		ins := &p.Instructions[i]
		if !ins.OpCode.IsDWordLoad() || ins.Src != 0 {
			continue
		}
		var id btf.TypeID
		switch uint64(ins.Constant) {
		case markPreempt:
			id = k.variable("__preempt_count")
		case markHot:
			id = k.variable("pcpu_hot")
		default:
			continue
		}
		// The verifier skips a branch that is never taken, but not its constants.
		if ins.Constant = int64(id); id == wanted && id != 0 {
			ins.Src = pseudoBTFID
		}
	}
}

// defaultHierarchy reports whether the cpu controller is in cgroup v2.
func defaultHierarchy() bool {
	f, err := os.Open("/proc/cgroups")
	if err != nil {
		return true // Linux without v1 has no such file
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if w := strings.Fields(s.Text()); len(w) > 1 && w[0] == "cpu" {
			return w[1] == "0"
		}
	}
	return true
}

// selfNS is the inode of our own pid namespace.
func selfNS() (uint32, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("stat /proc/self/ns/pid: %w", err)
	}
	return uint32(st.Ino), nil
}

// permit is what would permit recording, where that is what is missing.
const permit = "needs CAP_BPF and CAP_PERFMON: run it with sudo, or once: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_dac_read_search+ep "

// ErrRefused means that with this kernel, or this user's rights, nothing can be recorded.
var ErrRefused = errors.New("refused")

// refused makes an error an ErrRefused as well, whose text would say nothing.
type refused struct{ error }

func (refused) Is(target error) bool { return target == ErrRefused }
func (r refused) Unwrap() error      { return r.error }

// Probe returns nil if programs may be loaded here, or why not and what would permit it. It leaves
// nothing behind.
func Probe() error {
	types, spec, err := readObject()
	if err != nil {
		return err
	}
	c, err := alone(spec, types, whystallProgEverybody)
	if err != nil {
		return err
	}
	c.Close()
	return nil
}

// readObject reads the kernel's types and the programs.
func readObject() (*kernelTypes, *ebpf.CollectionSpec, error) {
	types, err := loadTypes()
	if err != nil {
		return nil, nil, refused{err}
	}
	for _, p := range programs {
		if _, ok := types.tracepoint(p.tracepoint); p.traits&vital != 0 && !ok {
			return nil, nil, refused{fmt.Errorf("load programs: this kernel has no tracepoint %s", p.tracepoint)}
		}
	}
	spec, err := readSpec()
	return types, spec, err
}

// refusal says in words why the kernel refused.
func refusal(what string, err error) error {
	var ve *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && !errors.As(err, &ve):
		self, e := os.Executable()
		if e != nil {
			self = "whystall"
		}
		return fmt.Errorf("%s: %w: %s%s", what, unix.EPERM, permit, self)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%s: %w: recording needs some 100 files, and two more for each CPU: raise ulimit -n", what, unix.EMFILE)
	case errors.As(err, &ve):
		return fmt.Errorf("%s: refused by this kernel: %v", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
