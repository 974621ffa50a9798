package sched

// callClass says what system calls wait for, by their numbers, for waits of which no stack was
// recorded.
type callClass struct {
	blocks  map[int16]Block
	futex   map[int16]bool // the first argument is a futex's address
	signals map[int16]bool // they send a signal
	exits   map[int16]bool // they end a thread
	kills   map[int16]bool // they end all threads
	polls   map[int16]bool // poll and select, which without a file, their first argument being 0, are sleeps
	files   map[int16]bool // they wait for whatever file their first argument numbers
}

// callsByArch has the tables of the architectures for which there is a recorder.
var callsByArch = map[string]*callClass{
	"amd64": {
		blocks: numbers(map[Block][]int16{
			BlockFutex: {202, 449, 455}, // futex, futex_waitv, futex_wait
			// poll, select, connect, accept, sendto, recvfrom, sendmsg, recvmsg, epoll_wait_old,
			// epoll_wait, pselect6, ppoll, epoll_pwait, accept4, recvmmsg, sendmmsg, epoll_pwait2
			BlockNetwork: {7, 23, 42, 43, 44, 45, 46, 47, 215, 232, 270, 271, 281, 288, 299, 307, 441},
			BlockTimer:   {35, 230},                   // nanosleep, clock_nanosleep
			BlockChild:   {61, 247},                   // wait4, waitid
			BlockDisk:    {26, 74, 75, 162, 277, 306}, // msync, fsync, fdatasync, sync, sync_file_range, syncfs
			BlockOther:   {34, 128, 130},              // pause, rt_sigtimedwait, rt_sigsuspend
		}),
		futex: set(202, 455), exits: set(60), kills: set(231),
		signals: set(62, 129, 200, 234, 297, 424), polls: set(7, 23, 270, 271),
		// read, write, readv, writev, sendfile, preadv, pwritev, preadv2, pwritev2
		files: set(0, 1, 19, 20, 40, 295, 296, 327, 328),
	},
	"arm64": {
		blocks: numbers(map[Block][]int16{
			BlockFutex:   {98, 449, 455},
			BlockNetwork: {22, 72, 73, 202, 203, 206, 207, 211, 212, 242, 243, 269, 441},
			BlockTimer:   {101, 115},
			BlockChild:   {95, 260},
			BlockDisk:    {81, 82, 83, 84, 227, 267},
			BlockOther:   {133, 137},
		}),
		futex: set(98, 455), exits: set(93), kills: set(94),
		signals: set(129, 130, 131, 138, 240, 424), polls: set(72, 73),
		files: set(63, 64, 65, 66, 69, 70, 71, 286, 287),
	},
}

// numbers turns a table of calls by what they wait in around.
func numbers(table map[Block][]int16) map[int16]Block {
	m := map[int16]Block{}
	for b, l := range table {
		for _, n := range l {
			m[n] = b
		}
	}
	return m
}

func set(l ...int16) map[int16]bool {
	m := map[int16]bool{}
	for _, n := range l {
		m[n] = true
	}
	return m
}

// calls is the table of the machine that was recorded; nil if there is none. A stream that does not
// name its architecture counts as amd64.
func (k *columns) calls() *callClass {
	if k.header.Arch == "" {
		return callsByArch["amd64"]
	}
	return callsByArch[k.header.Arch]
}

// of is what a call waits in by its number and first argument.
func (c *callClass) of(call int16, arg uint64) Block {
	if c == nil || call < 0 {
		return BlockUnknown
	}
	if c.polls[call] && arg == 0 {
		return BlockTimer
	}
	return c.blocks[call]
}

// isFutex reports whether the first argument of a system call is a futex's address. 454 is
// futex_wake, which waits for nothing and is in no table.
func (k *columns) isFutex(call int32) bool {
	c := k.calls()
	return c != nil && call < 1<<15 && (c.futex[int16(call)] || call == 454)
}

// Exits reports whether a waker's system call ended its thread: that wakes the threads that join
// it.
func (k *Timeline) Exits(call int32) bool {
	c := k.calls()
	return c != nil && call >= 0 && call < 1<<15 && c.exits[int16(call)]
}
