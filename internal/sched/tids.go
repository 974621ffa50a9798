package sched

// tidIndex finds a thread's number by its TID, for each record. Linux has no TID above 1<<22, so an
// array in pages does, which are made when used. What a file claims beyond that goes into a map.
type tidIndex struct {
	pages [][]int32
	rest  map[uint32]int32
}

const (
	tidPage = 1 << 10
	tidMost = 1 << 22
)

func (x *tidIndex) get(tid uint32) int32 {
	if tid < tidMost {
		if p := tid / tidPage; int(p) < len(x.pages) && x.pages[p] != nil {
			return x.pages[p][tid%tidPage] - 1
		}
		return -1
	}
	if n, ok := x.rest[tid]; ok {
		return n
	}
	return -1
}

func (x *tidIndex) set(tid uint32, n int32) {
	if tid >= tidMost {
		if x.rest == nil {
			x.rest = map[uint32]int32{}
		}
		x.rest[tid] = n
		return
	}
	p := int(tid / tidPage)
	if p >= len(x.pages) {
		x.pages = append(x.pages, make([][]int32, p+1-len(x.pages))...)
	}
	if x.pages[p] == nil {
		x.pages[p] = make([]int32, tidPage)
	}
	x.pages[p][tid%tidPage] = n + 1
}
