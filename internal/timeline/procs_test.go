package timeline

import "testing"

// However many Ps there are, the history of who held them keeps to its room, and the part of it
// that is left is exact.
func TestProcsHistoryIsBounded(t *testing.T) {
	const n = 5000
	tl := &Timeline{}
	p := &tl.procs
	p.init()
	now := int64(0)
	for p.first < 50 && now < 3*historyOcc {
		p.take(int32(now%n), uint32(now%n), uint32(now%7)+1, now)
		now++
	}
	tl.now = now
	room := 0
	for i := range p.blocks {
		if b := &p.blocks[i]; b != p.cur {
			room += cap(b.occ)
		}
	}
	if room != p.room || room > historyOcc || p.first == 0 {
		t.Errorf("room for %d occupations, counted as %d; block %d is the oldest", room, p.room, p.first)
	}
	oldest := p.at(p.first).begin
	for _, from := range []int64{0, oldest, now - 3*n, now - n/2} {
		list, total := tl.Occupants(from, now, nil)
		sum := int64(0)
		for _, o := range list {
			sum += o.NS
		}
		// From the first n on each P has somebody.
		if want := int64(n) * (now - max(from, oldest)); sum != want || total != want {
			t.Errorf("from %d: %d ns held of %d, want %d", from, sum, total, want)
		}
	}
}
