package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// readCalls reads the report of system calls: what the time of the longest of them was.
func (k *kiReport) readCalls(r *attach.Reading) {
	if len(k.calls) == 0 {
		return
	}
	k.says("system calls")
	calls := slices.SortedStableFunc(slices.Values(k.calls),
		func(a, b kiCallRow) int { return cmp.Compare(b.elapsed, a.elapsed) })
	for _, c := range calls[:min(2, len(calls))] {
		name := c.name
		if c.file != "" {
			name += " of " + c.file
		}
		line := fmt.Sprintf("%s: %s took %s, %s each (longest %s)", name,
			attach.Plural(c.count, "call"), lasts(c.elapsed), lasts(c.elapsed/float64(max(c.count, 1))), lasts(c.max))
		if c.asleep+c.queued+c.running > 0 {
			line += fmt.Sprintf("; of it %s CPU, %s asleep, %s for a CPU", lasts(c.running),
				lasts(c.asleep), lasts(c.queued))
		}
		if c.rate > 0 {
			line += fmt.Sprintf("; over %s, by its rate", lasts(float64(c.count)/c.rate))
		}
		if c.errs > 0 {
			line += fmt.Sprintf("; %d %s", c.errs, failedHow(c.name))
		}
		r.Figures = append(r.Figures, line)
	}
	first := calls[0]
	switch {
	case first.elapsed <= 0:
	case first.running >= 0.5*first.elapsed && first.running >= 0.01:
		k.callOnCPU(r, &first)
	case first.sleeps.whole > 0:
		k.callAsleep(r, &first)
	}
	for _, c := range calls {
		if c.errs > 0 && c.errs >= c.count*9/10 && notYet[c.name] == "" && c.elapsed >= 0.2*first.elapsed {
			r.Means += fmt.Sprintf(" %d of %d calls of %s failed, so this time is for nothing.",
				c.errs, c.count, c.name)
		}
	}
}

// callOnCPU is a call whose time is CPU time: it waits for no disk.
func (k *kiReport) callOnCPU(r *attach.Reading, c *kiCallRow) {
	share := c.running / c.elapsed
	r.Means = fmt.Sprintf("%s of the time of %s is CPU time, so no disk and no peer was waited for.", pct(share), c.name)
	if c.rate > 0 && c.running >= float64(c.count)/c.rate {
		r.Means += fmt.Sprintf(" By its rate that is %.3g CPUs' time.", c.running*c.rate/float64(c.count))
	}
	r.Not = "A slow read here is no slow disk."
	if c.running/float64(max(c.count, 1)) < 50e-6 || callWaits[c.name] != waitDisk &&
		c.name != "read" && c.name != "write" && c.name != "readv" && c.name != "writev" {
		return
	}
	// To copy some pages takes microseconds. Much more is a fault of a virtual machine's memory on
	// its host, which looks like CPU time in the guest, or a lock that is spun for.
	proof := fmt.Sprintf("%s of CPU for each %s", lasts(c.running/float64(max(c.count, 1))), c.name)
	r.Signs = append(r.Signs, attach.Sign{Cause: "page-fault", Grade: attach.Candidate,
		Share: share, Proof: []string{proof + ": a virtual machine's memory that its host has yet to map costs that"}},
		attach.Sign{Cause: "kernel-lock", Grade: attach.Candidate, Share: share,
			Proof: []string{proof + ": so does spinning for a lock"}})
	r.Next = append(r.Next, ask("perf record -a -g -- sleep 10; perf report --stdio --no-children",
		0, "what the kernel does in these calls; in a virtual machine, on its host as well"))
}

// callAsleep is a call in which threads slept.
func (k *kiReport) callAsleep(r *attach.Reading, c *kiCallRow) {
	c.sleeps.whole, c.sleeps.of = c.elapsed, "the time of "+c.name
	funcs := map[string]float64{}
	for _, at := range c.sleeps.at {
		for name, amount := range at {
			funcs[name] += amount
		}
	}
	r.Means = fmt.Sprintf("%s sleeps %s of its time, most of it in %s; %s.", c.name,
		pct(c.asleep/c.elapsed), attach.Largest(funcs)[0], c.sleeps.figures("of its time"))
	before := len(r.Signs)
	c.sleeps.signs(r, finding.Possible)
	if len(r.Signs) == before && c.sleeps.share(waitedPeer) >= 0.3 && k.spends(c.asleep) {
		r.Signs = append(r.Signs,
			attach.Sign{Grade: attach.Outside, Share: c.sleeps.share(waitedPeer),
				Where: "the peer: the thread waits for the other end of a socket"})
	}
}

// readSleep reads the functions and stacks in which a process slept.
func (k *kiReport) readSleep(r *attach.Reading) {
	w, what := k.sleepStacks, "of the waiting time"
	if w.whole <= 0 {
		w = k.funcs
	} else {
		w.whole = max(w.whole, 100) // they are percent of all, and the small ones are cut off
	}
	if w.whole <= 0 {
		return
	}
	k.says("sleep")
	if k.funcs.whole > 0 {
		top := map[string]float64{}
		for _, at := range k.funcs.at {
			for name, amount := range at {
				top[name] += amount
			}
		}
		name := attach.Largest(top)[0]
		r.Figures = append(r.Figures, fmt.Sprintf("%s of the sleep is in %s", pct(top[name]/k.funcs.whole), name))
	}
	r.Figures = append(r.Figures, w.figures(what))
	if k.sched && k.run+k.sleep+k.queue > 0 && k.sleep/(k.run+k.sleep+k.queue) < 0.2 {
		return
	}
	sure := finding.Possible
	if k.sleepStacks.whole > 0 {
		sure = finding.Supported
	}
	before := len(r.Signs)
	w.signs(r, sure)
	if len(r.Signs) > before {
		if lock := w.where(waitedLock, 3); lock != "" {
			r.Figures = append([]string{"lock: " + lock}, r.Figures...)
		}
		r.Means = upper(r.Signs[0].Proof[0]) + "."
		return
	}
	if share := w.share(waitedPeer); share >= 0.4 {
		r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside, Share: share,
			Where: "the peer: the thread waits for the other end of a socket"})
		r.Means = fmt.Sprintf("%s of the waiting is for the other end of sockets.", pct(share))
		return
	}
	if share := w.share(waitedDriver); share >= 0.4 {
		r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside, Share: share,
			Where: "a driver of the kernel: it sleeps for fixed times until its device is ready"})
		r.Means = fmt.Sprintf("%s of the waiting: a driver sleeps until its device is ready (%s).",
			pct(share), w.where(waitedDriver, 2))
		r.Not = "The functions above it in the stack name the driver. Whoever wants a lock that it holds waits as long."
		return
	}
	if share := w.share(waitedOther); share >= 0.3 {
		r.Means = fmt.Sprintf("%s of the waiting is in functions that no rule knows: %s.",
			pct(share), w.where(waitedOther, 2))
	} else if r.Means == "" && w.share(waitedIdle) >= 0.7 {
		r.Means = "It sleeps without work, as far as the functions say."
	} else if r.Means == "" {
		r.Means = "What most of its sleep was for is not plain from these functions."
	}
}

// readProfile reads hot functions and stacks; stacks decide where both are there.
func (k *kiReport) readProfile(r *attach.Reading) {
	p := &k.hot
	if len(k.stacks.samples) > 0 {
		covered := 0.0
		for i := range k.stacks.samples {
			covered += k.stacks.samples[i].weight
		}
		if covered >= 0.2*(1-k.profileIdle) || len(k.hot.samples) == 0 {
			p = &k.stacks
		}
	}
	if len(p.samples) == 0 {
		return
	}
	if p == &k.hot && len(k.stacks.samples) > 0 {
		p.callers = k.stacks.sum()
	}
	k.says("profile")
	if k.profileIdle > 0 && !slices.ContainsFunc(p.samples, func(s sample) bool { return s.comm == "swapper" }) {
		p.samples = append(p.samples, sample{weight: k.profileIdle, comm: "swapper"})
	}
	got := p.reading()
	if p == &k.stacks && len(k.hot.samples) > 0 {
		got.Figures = append(k.hot.sum().figures()[:1], got.Figures[1:]...)
		top := slices.MaxFunc(p.samples,
			func(a, b sample) int { return cmp.Compare(a.weight*named(&a), b.weight*named(&b)) })
		got.Figures = append(got.Figures, fmt.Sprintf("%s of all in one stack: %s", pct(top.weight), top.says(5)))
	}
	r.Signs = append(r.Signs, got.Signs...)
	r.Facts = append(r.Facts, got.Facts...)
	r.Figures = append(got.Figures, r.Figures...)
	if r.Means == "" || len(got.Signs) > 0 {
		r.Means, r.Not = got.Means, got.Not
	}
	if got.State == attach.Ill || got.State == attach.CannotTell || len(r.Signs) == 0 && !k.usage && !k.sched {
		r.State = got.State
	}
}

// says names the innermost functions of a stack.
func (s *sample) says(n int) string {
	var out []string
	for _, f := range slices.Concat(s.kernel, s.program) {
		if len(out) < n && f.Func != "" {
			out = append(out, f.Func)
		}
	}
	return strings.Join(out, " < ")
}

// named is 1 for a sample that has functions, and 0 for one of idle CPUs.
func named(s *sample) float64 {
	if s.leaf() == "" {
		return 0
	}
	return 1
}
