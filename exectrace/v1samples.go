package exectrace

// v1Samples reads CPU profile samples. The runtime writes them into batches of their own, later and only nearly in
// order, so a window of them is held in a heap: memory does not grow with their number.
type v1Samples struct {
	data   []byte
	shapes *[256]v1Shape
	spans  []v1Span // yet to be opened
	off    int
	end    int
	heap   []v1Sample // earliest first
}

type v1Sample struct {
	ticks uint64
	g     uint64
	pid   int32
	stk   uint32
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
	s.push(v1Sample{v[1], v[3], int32(v[2]), uint32(v[4])})
}

func (s *v1Samples) push(e v1Sample) {
	h := append(s.heap, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].ticks <= e.ticks {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	s.heap = h
}

// next takes out the earliest.
func (s *v1Samples) next() v1Sample {
	h := s.heap
	top, e := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	s.heap = h
	if len(h) > 0 {
		i := 0
		for {
			k := 2*i + 1
			if k >= len(h) {
				break
			}
			if k+1 < len(h) && h[k+1].ticks < h[k].ticks {
				k++
			}
			if e.ticks <= h[k].ticks {
				break
			}
			h[i] = h[k]
			i = k
		}
		h[i] = e
	}
	s.fill()
	return top
}
