package unit

import (
	"testing"

	"github.com/whystall/whystall/internal/request"
)

// Ten workers wait at one condition, and all are woken for each piece of work. One gets it; the
// wake-ups of the others are no units. If they are woken one by one, or if each gets a part of the
// same length, each wake-up starts a unit.
func TestThreadHerd(t *testing.T) {
	for _, c := range []struct {
		name         string
		apart, other int // ns between two wake-ups, and on a CPU of those that did not get the piece
		kept, futile int64
	}{
		{"all for one", 1_000, 5_000, 19, 171},
		{"one by one", 150_000, 5_000, 190, 0},
		{"parts of a loop", 1_000, 190_000, 190, 0},
	} {
		s := newScript()
		s.thread(11, "srv")
		for w := range 10 {
			s.thread(20+w, "work")
		}
		at := 10_000_000
		for i := range 20 {
			s.on(11, at, at+1_600_000, epoll(5))
			for w := range 10 {
				ran := c.other
				if w == i%10 {
					ran = 250_000
				}
				woken := at + 10_000 + w*c.apart
				s.wokenBy(20+w, woken, 11)
				s.on(20+w, woken+1_000, woken+1_000+ran, futex(0x5000))
			}
			s.wokenByNet(11, at+4_900_000)
			at += 5_000_000
		}
		for _, g := range s.find(t).Groups {
			if g.Entry == "work" && (g.Count != c.kept || g.LeftOut[request.Futile] != c.futile) {
				t.Errorf("%s: %d kept, %d woken for nothing; want %d, %d", c.name, g.Count,
					g.LeftOut[request.Futile], c.kept, c.futile)
			}
		}
	}
}

// Two workers hand back what they got to the thread that gives them the next, and share a lock.
// Each waits at a word of its own, as Java's threads do. The waits for the next are those for work.
// If all threads had one name nobody could know that, and nothing is asserted of it.
func TestThreadHandsBack(t *testing.T) {
	s := newScript()
	s.thread(11, "dispatch")
	s.thread(21, "pool-1")
	s.thread(22, "pool-2")
	for i, at := 0, 10_000_000; i < 20; i, at = i+1, at+5_000_000 {
		s.on(11, at, at+100_000, epoll(5))
		for w := range 2 {
			s.wokenBy(21+w, at+10_000+w*1000, 11)
		}
		s.on(21, at+20_000, at+2_000_000, sleep())
		s.on(22, at+20_000, at+30_000, futex(0x6080)) // for the lock
		s.wokenByTimer(21, at+2_500_000)
		s.comes(21, at+2_510_000)
		s.wokenBy(22, at+2_520_000, 21)
		s.wokenBy(11, at+2_530_000, 21) // gives back
		s.blocks(21, at+2_540_000, futex(0x5040))
		s.on(22, at+2_530_000, at+2_900_000, futex(0x5080))
		s.on(11, at+2_540_000, at+2_600_000, epoll(5))
		s.wokenByNet(11, at+4_900_000)
	}
	f := s.find(t)
	for i := range f.lives {
		if l := &f.lives[i]; l.tid == 22 && (l.best < 0 || l.sites[l.best].key.arg != 0x5080) {
			t.Errorf("the wait for work of thread 22 is %d of %+v", l.best, l.sites)
		}
	}
}
