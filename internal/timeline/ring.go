package timeline

// ring keeps the latest segments of all goroutines, 24 bytes each, in the order of their starts. A
// segment is named by its number, from 1 up. Numbers go on while the oldest segments are
// overwritten, so a link between segments is checked when it is followed: its target may be gone.
type ring struct {
	segs   []Segment // their number is a power of two
	head   uint64    // number of the next segment
	oldest uint64    // the oldest that is kept
}

func (r *ring) init(limit int) {
	n := uint32(1 << 12)
	for int(n)*2 <= limit {
		n *= 2
	}
	r.head, r.oldest = 1, 1
	// All at once: what is not used yet is address space, not memory, and nothing has to move.
	r.segs = make([]Segment, n)
	huge(r.segs)
}

// alive reports whether segment number seq is still kept.
func (r *ring) alive(seq uint64) bool { return seq >= r.oldest && seq != 0 }

// Seg is the segment with the number, nil when it is no longer kept.
func (r *ring) Seg(seq uint32) *Segment {
	if seq == 0 || uint64(uint32(r.head)-seq) > r.head-r.oldest {
		return nil
	}
	return &r.segs[seq&uint32(len(r.segs)-1)]
}

func (r *ring) at(seq uint64) *Segment { return &r.segs[uint32(seq)&uint32(len(r.segs)-1)] }

// add makes room for the next segment.
func (r *ring) add() (*Segment, uint64) {
	if uint32(r.head) == 0 {
		r.head++ // 0 is no segment
	}
	seq := r.head
	r.head++
	if n := uint64(len(r.segs)); r.head-r.oldest > n {
		r.oldest = r.head - n
	}
	return r.at(seq), seq
}
