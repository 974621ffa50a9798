package unit

import (
	"testing"

	"github.com/whystall/whystall/internal/request"
)

// Ten workers wait at one condition. All are woken for each piece of work: one has it, the others'
// wake-ups are no units. Of wake-ups one by one, or of parts of equal length that all of them get,
// every one is a unit.
func TestThreadHerd(t *testing.T) {
	for _, c := range []struct {
		name         string
		apart, other int // between two wake-ups; CPU time of who has not got the piece
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
			s.on(11, at, at+1_600_000, 233, 5, stEpoll)
			for w := range 10 {
				ran := c.other
				if w == i%10 {
					ran = 250_000
				}
				woken := at + 10_000 + w*c.apart
				s.wokenBy(20+w, woken, 11, stWake)
				s.on(20+w, woken+1_000, woken+1_000+ran, 203, 0x5000, stFutex)
			}
			s.wokenBy(11, at+4_900_000, 0, stNet)
			at += 5_000_000
		}
		for _, g := range s.find(t).Groups {
			if g.Entry == "work" && (g.Count != c.kept || g.LeftOut[request.Futile] != c.futile) {
				t.Errorf("%s: %d kept, %d woken for nothing; want %d, %d", c.name, g.Count, g.LeftOut[request.Futile], c.kept, c.futile)
			}
		}
	}
}

// Two workers give back what they got to who gives them the next, and share a lock, each waiting at
// a word of its own, as Java's threads do: the waits for the next are those for work. With one name
// for all nobody can tell, and nothing is asserted of that.
func TestThreadHandsBack(t *testing.T) {
	s := newScript()
	s.thread(11, "dispatch")
	s.thread(21, "pool-1")
	s.thread(22, "pool-2")
	for i, at := 0, 10_000_000; i < 20; i, at = i+1, at+5_000_000 {
		s.on(11, at, at+100_000, 233, 5, stEpoll)
		for w := range 2 {
			s.wokenBy(21+w, at+10_000+w*1000, 11, stWake)
		}
		s.on(21, at+20_000, at+2_000_000, 231, 0, stSleep)
		s.on(22, at+20_000, at+30_000, 203, 0x6080, stFutex) // for the lock
		s.wokenBy(21, at+2_500_000, 0, stTimer)
		s.line("switch t=%d cpu=21 other=21 flags=othertarget", at+2_510_000)
		s.wokenBy(22, at+2_520_000, 21, stWake)
		s.wokenBy(11, at+2_530_000, 21, stWake) // gives back
		s.line("switch t=%d cpu=21 tid=21 flags=target args=1,203,%d kernel=%d", at+2_540_000, 0x5040, stFutex)
		s.on(22, at+2_530_000, at+2_900_000, 203, 0x5080, stFutex)
		s.on(11, at+2_540_000, at+2_600_000, 233, 5, stEpoll)
		s.wokenBy(11, at+4_900_000, 0, stNet)
	}
	f := s.find(t)
	for i := range f.lives {
		if l := &f.lives[i]; l.tid == 22 && (l.best < 0 || l.sites[l.best].key.arg != 0x5080) {
			t.Errorf("the wait for work of thread 22 is %d of %+v", l.best, l.sites)
		}
	}
}
