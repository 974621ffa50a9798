package detect

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Half a time slice of the scheduler per request, and a tenth of its time. Below that, a mutex of a
// server under load works as it should.
var lockFloor = Floor{NS: 5e6, Share: 0.10}

// lookLocks claims the time behind locks that ok accepts, directly or further down the chain of
// waits.
func lookLocks(p *Pass, ok func(*account.Lock) bool) {
	r := p.Ledger
	behind := func(a *account.Account) (ns int64) {
		if a.Leaf == account.LeafThrottled {
			return 0 // without the lock the quota would keep the waiter off its CPU all the same
		}
		if a.Class == account.ClassLock {
			if ok(lockOf(r, a.Site)) {
				return ofProgram(a)
			}
			return 0
		}
		for _, s := range a.Through {
			if ok(lockOf(r, s.Func)) {
				ns += s.NS
			}
		}
		return min(ns, ofProgram(a))
	}
	once := heldOnce(r, behind)
	spread := p.spread(behind)
	for i := range r.Slow.Accounts {
		if a := &r.Slow.Accounts[i]; (!once || !lacksCPU(a.Leaf)) && (!spread || a.Leaf != account.LeafLimit) {
			p.Claim(i, behind(a))
		}
	}
	if once && len(p.claims) == 0 {
		p.Clear("what slow requests lost behind locks is a few holds that they shared, whose holders had no P or no CPU: that is no queue for a lock")
	}
	unlessStretched(p, func(a *account.Account) bool { return ranOrQueued(a.Leaf) })
}

// ofProgram is the part of an account that is not behind an interpreter's lock or a safepoint:
// those are causes of their own.
func ofProgram(a *account.Account) int64 {
	return max(0, a.NS-a.Tags.InterpreterNS-a.Tags.SafepointNS)
}

// spread reports whether most of what holders were seen to do belongs to other causes, which the
// lock spreads. A queue that was too long to be followed to its end is then most likely behind the
// same, and no reason to blame the lock.
func (p *Pass) spread(behind func(*account.Account) int64) bool {
	var seen, others int64
	for i := range p.Ledger.Slow.Accounts {
		a := &p.Ledger.Slow.Accounts[i]
		if ns := behind(a); a.Leaf != account.LeafLimit {
			seen += ns
			others += min(ns, a.NS-p.board.left[i])
		}
	}
	return 2*others > seen
}

// heldOnce reports whether requests lost their time behind holders without a P or a CPU in one or
// two holds of the lock, or in holds that several of them shared. Then it is an accident: somebody
// happened to have a lock when the CPUs were taken. Requests queue for a lock if each has a wait of
// its own, again and again.
func heldOnce(r *account.Result, behind func(*account.Account) int64) bool {
	holds, requests := 0, 0
	var all, lacking int64
	for i := range r.Slow.Accounts {
		a := &r.Slow.Accounts[i]
		ns := behind(a)
		all += ns
		if !lacksCPU(a.Leaf) || 2*ns < a.NS || ns == 0 {
			continue
		}
		if a.Holds == 0 {
			return false // not known
		}
		lacking += ns
		holds += a.Holds
		requests = max(requests, a.Requests)
	}
	return 2*lacking > all && (holds < 3 || 4*holds < requests)
}

// lacksCPU reports whether the leaf is time of somebody who was ready, and had no P or no CPU.
func lacksCPU(l account.Leaf) bool {
	return l == account.LeafRunnable || l == account.LeafLatePoll || l == account.LeafNoCPU
}

// ranOrQueued reports whether the leaf is something that takes a holder longer without a CPU.
func ranOrQueued(l account.Leaf) bool {
	return l == account.LeafOnCPU || l == account.LeafRunnable || l == account.LeafLockBetween
}

// lockOf returns the class of locks with a site. One that the ledger does not list has this site
// alone.
func lockOf(r *account.Result, site string) *account.Lock {
	for i := range r.Locks {
		for _, s := range r.Locks[i].Sites {
			if s == site {
				return &r.Locks[i]
			}
		}
	}
	return &account.Lock{Sites: []string{site}}
}

// claimedLocks lists the classes of locks behind what was granted, the largest first.
func claimedLocks(p *Pass, ok func(*account.Lock) bool) (locks []*account.Lock) {
	ns := map[*account.Lock]int64{}
	add := func(site string, n int64) {
		l := lockOf(p.Ledger, site)
		if !ok(l) {
			return
		}
		for _, have := range locks {
			if have == l || have.Sites[0] == l.Sites[0] {
				ns[have] += n
				return
			}
		}
		locks = append(locks, l)
		ns[l] += n
	}
	p.granted(func(a *account.Account, granted int64) {
		if a.Class == account.ClassLock {
			add(a.Site, granted)
			return
		}
		for _, s := range a.Through {
			add(s.Func, scale(s.NS, granted, a.NS))
		}
	})
	sort.SliceStable(locks, func(i, j int) bool { return ns[locks[i]] > ns[locks[j]] })
	return locks
}

// waitedAt lists the sites of a class of locks, the one with most of the claimed time first, as the
// ledger prints them.
func waitedAt(p *Pass, l *account.Lock) []string {
	ns := map[string]int64{}
	p.granted(func(a *account.Account, granted int64) {
		if a.Class == account.ClassLock {
			ns[a.Site] += granted
			return
		}
		for _, s := range a.Through {
			ns[s.Func] += scale(s.NS, granted, a.NS)
		}
	})
	sites := slices.Clone(l.Sites)
	sort.SliceStable(sites, func(i, j int) bool { return ns[sites[i]] > ns[sites[j]] })
	return sites[:min(len(sites), 3)]
}

// lockSummary says where requests wait, and what the holders of the lock do.
func lockSummary(p *Pass, what, site string, mostly account.Leaf, share float64) string {
	holders := "its holders"
	if h := holderApart(p); h != "" {
		holders += " (" + h + ")"
	}
	return fmt.Sprintf("slow requests wait %s (%s of their time) for %s %s; while they wait %s mostly %s (%s)",
		p.per(p.NS()), p.share(p.NS()), what, site, holders, holding(mostly), percent(share))
}

// holderApart names what has the lock for three quarters of the granted time, if it starts
// elsewhere than requests do: a job in the background. Otherwise it is "".
func holderApart(p *Pass) string {
	ns := map[string]int64{}
	p.granted(func(a *account.Account, granted int64) {
		if a.Class == account.ClassLock {
			ns[cmp.Or(a.Holder, a.Actor)] += granted
		}
	})
	who, groups := most(ns), p.Ledger.Requests.Groups
	if who == "" || 4*ns[who] < 3*p.NS() || len(groups) == 0 {
		return ""
	}
	for i := range groups {
		if groups[i].Entry == who {
			return ""
		}
	}
	return who
}

// holding says what a holder does, by its leaf.
func holding(l account.Leaf) string {
	switch l {
	case account.LeafOnCPU:
		return "compute"
	case account.LeafRunnable:
		return "wait for a P"
	case account.LeafNoCPU:
		return "wait for a CPU"
	case account.LeafTimer:
		return "sleep until a timer"
	case account.LeafNetwork:
		return "wait for the network"
	case account.LeafSyscall:
		return "are in a system call"
	case account.LeafPipe:
		return "wait for a pipe"
	case account.LeafDisk:
		return "wait for the disk"
	}
	return "are at '" + string(l) + "'"
}

// isLogger reports whether a lock is a logger's, by the package of its sites. If the site is the
// lock of a file's descriptor, the frames that wait must show a logger.
func isLogger(l *account.Lock) bool {
	for _, s := range l.Sites {
		if loggerFunc(s) {
			return true
		}
	}
	// A logger without a mutex of its own queues at its file's lock. A program's own lock may be
	// taken on the way to a log line as well, so that a logger above any other site says nothing.
	fd := false
	for _, s := range l.Sites {
		fd = fd || strings.HasPrefix(s, "internal/poll.") || strings.HasPrefix(s, "os.(*File)")
	}
	for i, f := range l.Stack {
		if fd && loggerFunc(f.Func) {
			return true
		}
		// The lock of what a logger writes to, for example a file that rotates, is the logger's
		// too.
		if i > 0 && loggerFunc(f.Func) && isWrite(l.Stack[i-1].Func) && slices.Contains(l.Sites, l.Stack[i-1].Func) {
			return true
		}
	}
	return false
}

// isWrite reports whether the name is that of a method of an io.Writer, or of a logger's sink.
func isWrite(name string) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "Write", "WriteString", "WriteLevel":
		return true
	}
	return false
}

// loggerPackages are import paths of loggers and of the writers made for them, without a major
// version.
var loggerPackages = []string{
	"log",
	"github.com/sirupsen/logrus", "go.uber.org/zap", "github.com/rs/zerolog", "k8s.io/klog", "github.com/golang/glog",
	"github.com/go-kit/log", "github.com/go-kit/kit/log", "github.com/hashicorp/go-hclog", "github.com/apex/log",
	"github.com/phuslu/log", "github.com/charmbracelet/log", "github.com/inconshreveable/log15", "go.elastic.co/ecszap",
	"gopkg.in/natefinch/lumberjack", "github.com/natefinch/lumberjack", "github.com/cihub/seelog",
}

func loggerFunc(name string) bool {
	if i := strings.LastIndex(name, "/vendor/"); i >= 0 {
		name = name[i+len("/vendor/"):]
	}
	for _, p := range loggerPackages {
		// After the path comes the package's dot, a version ("/v2.", "%2ev2.") or a package below.
		// "logic.F" is none of these.
		if rest, ok := strings.CutPrefix(name, p); ok && rest != "" && strings.IndexByte("./%", rest[0]) >= 0 {
			return true
		}
	}
	return false
}

// tellLocks adds the evidence that both lock detectors share, and returns what holders mostly did.
func tellLocks(p *Pass, locks []*account.Lock) (mostly account.Leaf, share float64) {
	did, inferred := map[account.Leaf]int64{}, p.tagged(func(t *account.Tags) int64 { return t.InferredNS })
	var stretched int64
	p.granted(func(a *account.Account, ns int64) {
		did[a.Leaf] += ns
		if ranOrQueued(a.Leaf) {
			stretched += ns
		}
	})
	var leaves []account.Leaf
	for l := range did {
		leaves = append(leaves, l)
	}
	sort.Slice(leaves, func(i, j int) bool {
		if did[leaves[i]] != did[leaves[j]] {
			return did[leaves[i]] > did[leaves[j]]
		}
		return leaves[i] < leaves[j]
	})
	var parts []string
	for i, l := range leaves {
		if i < 5 {
			parts = append(parts, fmt.Sprintf("%s %s", l, percent(ratio(did[l], p.NS()))))
		}
	}
	p.Proof("execution trace: unlockers (inferred)",
		"while requests waited, those who unlocked later were: %s", strings.Join(parts, ", "))
	for i, l := range locks {
		if i == 3 {
			p.Proof("execution trace: locks", "%s more", times(int64(len(locks)-3), "site", "sites"))
			break
		}
		tellLock(p, l)
	}
	if 2*inferred > p.NS() {
		p.Doubt("several queues were seen at these sites at once, so one site is more than one lock: who held which is inferred by site only")
	}
	if did[account.LeafLimit] == 0 {
		var left int64
		for i := range p.Ledger.Slow.Accounts {
			if a := &p.Ledger.Slow.Accounts[i]; a.Leaf == account.LeafLimit &&
				a.Class == account.ClassLock && slices.Contains(locks, lockOf(p.Ledger, a.Site)) {
				left += a.NS
			}
		}
		if left > 0 {
			p.Proof(p.column(),
				"another %s per request (%s) behind it is not claimed: the queue was too long to be followed to its holders", p.per(left), p.share(left))
		}
	}
	if unseen := did[account.LeafLockUnseen]; 2*unseen > p.NS() {
		p.Doubt("for most of the waiting no holder was seen")
	}
	if had := p.tagged(func(t *account.Tags) int64 { return t.EnoughNS }); 2*had > p.NS() {
		p.Proof("kernel records",
			"%s of it passed while every thread of the process that wanted a CPU had one", percent(ratio(had, p.NS())))
	} else if why := shortOfCPU(p.Ledger); why != "" && 2*stretched > p.NS() {
		p.Doubt("%s; so the holders took longer than their work", why)
	}
	tellMutexProfile(p, locks)
	if len(leaves) == 0 {
		return "", 0
	}
	return leaves[0], ratio(did[leaves[0]], p.NS())
}

func tellLock(p *Pass, l *account.Lock) {
	s := strings.Join(l.Sites[:min(len(l.Sites), 4)], ", ")
	if l.Waits == 0 {
		p.Proof("execution trace: locks", "%s", s)
		return
	}
	s += fmt.Sprintf(": %s of all goroutines, %s in all", times(l.Waits, "wait", "waits"), finding.Duration(l.WaitNS))
	if l.MaxQueue > 1 {
		s += fmt.Sprintf(", up to %d in the queue", l.MaxQueue)
	}
	p.Proof("execution trace: locks", "%s", s)
	if l.Handoffs > 0 {
		p.Proof("execution trace: locks",
			"%s: in %s the woken waiter was runnable, not running, while the others waited for it",
			l.Sites[0], times(l.Handoffs, "hand-off", "hand-offs"))
	}
	if len(l.Sleeping) > 0 {
		p.Proof("execution trace: locks", "%s: its holders waited in %s", l.Sites[0], sites(l.Sleeping, 0, 3))
	}
}

// tellMutexProfile adds the second counter beside the trace, where the service keeps it.
func tellMutexProfile(p *Pass, locks []*account.Lock) {
	if p.Ledger.Native {
		return
	}
	switch state, why := mutexProfile(p); state {
	case profileOff:
		p.Proof("not checked", "%s", why)
	case profileOn:
		var all, at float64
		for _, rec := range p.Set.All(mutexStream) {
			all += rec.Value
			if stackAt(rec.Stack, locks) {
				at += rec.Value
			}
		}
		if all > 0 {
			p.Proof("mutex profile",
				"%s of its %s of waiting was ended by unlocking at these sites", percent(at/all),
				finding.Duration(int64(all)))
		}
	}
}

func stackAt(stack []string, locks []*account.Lock) bool {
	for _, f := range stack {
		for _, l := range locks {
			for _, s := range l.Sites {
				if f == s {
					return true
				}
			}
		}
	}
	return false
}

const mutexStream = "/pprof/mutex/delay:ns"

type profileState uint8

const (
	profileOff profileState = iota
	profileOn
)

// mutexProfile reports whether the mutex profile says anything. One whose rate is not set is empty
// for that reason.
func mutexProfile(p *Pass) (profileState, string) {
	rate, ok := p.Set.Fact("/pprof/mutex/fraction:events")
	switch {
	case !ok && !p.Set.Has(mutexStream):
		return profileOff, "mutex profile: " + bring(mutexStream)
	case ok && rate.Value == 0:
		return profileOff, "mutex profile: its rate is not set; runtime.SetMutexProfileFraction(100) in the service turns it on"
	}
	return profileOn, ""
}

// profileAlone says what a mutex profile shows without a trace.
func profileAlone(p *Pass) string {
	state, why := mutexProfile(p)
	if state == profileOff {
		return why
	}
	at, all := map[string]float64{}, 0.0
	for _, rec := range p.Set.All(mutexStream) {
		all += rec.Value
		at[unlockSite(rec.Stack)] += rec.Value
	}
	top := ""
	for s, v := range at {
		if top == "" || v > at[top] || v == at[top] && s < top {
			top = s
		}
	}
	if all == 0 {
		return "the mutex profile is on and empty, but only an execution trace shows which requests waited"
	}
	return fmt.Sprintf("the mutex profile has %s of waiting, most of it (%s) ended by unlocking at %s; only an execution trace shows whether requests waited there",
		finding.Duration(int64(all)), percent(at[top]/all), top)
}

// unlockSite is the first frame outside of sync.
func unlockSite(stack []string) string {
	for _, f := range stack {
		if !strings.HasPrefix(f, "sync.") && !strings.HasPrefix(f, "internal/sync.") {
			return f
		}
	}
	return "an unknown place"
}

// lookRuntimeLocks says which locks a trace cannot show.
func lookRuntimeLocks(p *Pass) {
	if p.Ledger != nil && p.Ledger.Native {
		return // no Go runtime, no profile of it
	}
	if state, why := mutexProfile(p); state == profileOff {
		p.Missing("the runtime's own locks (heap, scheduler), which a trace does not show: %s", why)
	}
}

// lockRemedies depend far more on what the holders did than on the lock.
func lockRemedies(f *finding.Finding, mostly account.Leaf, site string) {
	switch mostly {
	case account.LeafOnCPU:
		f.Remedy = append(f.Remedy, "shorten what runs under the lock at "+site+
			": compute first, and take it only to swap the result in",
			"shard the lock (by key or by P), or read without it: atomic.Pointer to an immutable copy, sync.Map for mostly-read maps")
	case account.LeafRunnable, account.LeafLockBetween:
		f.Remedy = append(f.Remedy,
			"holders mostly wait for a P, not for the work under the lock: take the lock less often (batch, shard), so that fewer hand-offs are needed",
			"give the process more CPU; a shorter critical section alone will not help much")
	case account.LeafNoCPU:
		f.Remedy = append(f.Remedy,
			"holders mostly wait for a CPU, not for the work under the lock at "+site+
				": mend that first; a shorter section only makes such waits rarer")
	case account.LeafTimer, account.LeafNetwork:
		f.Remedy = append(f.Remedy, "do not wait under the lock at "+site+
			": release it around network calls and sleeps, or use singleflight for one key instead of a lock for all")
	case account.LeafSyscall:
		f.Remedy = append(f.Remedy, "move the call out of the lock at "+site+
			": hand the work to one goroutine through a bounded channel")
	case account.LeafAssist, account.LeafSweep, account.LeafAssistCredit:
		f.Remedy = append(f.Remedy, "allocate outside the lock at "+site+": holders pay for GC while the others wait")
	default:
		f.Remedy = append(f.Remedy, "shorten what is done under the lock at "+site+", or shard it")
	}
}
