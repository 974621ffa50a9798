package exectrace

// never is later than any time in ticks.
const never = ^uint64(0)

// dueAt is something with the time at which it is due, in ticks.
type dueAt[T any] struct {
	ts uint64
	v  T
}

// byTime is a binary heap, earliest first. The key is a field and not a method, so each instance
// compiles to plain comparisons.
type byTime[T any] []dueAt[T]

func (q *byTime[T]) push(e dueAt[T]) {
	h := append(*q, e)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2].ts > e.ts {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = e
	*q = h
}

// pop takes out the earliest.
func (q *byTime[T]) pop() dueAt[T] {
	h := *q
	top, n := h[0], len(h)-1
	h[0] = h[n]
	*q = h[:n]
	if n > 0 {
		h[:n].down()
	}
	return top
}

// down puts the first where it belongs after its time has changed.
func (h byTime[T]) down() {
	e := h[0]
	i := 0
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && h[k+1].ts < h[k].ts {
			k++
		}
		if h[k].ts >= e.ts {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = e
}
