package sched

// Stays calls f with the threads of the target, and with each when it was on a CPU, oldest first.
// Stays that follow each other without a time off a CPU are one.
func (k *Timeline) Stays(thread func(tid uint32), f func(begin, end int64)) {
	for i := range k.threads {
		th := &k.threads[i]
		thread(th.tid)
		for n := 0; n < len(th.segs); n++ {
			if th.segs[n].doing() != OnCPU {
				continue
			}
			begin := th.segs[n].begin
			for n+1 < len(th.segs) && th.segs[n+1].doing() == OnCPU {
				n++
			}
			f(begin, k.segEnd(th, n))
		}
	}
}

// ToNS is what the target itself, in its pid namespace, calls thread tid; 0 if that is not known.
func (k *Timeline) ToNS(tid uint32) uint32 {
	if len(k.byNS) == 0 {
		return tid
	}
	for ns, t := range k.byNS {
		if t == tid {
			return ns
		}
	}
	return 0
}
