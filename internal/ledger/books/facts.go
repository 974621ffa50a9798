package books

import "github.com/whystall/whystall/internal/oncpu"

// FactKind says what a fact adds to its account.
type FactKind uint8

// Kinds of facts. Each has a number of nanoseconds, a reference, or both: "ref" says what the
// reference is. Kinds of one line without "ref" are only a time.
const (
	FactNS       FactKind = iota // its time
	FactActor                    // ref: the low bits of the actor's number
	FactStack                    // ref: stack where the actor was; how long it was there
	FactStackN                   // ref: stack; how many times, in place of ns
	FactThrough                  // ref: site of a lock on the path below the first wait
	FactLock                     // ref: site of the first lock on the path
	FactOccupant                 // ref: who held the Ps instead, see Runtime.Occupant
	FactLacked                   // ref: what their threads lacked, see Runtime.Lacked
	FactSTW                      // ref: number of the stop-the-world
	FactSweep                    // ref: number of the sweep
	FactQueue                    // how many waited at once, in place of ns; the largest counts
	FactHolder                   // ref: name of who held what was waited for, see account.Account's Holder and Holders

	// From here on tags: the part of the account's time that has a property. See account.Tags.
	FactSilence
	FactGC          // overlap with the mark phase
	FactInSTW       // overlap with a stop-the-world's range
	FactInAssist    // while an assist was open
	FactInSweep     // while a sweep was
	FactNewborn     // runnable since it was created
	FactPreempt     // runnable since it was preempted
	FactSyscall     // runnable since a syscall
	FactHandoff     // the lock's holder had been woken and was not running yet
	FactInferred    // the lock's holder is inferred by class
	FactSlices      // how many runnable stretches, in place of ns
	FactGCSlices    // how many of them while marking
	FactMeasured    // who was awaited and what held it are both events
	FactSocket      // ready by the kernel's records, and not yet runnable
	FactDue         // the timer was due, and it was not yet runnable
	FactInBarrier   // overlap with a ragged barrier
	FactPermit      // the one waited for held what both need
	FactServing     // the one waited for worked for others
	FactAsked       // of it, for an answer that it had asked for itself
	FactInterpreter // behind the lock of an interpreter
	FactSafepoint   // until a safepoint ended
	FactReaching    // of it, while threads had not reached it
	FactMonitor     // behind a monitor
	FactEnough      // every thread of the process that wanted a CPU had one

	FactBarrier // ref: number of the ragged barrier
	FactBehind  // ref: who had the CPU, see Names.Behind
	FactHold    // ref: number of a hold of a lock
	FactWork    // ref: what samples met, see oncpu.Works; ns they stand for
	FactWorkN   // ref: the same; how many samples, in place of ns
)

// fact is one number about a part of a unit. It has 16 bytes, since a recording keeps up to 900
// 000.
type fact struct {
	account uint32
	ref     uint32
	word    uint64 // ns << 8 | kind
}

// Sampled adds samples that fell into the account's time on CPUs.
func (s *Facts) Sampled(account uint32, l []oncpu.Sample) {
	for i := range l {
		s.Add(account, FactWork, l[i].Work, l[i].NS)
		s.Add(account, FactWorkN, l[i].Work, 1)
	}
}

func (f fact) kind() FactKind { return FactKind(f.word) }
func (f fact) ns() int64      { return int64(f.word >> 8) }

// Facts collects the facts of one unit and adds up those of one account, kind and reference. It is
// open addressing as in table, with keys of one word. The zero value is ready.
type Facts struct {
	keys  []uint64
	slots []uint32 // number of a key and its fact, plus one
	list  []fact
}

// Reset forgets all facts. Most units have few, so their slots are cleared one by one and not all
// slots. From the last to the first, each is at the end of its run of slots when its turn comes.
func (s *Facts) Reset() {
	mask := uint64(len(s.slots) - 1)
	if len(s.list)*4 > len(s.slots) {
		clear(s.slots)
	} else {
		for n := len(s.keys); n > 0; n-- {
			i := hashWord(s.keys[n-1])
			for s.slots[i&mask] != uint32(n) {
				i++
			}
			s.slots[i&mask] = 0
		}
	}
	s.keys, s.list = s.keys[:0], s.list[:0]
}

// Add adds ns to the fact with that account, kind and reference; of FactQueue the larger one stays.
// The key needs account numbers below 2^25 and kinds below 2^7, which they are (mostAccounts).
func (s *Facts) Add(account uint32, kind FactKind, ref uint32, ns int64) {
	if len(s.list)*2 >= len(s.slots) {
		s.grow()
	}
	key := uint64(account)<<39 | uint64(kind)<<32 | uint64(ref)
	mask := uint64(len(s.slots) - 1)
	for i := hashWord(key); ; i++ {
		n := s.slots[i&mask]
		if n == 0 {
			s.keys = append(s.keys, key)
			s.list = append(s.list, fact{account, ref, uint64(ns)<<8 | uint64(kind)})
			s.slots[i&mask] = uint32(len(s.list))
			return
		}
		if s.keys[n-1] == key {
			f := &s.list[n-1]
			if kind == FactQueue {
				f.word = uint64(max(f.ns(), ns))<<8 | uint64(kind)
			} else {
				f.word += uint64(ns) << 8
			}
			return
		}
	}
}

func (s *Facts) grow() {
	s.slots = make([]uint32, max(512, 2*len(s.slots)))
	mask := uint64(len(s.slots) - 1)
	for n, k := range s.keys {
		i := hashWord(k)
		for s.slots[i&mask] != 0 {
			i++
		}
		s.slots[i&mask] = uint32(n + 1)
	}
}

// hashWord is enough for slots by their low bits: a multiplication moves differences up, and the
// shift brings them down again.
func hashWord(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}
