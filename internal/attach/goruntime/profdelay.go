package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// poolFunction reports whether a function only waits where a pool of connections has none free.
func poolFunction(fn string) bool {
	return fn == "database/sql.(*DB).conn" || strings.HasPrefix(fn, "github.com/jackc/puddle") &&
		strings.Contains(fn, ".Acquire") ||
		strings.Contains(fn, "/pool.(*ConnPool).waitTurn")
}

// innermost is the function with the smallest sum that is still most of the waiting: those above it
// only call it. Where none has half, it is the one with the largest.
func innermost(cum map[string]float64, total float64, ok func(string) bool) (best string) {
	top := most(cum, ok)
	for _, v := range cum {
		total = max(total, v)
	}
	for k, v := range cum {
		if !ok(k) || v < total/2 || v > cum[top] {
			continue
		}
		if best == "" || v < cum[best] || v == cum[best] && k < best {
			best = k
		}
	}
	if best == "" {
		return top
	}
	return best
}

// switchOn is how a program switches the profile on.
func (p *profile) switchOn() (out []attach.Next) {
	if p.kind != profMutex {
		out = append(out, attach.Next{Command: "runtime.SetBlockProfileRate(1000000) in the program", Why: "without it the profile of blocking stays empty; it samples one wait for each ms waited"})
	}
	if p.kind != profBlock {
		out = append(out, attach.Next{Command: "runtime.SetMutexProfileFraction(100) in the program", Why: "without it the profile of mutexes stays empty"})
	}
	return out
}

// eachWait says how long a wait takes. Where most of the time is of few waits, the
// mean of all is one that nobody waited.
func (p *profile) eachWait(unit func(float64) string) string {
	mean, n := p.total/p.events, 0.0
	var top sampled
	for _, s := range p.stacks {
		n += s.n
		if s.value > top.value {
			top = s
		}
	}
	one := ratio(top.value, top.n)
	if len(p.stacks) < 2 || one <= 0 || one < twoModes*mean && mean < twoModes*one {
		return fmt.Sprintf(", %s each", unit(mean))
	}
	return fmt.Sprintf("; at the place with most of it %.0f times, %s each", p.events*top.n/n, unit(one))
}

// readDelay reads profiles of mutexes and of blocking. Those of a time of their own have a rate.
func (p *profile) readDelay(r *attach.Reading) {
	unit := func(v float64) string { return finding.Duration(int64(v)) }
	r.State = attach.CannotTell
	if p.total <= 0 && p.least <= 0 {
		r.Means = "it holds no wait: nobody waited, or the profile is switched off in the program"
		switch p.kind {
		case profBlock:
			r.Means += " (runtime.SetBlockProfileRate)"
		case profMutex:
			r.Means += " (runtime.SetMutexProfileFraction)"
		}
		r.Next = p.switchOn()
		return
	}
	line := unit(p.total) + " waited in all"
	if p.unsummed {
		line += " that is shown"
	}
	if p.least > 0 {
		line = unit(p.least) + " waited at the places that are shown, the rest of which are cut off"
	}
	if p.events > 0 {
		line += fmt.Sprintf(", %.0f times%s", p.events, p.eachWait(unit))
	}
	switch {
	case p.duration > 0:
		line += fmt.Sprintf(", in %s: %.2g s a second", seconds(p.duration), max(p.total, p.least)/1e9/p.duration)
	case p.guessed:
		line += ", since the program started or over the time that was asked for: the line that says is cut off"
	default:
		line += ", since the program started"
	}
	r.Figures = append(r.Figures, line)
	site := p.delaySite()
	if site != "" {
		most := "most of it at"
		if p.cum[site] < p.total/2 {
			most = "more than elsewhere at"
		}
		r.Figures = append(r.Figures, fmt.Sprintf("%s %s: %s%s", most, site, unit(p.cum[site]), p.of(p.cum[site])))
		r.Facts = append(r.Facts, attach.Fact{Name: FactMutexDelay, Value: p.cum[site], Of: site})
	}
	if text := p.unlocks(unit); text != "" {
		r.Figures = append(r.Figures, text)
	}
	share := ratio(max(p.total, p.least)/1e9, p.duration)
	switch {
	case p.kind == profBlock || p.kind == profDelay:
		r.Means = "it adds up waits at channels, selects and locks"
		r.Not = "that something is ill: goroutines that wait for work are in the sum as well"
		if fn := most(p.cum, poolFunction); fn != "" && p.total > 0 && p.cum[fn] >= 0.1*p.total {
			line := fmt.Sprintf("waits for a connection of the pool (%s): %s%s", fn, unit(p.cum[fn]), p.of(p.cum[fn]))
			r.Figures = append(r.Figures, line)
			r.Means = "much of the waiting is for a connection of a pool: all of them were in use"
			r.Signs = []attach.Sign{{Cause: "pool-exhaustion", Grade: attach.Candidate,
				Share: ratio(p.cum[fn], p.total), Proof: []string{line}}}
		}
	case p.duration > 0 && share >= 0.25:
		cause := "lock-contention"
		if hasPrefix(site, loggerParts) {
			cause = "logger-lock"
		}
		r.State = attach.Ill
		r.Means = fmt.Sprintf("%s wait %.2g s in each second for mutexes", p.waiters(), share)
		if site != "" {
			r.Means += ", most for what " + site + " unlocks"
		}
		r.Signs = []attach.Sign{{Cause: cause, Grade: attach.Found, Sure: finding.Possible,
			Share: min(1, share), Proof: r.Figures}}
	case p.duration > 0 && p.least == 0:
		r.State = attach.Healthy
		r.Means = fmt.Sprintf("%s wait %.2g s in each second for mutexes, all of them together", p.waiters(), share)
		r.Signs = []attach.Sign{{Cause: "lock-contention", Grade: attach.Against, Share: share}}
	default:
		r.Means = "it names the code that held mutexes while others waited: the stack is of the unlock"
		if len(p.flat)+len(p.cum) == 0 && site == "" {
			r.Means = "it says how long others waited for mutexes, and gives the unlocks by their addresses, without names"
		}
		r.Not = "how much requests lose now: the sum is since the start, so it is no rate"
		if p.guessed {
			r.Not = "how much that is of the time, which is not in it; nor that Unlock is slow: others waited until it came"
		}
		if p.least > 0 {
			r.Not = "how much is waited in all: the end is cut off; nor how much requests lose now"
		}
	}
	if r.State == attach.CannotTell {
		r.Next = []attach.Next{{Command: "go tool pprof -top 'http://HOST:PORT/debug/pprof/mutex?seconds=10'", Why: "gives a rate; or whystall diagnose --pid PID"}}
	}
}

// unlocks says whether writers or readers of RWMutexes let others wait.
func (p *profile) unlocks(unit func(float64) string) string {
	write, read := p.cum["sync.(*RWMutex).Unlock"], p.cum["sync.(*RWMutex).RUnlock"]
	if p.kind != profMutex || write+read <= 0 || write < 0 || read < 0 {
		return ""
	}
	return fmt.Sprintf("of RWMutexes: %s%s until a writer unlocked, %s%s until readers did",
		unit(write), p.of(write), unit(read), p.of(read))
}

func (p *profile) waiters() string {
	if p.threads {
		return "threads"
	}
	return "goroutines"
}

// delaySite is the program's own function with most of the waiting.
func (p *profile) delaySite() string {
	sums := map[string]float64{}
	for _, s := range p.stacks {
		for _, fn := range s.funcs {
			if !library(fn) {
				sums[fn] += s.value
				break
			}
		}
	}
	if len(p.stacks) == 0 {
		return innermost(p.cum, p.total, ownFunction)
	}
	site := most(sums, nil)
	if site != "" {
		p.cum[site] = max(p.cum[site], sums[site])
	}
	return site
}
