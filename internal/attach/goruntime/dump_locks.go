package goruntime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// readLocks says who waits for which lock, who likely has it, and what that one does.
func (p *picture) readLocks(r *attach.Reading) {
	if p.locked == 0 {
		return
	}
	var holders []string
	for i, q := range p.queues[:min(len(p.queues), maxQueues)] {
		of := fmt.Sprintf("0x%x", q.addr)
		if q.addr == 0 {
			of = byMost(q.sites)[0]
		}
		r.Facts = append(r.Facts, attach.Fact{Name: FactLockWaiters, Value: float64(q.n), Of: of})
		for _, site := range byMost(q.sites) {
			r.Facts = append(r.Facts, attach.Fact{Name: FactLockSite, Value: float64(q.sites[site]), Of: site})
		}
		for _, h := range q.holders {
			r.Facts = append(r.Facts, attach.Fact{Name: FactLockHolder, Value: float64(h.id), Of: q.holding})
			line := fmt.Sprintf("likely holder (%s): %s", q.reason(h), does(h, classify(h)))
			if i < 2 && len(holders) < 3 && !slices.Contains(holders, line) {
				holders = append(holders, line)
			}
		}
	}
	q := p.queues[0]
	line, minutes := fmt.Sprintf("%s for %s %s", waits(q.n), q.what(), q.where()), q.minutes
	if len(q.sites) > 1 {
		line = fmt.Sprintf("%s for %s: %s", waits(q.n), q.what(), q.where())
	}
	if q.addr == 0 && len(p.queues) > 1 {
		line, minutes = fmt.Sprintf("%d wait in %s: %s", p.locked, p.calls(), sitesText(p.allSites(), p.places())), p.longestAtLock()
	}
	if p.apart() {
		line, minutes = fmt.Sprintf("%d wait for %d locks: %s", p.locked, len(p.queues), sitesText(p.allSites(), p.places())), p.longestAtLock()
	}
	if minutes > 0 {
		line += longest(p.locked, minutes)
	}
	r.Figures = append([]string{line}, append(holders, r.Figures...)...)
	p.judgeLocks(r, q, append([]string{line}, holders...))
}

// calls is how those of all queues ask for their locks.
func (p *picture) calls() string {
	if slices.ContainsFunc(p.queues, func(q *queue) bool { return q.read }) {
		return "Lock or RLock"
	}
	return "Lock"
}

// longestAtLock is the longest wait of all queues, in minutes.
func (p *picture) longestAtLock() (minutes int) {
	for _, q := range p.queues {
		minutes = max(minutes, q.minutes)
	}
	return minutes
}

func (p *picture) allSites() map[string]int {
	all := map[string]int{}
	for _, q := range p.queues {
		for k, n := range q.sites {
			all[k] += n
		}
	}
	return all
}

// places are where the functions of all queues call Lock.
func (p *picture) places() map[string]string {
	all := map[string]string{}
	for _, q := range p.queues {
		for fn, at := range q.places {
			for _, one := range strings.Split(at, ", ") {
				addPlace(all, fn, one)
			}
		}
	}
	return all
}

// atOne counts who may wait for the same lock: those of its address; where none is printed, those
// in methods of its type.
func (p *picture) atOne(q *queue) (n int) {
	for _, other := range p.queues {
		same := other == q
		for _, kind := range other.kinds {
			same = same || q.addr == 0 && other.addr == 0 && kind != "" && hasValue(q.kinds, kind)
		}
		if same {
			n += other.n
		}
	}
	return n
}

func (p *picture) judgeLocks(r *attach.Reading, q *queue, proof []string) {
	waiters := p.atOne(q)
	circle := q.circular()
	switch {
	case waiters >= manyWaiters || q.minutes > 0 || circle:
	case waiters >= fewWaiters && q.held():
	case waiters >= fewWaiters:
		r.State = attach.CannotTell
		r.Means = "some goroutines wait for a lock in this moment; how long they wait is not in it"
		r.Next = append(r.Next,
			attach.Next{Command: "go tool pprof -top 'http://HOST:PORT/debug/pprof/mutex?seconds=10'", Why: "says how long locks are waited for, if the program has set SetMutexProfileFraction"})
		return
	case p.n == 1 && len(p.stacks) == 1 && p.total <= 1:
		r.Signs = append(r.Signs, attach.Sign{Cause: "lock-contention", Grade: attach.Candidate, Proof: proof})
		return
	default:
		return
	}
	cause := "lock-contention"
	r.Means = "goroutines queue for one lock"
	if q.addr == 0 {
		r.Means = "goroutines queue where the program takes a lock, that of one object or of several"
	}
	if waiters == 1 {
		r.Means = "a goroutine waits for a lock for minutes"
	}
	if q.logger {
		cause = "logger-lock"
		r.Means = "goroutines that have something to log queue for their logger's lock"
	}
	sure, remedy := finding.Possible, ""
	switch {
	case circle:
		remedy = oneOrder
		r.Means = "goroutines hold locks and wait for each other's: a deadlock, and all others queue behind"
		sure = finding.Supported
	case len(q.holders) > 0:
		h := q.holders[0]
		r.Means += ", which is likely held in " + q.holding
		if w := classify(h); h.has("os.(*File).Write") && (w.kind == waitNet || w.kind == waitSyscall) {
			r.Means += ": with the lock held it writes to a file or pipe, and the write has not come back"
			if w.kind == waitNet {
				r.Means += ", since that takes no more now"
			}
		} else if w.kind == waitNet || w.down != "" {
			r.Means += ": it waits for the network with the lock held"
		}
		if q.minutes > 0 && q.addr != 0 {
			sure = finding.Supported
		}
	case p.apart():
		remedy = oneOrder
		r.Means = "goroutines wait for minutes, each for another lock: locks that were taken in different order look like this, a deadlock; who holds them, the stacks do not tell"
	case len(p.singles(q)) > 0:
		remedy = oneOrder
		r.Means = fmt.Sprintf("%d goroutines wait for a lock in %s; %s for one elsewhere: locks that are taken in different order look like this, a deadlock behind which the others wait",
			q.n, byMost(q.sites)[0], waitsOf(p.singles(q)))
		r.Next = append(r.Next,
			attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=2', twice, a minute apart", Why: "in a deadlock the same goroutines wait in the same calls"})
	default:
		r.Means += "; who holds it, the stacks do not tell" + p.suspect(q) + q.within()
	}
	r.State = attach.Ill
	r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Found, Sure: sure,
		Share: ratio(float64(waiters), float64(p.n)), Proof: proof, Remedy: remedy})
	r.Next = append(r.Next, attach.Next{Command: "whystall diagnose --pid PID",
		Why: "measures how long requests wait for the lock and what its holders do"})
}

// held reports whether it is likely who keeps a lock for long: it is known by address, or it waits
// itself. One that runs inside a method of the same type is mostly out of it in a moment.
func (q *queue) held() bool {
	return len(q.holders) > 0 && (q.by != "" || classify(q.holders[0]).kind != waitRun)
}

// suspect names who may hold a lock though nothing proves it: a closure of the same type has waited
// as long to send, which no worker does that rests. "": nobody.
func (p *picture) suspect(q *queue) string {
	for _, s := range p.stacks {
		own := s.own().fn
		if q.minutes == 0 || s.minutes < q.minutes || !strings.HasPrefix(s.state, "chan send") ||
			receiver(own) == "" || !hasValue(q.kinds, receiver(own)) {
			continue
		}
		return fmt.Sprintf("; goroutine %d waits as long to send in %s, a function of the same type, and may hold it", s.id, own)
	}
	return ""
}

// within names the method of the same type from which a goroutine got to the lock that it has
// waited for since minutes: if that one holds the lock, nothing ends the wait. "": there is none.
func (q *queue) within() string {
	for _, s := range q.stacks {
		site := slices.IndexFunc(s.frames, func(f frame) bool { return q.sites[f.fn] > 0 })
		if s.minutes == 0 || site < 0 || q.n > fewWaiters || receiver(s.frames[site].fn) == "" {
			continue
		}
		inner := s.frames[site]
		for _, f := range s.frames[site+1:] {
			if receiver(f.fn) != receiver(inner.fn) || f.fn == inner.fn || strings.Contains(f.fn, ".func") {
				continue
			}
			if len(inner.args) > 0 && len(f.args) > 0 && inner.args[0] > 0 && f.args[0] > 0 &&
				!inner.vague && !f.vague && inner.args[0] != f.args[0] {
				continue // of another object
			}
			return fmt.Sprintf("; whether %s, below which %s waits, took it before, its code says", f.fn, s.named())
		}
	}
	return ""
}

// named is "goroutine 12", or "one" where the text has no numbers.
func (s *stack) named() string {
	if s.id == 0 {
		return "one"
	}
	return fmt.Sprintf("goroutine %d", s.id)
}

// oneOrder is what helps against a deadlock, where a shorter section does not.
const oneOrder = "take the locks in the same order everywhere, and call nothing that locks while one is held"

// waitsOf is "a waits" or "a and b wait".
func waitsOf(names []string) string {
	if len(names) == 1 {
		return names[0] + " waits"
	}
	return strings.Join(names, " and ") + " wait"
}

// apart reports whether a few goroutines wait for minutes, each for a lock of its own.
func (p *picture) apart() bool {
	if len(p.queues) < 2 || len(p.queues) > 4 {
		return false
	}
	for _, q := range p.queues {
		if q.addr == 0 || q.minutes == 0 || q.n > 1 || len(q.holders) > 0 {
			return false
		}
	}
	return true
}

// singles are functions of which one or two goroutines wait for a lock, beside a long queue.
func (p *picture) singles(q *queue) (out []string) {
	for _, other := range p.queues {
		if other == q || other.n > 2 || len(out) == 3 || q.n < manyWaiters {
			continue
		}
		for _, site := range byMost(other.sites) {
			if site != "" && q.sites[site] == 0 {
				out = append(out, site)
			}
		}
	}
	return out
}
