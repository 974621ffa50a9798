package profiler

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// Facts of profiles. A share is of the CPU time in which something ran.
const (
	SpinShare      attach.FactName = "/profile/kernel-lock:share" // Of: who asks most for the lock, where stacks say
	FaultShare     attach.FactName = "/profile/page-fault:share"  // spinning for locks within faults included
	ReclaimShare   attach.FactName = "/profile/reclaim:share"
	ProfileGCShare attach.FactName = "/profile/gc:share"
)

// ofCgroup is the name of reclaim that the limit of a memory cgroup asks for.
const ofCgroup = "of the memory cgroup"

// cgroupRemedy is what helps against it: what makes kswapd start earlier is no help for a group.
const cgroupRemedy = "Of the cgroup: a higher memory.max, or less page cache in it (O_DIRECT, fadvise DONTNEED, fewer files)"

// fewest is how many samples a share needs; floor how large a share of CPU time is worth a word.
const fewest = 50

// A rule is what a share of the CPU time says of a cause.
type rule struct {
	cause   string
	kind    account.WorkKind
	least   float64
	because string
	proof   string
	found   float64 // the share from which on it is no mere candidate; 0: least is enough
}

var rules = []rule{
	{"direct-reclaim", account.WorkReclaim, 0.05, "", "threads free or move memory themselves to get some", 0},
	{"tlb-shootdown", account.WorkTLB, 0.05, "", "CPUs wait for others to flush their TLBs", 0},
	{"numa-balancing", account.WorkNUMA, 0.05, "", "memory is moved between NUMA nodes", 0},
	{"thread-churn", account.WorkThreads, 0.15, "", "threads or processes are made and ended", 0},
	{"softirq", account.WorkSoftirq, 0.20, "", "softirqs ran on top of whatever thread was there", 0},
	{"frequent-gc", account.WorkGC, finding.GCOfUsedTight, "", "the garbage collector of Go's runtime", finding.GCOfUsed},
	{"spinning", account.WorkSpin, 0.15, "", "threads look again and again for what is not there yet", 0},
}

// reading is what a profile says, without its title.
func (p *profile) reading() attach.Reading {
	t := p.sum()
	// A profile of CPU time has no waiting in it: without a sign it is no word on health.
	r := attach.Reading{State: attach.Context, Figures: t.figures(), Who: attach.Who{PID: p.pid}}
	if t.whole <= 0 || t.busy() <= 0 {
		r.State, r.Means = attach.CannotTell, "It has no sample in which a CPU did anything."
		return r
	}
	if p.only == ofAll {
		t.facts(&r)
	}
	r.Not = "A CPU profile has no waiting in it: a thread that sleeps, queues or is throttled is in no sample."
	if p.unsaid {
		r.Not = "Which event was sampled is not in it. If it is CPU time, as perf has it unless told otherwise, a thread that sleeps, queues or is throttled is in no sample."
	}
	if p.only == ofPrograms {
		r.Not = "Only programs were sampled (:u): what the kernel does for them, and any waiting, is in no sample."
	}
	switched, sure := t.switchSamples()
	if switched {
		is := "is"
		if !sure {
			is = "seems to be"
		}
		r.Not = "Each sample " + is + " a context switch: how often threads give up the CPU and for what, and not for how long."
	}
	if t.tooFew() {
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("These are %s: too few for a share.", attach.Plural(p.number, "sample"))
		switch {
		case p.number >= fewest:
			r.Means = fmt.Sprintf("CPUs idled in %s of the samples; the others are too few for a share.", pct(t.idle/t.whole))
		case p.number == 1:
			r.Means = "This is one sample: too little for a share."
		}
		if t.share(t.jvmGC) >= 0.5 {
			r.Means = fmt.Sprintf("These are %s, too few for a share; most are in the JVM's collector, which stops all threads for much of its work.", attach.Plural(p.number, "sample"))
			r.Next = append(r.Next, ask("jstat -gcutil PID 1000 10", 0, "how often it collects, and how long"))
		}
		t.few(&r)
		return r
	}
	t.mechanisms(&r)
	t.rest(&r)
	t.conclude(&r)
	if word := t.filterOf(); word != "" {
		ofFilter(&r, word, len(t.funcs))
	}
	if p.only == ofKernelCode || p.only == ofRows {
		ofKernelAlone(&r, p.only)
	}
	if switched && len(r.Signs) == 0 {
		r.State, r.Means = attach.CannotTell,
			"The samples are context switches and not CPU time: no lock stands out among what threads wait for."
		if !sure {
			r.Means = "The samples seem to be context switches and no CPU time: most stacks end where a thread leaves its CPU, and no lock stands out above that."
		}
	}
	return r
}

// tooFew reports whether the samples in which a CPU did something are too few for a share.
func (t *tally) tooFew() bool {
	return t.p.number > 0 && float64(t.p.number)*t.busy() < fewest*t.whole
}

// switchSamples reports whether the samples were taken where threads give up a CPU, though the text
// does not name the event, and whether that is sure: the function that ran then is perf's own. At
// the event sched_switch it is __schedule, which hardly any time goes into.
func (t *tally) switchSamples() (switched, sure bool) {
	own, part := 0.0, 0.0
	for name, weight := range t.funcs {
		switch {
		case switchPoints[name]:
			own += weight
		case t.p.unsaid && name == "__schedule":
			part += weight
		}
	}
	return t.share(own+part) >= 0.5, t.share(own) >= 0.5
}

// switchPoints are perf's own functions at a context switch.
var switchPoints = words("perf_event_task_sched_out __perf_event_task_sched_out perf_trace_sched_switch perf_trace_sched_stat_template")

// few adds candidates from samples that are too few for a share: what most of the busy ones are in
// is no chance.
func (t *tally) few(r *attach.Reading) {
	if t.idle >= 0.9*t.whole {
		return // the CPUs have next to nothing to do
	}
	var all attach.Reading
	t.mechanisms(&all)
	for _, s := range all.Signs {
		if s.Share >= 0.5 && s.Share*float64(t.p.number)*t.busy()/t.whole >= 10 {
			s.Grade, s.Sure = attach.Candidate, ""
			r.Signs = append(r.Signs, s)
		}
	}
}

// mechanisms adds what the time that locks and the kinds of work took says.
func (t *tally) mechanisms(r *attach.Reading) {
	t.locks(r)
	for _, rule := range rules {
		part := t.kinds[rule.kind]
		if rule.kind == account.WorkReclaim {
			part += t.reclaimSpin - t.kthreads
			if t.share(t.direct+t.reclaimSpin) < rule.least {
				t.reclaimers(r, rule.least)
				continue
			}
		}
		if rule.kind == account.WorkSpin && t.share(t.kinds[account.WorkGC]) >= 0.10 {
			part -= t.names[rule.kind]["runtime.Gosched"] // the sweeper's, who yields between spans
		}
		if share := t.share(part); share >= rule.least {
			what, spins := string(rule.kind), ""
			ofGroup := rule.kind == account.WorkReclaim && t.names[rule.kind][ofCgroup] >= (part-t.reclaimSpin)/2
			if ofGroup {
				what += " " + ofCgroup
			}
			if in := t.share(t.reclaimSpin); rule.kind == account.WorkReclaim && in >= 0.005 {
				spins = fmt.Sprintf("; %s of it spins for locks there", pct(in))
			}
			proof := fmt.Sprintf("%s of %s is %s: %s", pct(share), t.time(), what, rule.proof) + spins
			if share < rule.found {
				r.Signs = append(r.Signs, attach.Sign{Cause: rule.cause, Grade: attach.Candidate, Share: share,
					BecauseOf: rule.because, Proof: []string{proof}})
				continue
			}
			t.found(r, rule.cause, share, rule.because, proof)
			if ofGroup {
				r.Signs[len(r.Signs)-1].Remedy = cgroupRemedy
			}
		}
	}
}

// facts notes what rules over several parts may want.
func (t *tally) facts(r *attach.Reading) {
	spin := t.share(t.kinds[account.WorkKernelLock])
	who := ""
	if all := attach.Largest(t.askers); len(all) > 0 {
		who = all[0]
	}
	r.Facts = append(r.Facts, attach.Fact{Name: SpinShare, Value: spin, Of: who},
		attach.Fact{Name: FaultShare, Value: t.share(t.kinds[account.WorkFault] + t.faultSpin)},
		attach.Fact{Name: ReclaimShare, Value: t.share(t.kinds[account.WorkReclaim] - t.kthreads)})
	if t.kinds[account.WorkGC]+t.kinds[account.WorkGoRuntime]+t.kinds[account.WorkGoSched] > 0 {
		r.Facts = append(r.Facts,
			attach.Fact{Name: ProfileGCShare, Value: t.share(t.kinds[account.WorkGC])})
	}
}

// spinAlone is the share of spinning from which on a list of functions without stacks finds a lock:
// below it much else may be what limits.
const spinAlone = 0.25

// oneOwn is the share of one function of the program from which on it may be a loop that spins.
const oneOwn = 0.40

// locks says what spinning and page faults cost. Spinning within page faults is the faults'.
func (t *tally) locks(r *attach.Reading) {
	spin := t.share(t.kinds[account.WorkKernelLock])
	if t.p.callers != nil && t.faultSpin == 0 {
		c := t.p.callers
		t.faultSpin = t.kinds[account.WorkKernelLock] * c.share(c.faultSpin) / max(c.share(c.kinds[account.WorkKernelLock]), 1e-9)
		t.askers = c.askers
	}
	inFaults := t.share(t.faultSpin)
	because := ""
	if inFaults >= spin/2 && inFaults > 0 {
		because = "page-fault"
	} else if t.reclaimSpin >= t.kinds[account.WorkKernelLock]/2 && t.reclaimSpin > 0 {
		because = "direct-reclaim"
	}
	if spin >= 0.10 {
		line := fmt.Sprintf("%s of %s is spent spinning for locks of the kernel", pct(spin), t.time())
		if who := t.top(t.askers, 2, 0.005); who != "" {
			line += "; who asks for them: " + who
		} else {
			line += "; no stack says who asks for them"
		}
		if in := t.share(t.softirqSpin); in >= 0.02 {
			line += fmt.Sprintf("; at least %s spins in softirqs", pct(in))
		}
		cause := "kernel-lock"
		if t.mmapSpin >= t.kinds[account.WorkKernelLock]/2 {
			cause = "mmap-lock"
		}
		mayBeKernels := t.someoneSpin >= t.kinds[account.WorkKernelLock]/2
		if mayBeKernels {
			line += ", within memory reclaim of the service's threads or of kswapd"
		}
		if !mayBeKernels && (t.p.stacks || t.p.callers != nil || spin >= spinAlone) {
			t.found(r, cause, spin, because, line)
		} else {
			r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate,
				Share: spin, BecauseOf: because, Proof: []string{line}})
		}
	}
	if spin < 0.10 && !t.p.stacks {
		t.lists(r)
	}
	fault := t.share(t.kinds[account.WorkFault] + t.faultSpin)
	if fault < 0.15 && (because == "" || fault < 0.10) {
		return
	}
	line := fmt.Sprintf("%s of %s is in page faults", pct(fault), t.time())
	if t.faultSpin > 0 {
		line += fmt.Sprintf("; %s spins for a lock there", pct(inFaults))
	}
	if t.guest >= t.faultSpin/2 && t.guest > 0 {
		line += "; they are faults of a virtual machine's memory on its host"
	}
	if z := t.share(t.zeroing); z >= 0.02 {
		line += fmt.Sprintf("; %s clears pages", pct(z))
	}
	t.found(r, "page-fault", fault, "", line)
}

// lists says what functions cost that take the lock of a node's lists of pages.
func (t *tally) lists(r *attach.Reading) {
	of, part := map[string]float64{}, 0.0
	for name, weight := range t.funcs {
		if listLockers[name] {
			of[name] = weight
			part += weight
		}
	}
	if share := t.share(part); share >= 0.20 {
		proof := t.top(of, 2, 0.005) +
			": these take the lock of a node's lists of pages; whether they spin for it is not in it"
		r.Signs = append(r.Signs, attach.Sign{Cause: "kernel-lock", Grade: attach.Candidate,
			Share: share, Proof: []string{proof}})
	}
}

// rest says what has no kind of work of its own.
func (t *tally) rest(r *attach.Reading) {
	if share := t.share(t.assist); share >= 0.05 {
		t.found(r, "mark-assist", share, "frequent-gc",
			fmt.Sprintf("%s is marking by goroutines that allocate (gcAssistAlloc)", pct(share)))
	}
	if share := t.share(t.sweep); share >= 0.05 {
		t.found(r, "sweep-assist", share, "frequent-gc",
			fmt.Sprintf("%s is sweeping by goroutines that allocate", pct(share)))
	}
	if share := t.share(t.semaphore); share >= 0.20 {
		t.found(r, "lock-contention", share, "",
			fmt.Sprintf("%s is in system calls on System V semaphores (semtimedop, semctl): processes spin for the lock of a semaphore set", pct(share)))
	} else if share := t.share(t.futex); share >= 0.20 {
		t.futexes(r, share)
	}
	if share := t.share(t.clock); share >= 0.05 {
		r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside, Share: share,
			Where: fmt.Sprintf("the clock: %s of %s reads a slow clock source (see /sys/devices/system/clocksource/clocksource0/current_clocksource)", pct(share), t.time())})
	}
}

// futexes says what calls on futexes cost: threads sleep there and wake each other, for a lock or
// for work. Only a stack tells which.
func (t *tally) futexes(r *attach.Reading, share float64) {
	if t.mutex >= t.futex/2 {
		t.found(r, "lock-contention", share, "",
			fmt.Sprintf("%s is in futex calls below functions that take a lock: threads contend for it", pct(share)))
		return
	}
	proof := fmt.Sprintf("%s is in futex calls: threads sleep and wake each other there, for a lock or for work", pct(share))
	r.Signs = append(r.Signs, attach.Sign{Cause: "lock-contention", Grade: attach.Candidate, Share: share,
		Proof: []string{proof}})
}

// found adds a sign. Stacks with many samples are as much as a profile can show of a cause.
func (t *tally) found(r *attach.Reading, cause string, share float64, because, proof string) {
	sure := finding.Possible
	if t.p.stacks && share >= 0.20 {
		sure = finding.Supported
	}
	r.State = attach.Ill
	r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Found, Sure: sure,
		Share: share, BecauseOf: because, Proof: []string{proof}})
}
