package detect

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

const (
	// loopShare is the least part of the time that the loop's thread is on a CPU. As many of the
	// requests that come find it at work.
	loopShare = 0.10
	// leastOwn is the least part of slow requests' time that must be computing of their own.
	leastOwn = 0.5
	// loopNS is the least computing of a slow request for which others can be said to wait.
	loopNS = 10e6
	// Where the recorder does not tell a loop's turns apart, what it does without a pause may be
	// many requests. Such heaps are rare in a loop that is idle half of the time: where requests
	// come independently of each other, one in 10 million is of heapOf or more (Borel's
	// distribution).
	heapShare = 0.5
	heapOf    = 50
	// leastBehind is how often the loop must have gone on to another socket right after a request
	// had made its thread wait. It must be a tenth of those waits as well: a loop that reads all
	// sockets that are ready, and then works, has turns that are too short to be told.
	leastBehind = 5
	behindShare = 10
	// Where the loop goes on to another socket after half of the requests that compute for 2 ms or
	// more, others did wait. Then less than loopNS counts, as the service's latency permits, if one
	// request computes for longer than usual ones by longerTimes [healthy Node at 90 %: 0.6 ms].
	leastBusyNS = 2e6
	longerTimes = 4
)

// heldFloor is of waits in the loop's thread. It is no loss of the one request alone, so the floor
// does not fall with the service's latency.
var heldFloor = Floor{NS: 5e6, Share: 0.20}

var _ = register(&Detector{
	Name:   "event-loop",
	Title:  "The only thread of the event loop is held up, and requests wait",
	Needs:  []string{KernelRecords},
	Floor:  Floor{NS: loopNS, Share: leastOwn},
	Native: true,
	Applies: func(r *account.Result, facts Facts) bool {
		return facts.Runtime == "node" || heldOften(r) || busyOften(r) || longOften(r)
	},
	Doc: `What happens
  Node runs all JavaScript of a process on one thread. While a callback computes, no other request
  is read, answered or timed out: each that comes meanwhile waits for all of the rest. Latency of
  all requests then follows the longest callback, on machines whose CPUs are idle. The same happens
  to any loop whose one thread serves many connections, as Python's asyncio, when a request makes
  it wait: a sleep, a query by a library that blocks, a child process.

Evidence
  Slow column: time in which a request's data lay in its socket, as the loop's thread computed
  without a pause for 2 ms or more: for other requests, or for a timer of the program. Both ends
  are records (Linux 6.3 and later). It counts from 5 ms a slow request up, or half of the median
  in a fast service but no less than 2 ms, where such turns take four times what usual requests
  compute.
  Where arrivals were not recorded, or too little lay there: computing of the loop's thread between
  two waits for events, or between its reads of two sockets, from 10 ms a slow request up. A loop
  with much to do answers many requests without a wait; the reads tell them apart (Linux 6.3 and
  later). Where they were not recorded a slow request counts if the loop is idle half of the time
  and it computes for 50 usual ones.
  Less than 10 ms counts in a fast service, but no less than 2 ms and half of the median, where
  the thread goes on to another socket at once after half of such requests, and usual ones compute
  for less than a quarter. This is supported at most, and holds for any program whose requests
  have one thread. The share of the time that this thread was on a CPU: as many of the requests
  that come find it at work, if they come independently of each other. That others waited is not
  seen then, so the finding is possible and no more.
  Waits of the loop's thread within requests, for anything but a lock, count from 5 ms a slow
  request up, in any program whose requests have one thread. After a tenth of those of 2 ms or
  more the thread must go on to another socket at once: a request lay there, or came while the
  thread finished (Linux 6.3 and later). This is supported at most.

Not to be taken for
  A loop that is full of short requests: they wait for each other as well, and more processes
  help. Computing that nobody waits behind: at a low load, or where each process has one client.
  Work on libuv's pool (files, DNS, zlib, crypto): it has threads of its own. A loop without a
  CPU: cpu-contention, cpu-throttled. A thread that has one connection alone, as in a process for
  each: it makes nobody wait. Waits for files: disk-wait. Collections of V8's, which run on this
  thread too: --trace-gc.

Remedy
  Take what computes off the one thread: in Node to worker_threads (piscina) or a process of its
  own; in Redis UNLINK for DEL, SCAN for KEYS, and scripts in parts. More processes behind a
  balancer bound how many requests wait behind one. Else split it: a part, then setImmediate, then
  the next. JSON.parse of large bodies, synchronous functions (readFileSync,
  crypto.pbkdf2Sync, zlib.gzipSync) and regular expressions that backtrack are the usual ones.
  node --cpu-prof names the function. asyncio: asyncio.to_thread or run_in_executor for what
  blocks, or a library that awaits; asyncio's debug mode names slow callbacks.

Verify
  perf_hooks.monitorEventLoopDelay: its p99 falls; and p99 of quick requests with it.

Sources
  nodejs.org, Don't Block the Event Loop (or the Worker Pool); Node's docs of worker_threads,
  cluster and perf_hooks; R. W. Wolff, Poisson arrivals see time averages, 1982.`,
	Look: lookLoop,
	Tell: func(p *Pass, f *finding.Finding) {
		if p.grantedOf(leaf(account.LeafBehindTurn)) > 0 {
			tellUnread(p, f)
			return
		}
		if p.grantedOf(leaf(account.LeafOnCPU)) == 0 {
			tellHeld(p, f)
			return
		}
		name, share := loopThread(p)
		f.Summary = fmt.Sprintf("%s compute %s (%s of their time) on the one thread that runs all requests; those that come meanwhile wait for it", p.who(), p.per(p.NS()), p.share(p.NS()))
		p.Proof("kernel records: threads",
			"%s was on a CPU %s of the time: as many of the requests that come find it at work", name, percent(share))
		if c := p.Ledger.CPUs; c != nil {
			p.Proof("ledger: CPUs", "the process ran on %[2]s of its %[1]d CPUs, others took %[3]s",
				c.Allowed, percent(ratio(c.RunningNS, c.TotalNS)), percent(ratio(c.OthersNS, c.TotalNS)))
		}
		if l := p.Ledger.Loop; busyOften(p.Ledger) {
			p.Proof("kernel records",
				"%s that computed for 2 ms or more; after %d of them thread %d went on to another socket at once", times(l.Busy, "request", "requests"), l.BusyBehind, l.TID)
			p.Cap("which requests waited meanwhile, and for how long, is not seen: their data lies in sockets that nobody reads")
		} else {
			p.Doubt("that others waited meanwhile is not seen: their data lies in sockets that nobody reads")
		}
		if p.Facts.Runtime != "node" {
			f.Remedy = append(f.Remedy,
				"move what computes to another process (in Python run_in_executor with a ProcessPoolExecutor), or split it", "run more processes, which bounds how many wait behind one")
			f.Verify = p.verify("computing of slow requests is below " + p.per(p.NS()))
			return
		}
		f.Remedy = append(f.Remedy,
			"move what computes to worker_threads or a process of its own; node --cpu-prof names the function",
			"split it (setImmediate between the parts); or run more processes (cluster), which bounds how many wait behind one")
		f.Verify = p.verify("computing of slow requests is below " + p.per(p.NS()) +
			"; perf_hooks.monitorEventLoopDelay shows what others waited")
	},
})

// loopThread is the busiest thread, which runs the loop, and the share of the time in which it was
// on a CPU.
func loopThread(p *Pass) (name string, share float64) {
	k := p.Ledger.Kernel
	var most *account.ThreadSum
	for i := range k.Threads {
		if t := &k.Threads[i]; most == nil || t.OnNS > most.OnNS {
			most = t
		}
	}
	if most == nil {
		return "", 0
	}
	return fmt.Sprintf("%s (thread %d)", most.Comm, most.TID), ratio(most.OnNS, wall(k))
}

// heaped says that what slow requests compute may be many requests that the loop answered without a
// wait, "" where it is one.
func heaped(p *Pass, share float64) string {
	usual, per := p.Ledger.Requests.P50, perRequest(p.Column(), p.Claimed())
	if p.Ledger.Kernel.Turns || per < loopNS {
		return ""
	}
	if share <= heapShare && usual > 0 && per >= heapOf*usual {
		return ""
	}
	return fmt.Sprintf("whether the %s that the loop computes without a wait are one request or many: its reads of sockets were not recorded, or not all the time (they need Linux 6.3)", p.per(p.Claimed()))
}

func lookLoop(p *Pass) {
	if !joined(p.Ledger) {
		p.Blind("no request is visible: what the loop did without a pause is not known")
		return
	}
	if claimUnread(p) {
		return
	}
	busy := busyOften(p.Ledger)
	if claimHeldLoop(p) || p.Facts.Runtime != "node" && !busy {
		return
	}
	_, share := loopThread(p)
	if share < loopShare && !busy {
		p.Clear("the loop's thread was on a CPU %s of the time: few requests find it at work (looked into from %s up)", percent(share), percent(loopShare))
		return
	}
	p.ClaimWhere(func(a *account.Account) bool { return a.Class == account.ClassOwn && a.Leaf == account.LeafOnCPU })
	if why := heaped(p, share); why != "" {
		p.claims = nil
		p.Blind(why)
		return
	}
	// Computing is no loss by itself: this floor falls only where others are seen to wait for it.
	least := int64(loopNS)
	per := perRequest(p.Column(), p.Claimed())
	if busy && longerTimes*perRequest(&p.Ledger.Median, p.usually()) <= per {
		least = max(leastBusyNS, min(loopNS, p.Ledger.Requests.P50/2))
		p.SetFloor(Floor{NS: least, Share: leastOwn})
	}
	if per < least {
		p.Clear("%s compute %s each on the loop's thread (reported from %s up)", p.who(),
			finding.Duration(per), finding.Duration(least))
		p.claims, p.floor = nil, nil
	}
}

// busyOften reports whether requests that computed for long were followed by others at once.
func busyOften(r *account.Result) bool {
	if r == nil || r.Loop.TID == 0 || r.Kernel == nil || !r.Kernel.Turns {
		return false
	}
	l := r.Loop
	return l.BusyBehind >= leastBehind && 2*l.BusyBehind >= l.Busy
}

// longOften reports whether the loop's one thread had many turns that computed for long.
func longOften(r *account.Result) bool {
	return r != nil && r.Loop.TID != 0 && r.Loop.Long >= leastBehind
}

// claimUnread claims the time in which requests' data lay in their sockets behind turns that are
// longer than usual ones. It reports whether that is enough.
func claimUnread(p *Pass) bool {
	if !longOften(p.Ledger) {
		return false
	}
	l, own := p.Ledger.Loop, int64(0)
	for i := range p.Ledger.Median.Accounts {
		if a := &p.Ledger.Median.Accounts[i]; a.Class == account.ClassOwn && a.Leaf == account.LeafOnCPU {
			own += a.NS
		}
	}
	if l.LongNS/l.Long < longerTimes*perRequest(&p.Ledger.Median, own) {
		return false
	}
	p.ClaimWhere(leaf(account.LeafBehindTurn))
	p.SetFloor(Floor{NS: max(leastBusyNS, min(heldFloor.NS, p.Ledger.Requests.P50/2)), Share: heldFloor.Share})
	if len(p.claims) > 0 && p.board.below(*p.floor, p.Claimed()) == "" {
		return true
	}
	p.claims, p.floor = nil, nil
	return false
}

func tellUnread(p *Pass, f *finding.Finding) {
	l := p.Ledger.Loop
	f.Summary = fmt.Sprintf("%s lie unread in their sockets for %s (%s of their time), as the one thread that runs all requests computes something else without a pause", p.who(), p.per(p.NS()), p.share(p.NS()))
	p.measure()
	p.Proof("kernel records: threads", "thread %d had %s of 2 ms or more, %s on average", l.TID,
		times(l.Long, "turn", "turns"), finding.Duration(l.LongNS/l.Long))
	if l.Timed > 0 {
		p.Proof("kernel records: timers",
			"at least %d of these turns were no request: a timer of the program had started them", l.Timed)
	}
	busiestLine(p)
	what := "what computes"
	if 2*l.Timed > l.Long {
		what = "what the timer starts"
	}
	if p.Facts.Runtime == "node" {
		f.Remedy = append(f.Remedy, "move "+what+
			" to worker_threads or a process of its own; node --cpu-prof names the function",
			"split it (setImmediate between the parts)")
		f.Verify = p.verify("slow requests lie unread for less than " + p.per(p.NS()) +
			"; perf_hooks.monitorEventLoopDelay falls with it")
		return
	}
	f.Remedy = append(f.Remedy, "move "+what+" to a thread or a process of its own, or split it",
		"run more processes, which bounds how many wait behind one")
	f.Verify = p.verify("slow requests lie unread for less than " + p.per(p.NS()))
}

// busiestLine says what the process computes most, by samples: the long turns are some of that.
func busiestLine(p *Pass) {
	on := p.best()
	if on == nil || on.Samples < account.LeastSamples {
		return
	}
	var most []string
	for i := range on.Works {
		if w := &on.Works[i]; w.Name != account.OtherWorks && len(most) < 3 && 10*w.NS >= on.NS {
			most = append(most, fmt.Sprintf("%s %s", orKind(w), percent(ratio(w.NS, on.NS))))
		}
	}
	if len(most) > 0 {
		p.Proof("CPU samples", "of the process' CPU time, by %d samples: %s", on.Samples, strings.Join(most, ", "))
	}
}

// heldOften reports whether requests made the loop's thread wait.
func heldOften(r *account.Result) bool {
	return r != nil && r.Loop.TID != 0 && r.Loop.Held >= leastBehind
}

// claimHeldLoop claims what the loop's thread waited for within requests, if it went on to others'
// at once. It reports whether that is enough.
func claimHeldLoop(p *Pass) bool {
	l := p.Ledger.Loop
	if !heldOften(p.Ledger) {
		return false
	}
	if l.Behind < leastBehind || behindShare*l.Behind < l.Held {
		p.Clear("the loop's thread waited %s within requests for 2 ms or more, and went on to another socket at once after %d of them (looked into from %d and a tenth of them up)", times(l.Held, "time", "times"), l.Behind, leastBehind)
		return false
	}
	p.ClaimWhere(func(a *account.Account) bool {
		return (a.Class == account.ClassOwn || a.Class == account.ClassOutside) &&
			leaf(account.LeafTimer, account.LeafNetwork, account.LeafPipe, account.LeafAsleep, account.LeafSyscall)(a)
	})
	p.SetFloor(heldFloor)
	if p.board.below(heldFloor, p.Claimed()) == "" {
		return true
	}
	if p.Facts.Runtime == "node" {
		p.claims, p.floor = nil, nil
	}
	return false
}

func tellHeld(p *Pass, f *finding.Finding) {
	l := p.Ledger.Loop
	at := ""
	p.granted(func(a *account.Account, _ int64) {
		if at == "" && a.Site != "" {
			at = ", at " + a.Site
		}
	})
	f.Summary = fmt.Sprintf("%s make the one thread that runs all requests wait for %s (%s of their time)%s; those that come meanwhile wait for it", p.who(), p.per(p.NS()), p.share(p.NS()), at)
	p.measure()
	p.Proof("kernel records", "%s of 2 ms or more within requests; after %d of them thread %d went on to another socket at once", times(l.Held, "wait", "waits"), l.Behind, l.TID)
	p.Cap("which requests waited meanwhile, and for how long, is not seen: their data lies in sockets that nobody reads")
	f.Remedy = append(f.Remedy, "do not block the loop's thread"+at+
		": await it, or give it to a thread (asyncio.to_thread, run_in_executor, worker_threads)",
		"run more processes, which bounds how many wait behind one")
	f.Verify = p.verify("waits within slow requests are below " + p.per(p.NS()))
}
