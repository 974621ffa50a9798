package exectrace

// v1Samples reads CPU profile samples. The runtime writes them into batches of their own, late and
// only nearly in order. So a window of them is held in a heap: memory does not grow with their
// number.
type v1Samples struct {
	data   []byte
	shapes *[256]v1Shape
	spans  []v1Span // yet to be opened
	off    int
	end    int
	heap   byTime[v1Sample]
}

type v1Sample struct {
	g   uint64
	pid int32
	stk uint32
}

const v1SampleWindow = 4096

func (s *v1Samples) fill() {
	for len(s.heap) < v1SampleWindow {
		if s.off >= s.end {
			if len(s.spans) == 0 {
				return
			}
			sp := s.spans[0]
			s.spans = s.spans[1:]
			_, _, off, ok := v1Header(s.data, int(sp.off))
			if !ok {
				continue
			}
			s.off, s.end = off, int(sp.off)+int(sp.n)
		}
		s.step()
	}
}

// step reads one record.
func (s *v1Samples) step() {
	data := s.data[:s.end]
	at, b := s.off, data[s.off]
	d := s.shapes[b]
	if d.shape == shapeTimed {
		s.off++
		for k := d.values; k > 0 && s.off != 0; k-- {
			_, s.off = v1Uvarint(data, s.off)
		}
	} else {
		s.off = v1Skip(data, at, d)
		if b == v1Log|3<<6 {
			s.off = v1Blob(data, s.off)
		}
	}
	if s.off == 0 {
		s.off = s.end
		return
	}
	if b != v1CPUSample|3<<6 {
		return
	}
	var v [5]uint64
	_, n := v1Uvarint(data, at+1)
	for k := range v {
		if v[k], n = v1Uvarint(data[:s.off], n); n == 0 {
			return
		}
	}
	s.heap.push(dueAt[v1Sample]{v[1], v1Sample{v[3], int32(v[2]), uint32(v[4])}})
}

// next takes out the earliest.
func (s *v1Samples) next() dueAt[v1Sample] {
	top := s.heap.pop()
	s.fill()
	return top
}
