package request

import "testing"

// Ten workers wait at one condition. All are woken for each piece of work: one has it, the others' wake-ups are no units. Of wake-ups one by
// one, or of parts of equal length that all of them get, every one is a unit.
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
			if g.Entry == "work" && (g.Count != c.kept || g.LeftOut[Futile] != c.futile) {
				t.Errorf("%s: %d kept, %d woken for nothing; want %d, %d", c.name, g.Count, g.LeftOut[Futile], c.kept, c.futile)
			}
		}
	}
}
