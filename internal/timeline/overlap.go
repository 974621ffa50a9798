package timeline

// stretch is something with a start and an end, 0 where the end is not yet seen.
type stretch interface{ span() (begin, end int64) }

// overlapNS is how much of [s,e) the stretches of l cover. They are in order and disjoint; one
// without an end lasts until now.
func overlapNS[T stretch](l []T, s, e, now int64) (ns int64) {
	for i := len(l) - 1; i >= 0; i-- {
		begin, end := l[i].span()
		if end == 0 {
			end = now
		}
		if end <= s {
			break
		}
		ns += max(0, min(e, end)-max(s, begin))
	}
	return ns
}
