package capacity

import "cmp"

// call is what a system call does, as far as sums of the kernel's records ask.
type call struct {
	name string // as accounts name it; a clone that others wait for copies the address space: "fork"
	does callEffect
}

type callEffect uint8

// What a system call does. A thread that ends gives its stack back, so munmap and madvise count as
// the end of threads, too.
const (
	createsThread callEffect = 1 << iota
	endsThread
	changesSpace // the address space
	copiesSpace
)

func (c call) has(e callEffect) bool { return c.does&e != 0 }

// callsByArch lists the system calls by number: numbers are each architecture's own. What is not
// listed does nothing that is asked for.
var callsByArch = map[string][]call{
	"amd64": {
		9:   {"mmap", changesSpace},
		10:  {"mprotect", changesSpace},
		11:  {"munmap", changesSpace | endsThread},
		12:  {"brk", changesSpace},
		25:  {"mremap", changesSpace},
		28:  {"madvise", changesSpace | endsThread},
		56:  {"fork", createsThread | copiesSpace}, // clone
		57:  {"fork", copiesSpace},
		58:  {"vfork", copiesSpace},
		60:  {"exit", endsThread},
		231: {"exit_group", endsThread},
		435: {"fork", createsThread | copiesSpace}, // clone3
	},
	"arm64": {
		93:  {"exit", endsThread},
		94:  {"exit_group", endsThread},
		214: {"brk", changesSpace},
		215: {"munmap", changesSpace | endsThread},
		216: {"mremap", changesSpace},
		220: {"fork", createsThread | copiesSpace}, // clone
		222: {"mmap", changesSpace},
		226: {"mprotect", changesSpace},
		233: {"madvise", changesSpace | endsThread},
		435: {"fork", createsThread | copiesSpace}, // clone3
	},
}

// calls are the system calls of a recording, by number.
type calls []call

// callsOf are the calls of the machine that made a recording. Older recordings name no
// architecture: they are of amd64. For an unknown one there are none, since numbers of another mean
// other calls.
func callsOf(arch string) calls { return callsByArch[cmp.Or(arch, "amd64")] }

// call is what the call with that number does; -1 is no call.
func (c calls) call(number int32) call {
	if number < 0 || int(number) >= len(c) {
		return call{}
	}
	return c[number]
}
