package sched

// callClass is what a system call waits for where no stack tells.
type callClass struct {
	blocks         map[int16]Block
	futex, signals map[int16]bool
	exits, kills   map[int16]bool // the end of a thread, of all of them
	// poll and select, which without a file are sleeps: their first argument is 0 then
	polls map[int16]bool
	// calls that wait for whatever the file is that their first argument numbers
	files map[int16]bool
}

var callsByArch = map[string]*callClass{
	"amd64": {
		blocks: numbers(map[Block][]int16{
			BlockFutex:   {202, 449, 455},
			BlockNetwork: {7, 23, 42, 43, 44, 45, 46, 47, 215, 232, 270, 271, 281, 288, 299, 307, 441},
			BlockTimer:   {35, 230},
			BlockChild:   {61, 247},
			BlockDisk:    {26, 74, 75, 162, 277, 306},
			BlockOther:   {34, 128, 130},
		}),
		futex: set(202, 455), exits: set(60), kills: set(231), signals: set(62, 129, 200, 234, 297, 424), polls: set(7, 23, 270, 271),
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
		futex: set(98, 455), exits: set(93), kills: set(94), signals: set(129, 130, 131, 138, 240, 424), polls: set(72, 73),
		files: set(63, 64, 65, 66, 69, 70, 71, 286, 287),
	},
}

func numbers(by map[Block][]int16) map[int16]Block {
	m := map[int16]Block{}
	for b, l := range by {
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

// calls is the table of the recording machine's system calls; nil where there is none.
func (k *columns) calls() *callClass {
	if k.header.Arch == "" {
		return callsByArch["amd64"]
	}
	return callsByArch[k.header.Arch]
}

func (c *callClass) of(call int16, arg uint64) Block {
	if c == nil || call < 0 {
		return BlockUnknown
	}
	if c.polls[call] && arg == 0 {
		return BlockTimer
	}
	return c.blocks[call]
}

// isFutex tells whether a system call takes a futex's address first.
func (k *columns) isFutex(call int32) bool {
	c := k.calls()
	return c != nil && call < 1<<15 && (c.futex[int16(call)] || call == 454)
}
