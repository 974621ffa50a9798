package report

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

const (
	maxThreads  = 6
	maxBarriers = 3
	maxHops     = 8
)

// bar draws a share as a strip of characters; what is not zero has at least one.
func (p *page) bar(part, whole int64) string {
	barWidth := 32 - max(0, min(26, Columns-p.columns))
	n := 0
	if whole > 0 && part > 0 {
		n = min(barWidth, max(1, int(float64(part)/float64(whole)*float64(barWidth)+0.5)))
	}
	return strings.Repeat("#", n) + strings.Repeat(".", barWidth-n)
}

func (p *page) capacity(r *Report) {
	c := &r.Ledger.Capacity
	if c.TotalNS == 0 {
		return
	}
	p.heading("CAPACITY", fmt.Sprintf("%s x %s", plural(int64(c.Procs), "P", "Ps"), finding.Duration(c.WallNS)))
	ns := make([]int64, len(c.Accounts))
	for i := range c.Accounts {
		ns[i] = c.Accounts[i].NS
	}
	var parts []string
	for i, n := range apportion(ns, 1000) {
		if ns[i] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s %%", c.Accounts[i].Cause, tenths(n)))
		}
	}
	p.par("  ", strings.Join(parts, ", "))
	p.note("", fmt.Sprintf("runnable goroutines waiting for a P: %.1f on average, %d at most",
		c.RunnableAvg, c.RunnableMax))
}

func (p *page) cpus(r *Report) {
	c := r.Ledger.CPUs
	if c == nil {
		return
	}
	p.heading("CPUS", fmt.Sprintf("%s that it may use x %s",
		plural(int64(c.Allowed), "CPU", "CPUs"), finding.Duration(c.WallNS)))
	ns := make([]int64, len(c.Accounts))
	for i := range c.Accounts {
		ns[i] = c.Accounts[i].NS
	}
	if ns[len(ns)-1] == c.TotalNS {
		p.par("  ", "Who used them was not recorded: that takes the switches of all tasks.")
		ns = nil
	}
	for i, n := range apportion(ns, 1000) {
		if ns[i] > 0 || i < 3 {
			p.line("  %7s  %s  %9s  %s", tenths(n)+" %", p.bar(ns[i], c.TotalNS),
				finding.Duration(ns[i]), c.Accounts[i].Cause)
		}
	}
	if s := c.beside(); s != "" {
		p.note("", s)
	}
	if s := whoList(c.Unused, c.Accounts[3].NS, 4); s != "" && c.Accounts[3].NS*100 >= c.TotalNS {
		p.note("its work waited on: ", s)
	}
}

func (p *page) memory(r *Report) {
	m := r.Ledger.Memory
	if m == nil {
		return
	}
	p.heading("MEMORY", finding.Bytes(m.RSS)+" resident")
	for _, a := range m.rows() {
		p.line("  %7s  %s  %9s  %s", a.share, p.bar(a.Bytes, m.RSS), finding.Bytes(a.Bytes), a.Account)
	}
	if s := m.beside(); s != "" {
		p.note("", s)
	}
}

func (p *page) threads(r *Report) {
	k := r.Kernel
	if k == nil {
		return
	}
	p.heading("THREADS", plural(k.ThreadsSeen, "thread", "threads")+" seen")
	p.line("  %9s %9s %9s %9s  %7s  %s", "on CPU", "queued", "throttled", "blocked", "tid", "name")
	p.line("  %9s %9s %9s %9s  %7s  %s", finding.Duration(k.OnNS), finding.Duration(k.QueuedNS),
		finding.Duration(k.ThrottledNS), finding.Duration(k.BlockedNS), "", "all")
	for i := range k.Threads {
		t := &k.Threads[i]
		if i == maxThreads && len(k.Threads) > maxThreads+1 {
			p.line("  %41s  %d more (--format json)", "", k.ThreadsSeen-int64(i))
			break
		}
		p.line("  %9s %9s %9s %9s  %7d  %s", finding.Duration(t.OnNS), finding.Duration(t.QueuedNS),
			finding.Duration(t.ThrottledNS), finding.Duration(t.BlockedNS), t.TID,
			middle(Printable(t.Comm), p.columns-52))
	}
	p.note("", k.running())
	if s := k.who(); s != "" {
		p.note("who had the CPU while they were queued: ", s)
	}
	if s := k.ran(); s != "" {
		p.note("what they ran: ", s)
	}
	if s := k.standstills(); s != "" {
		p.note("", s)
	}
	for i := range k.Stretches {
		p.note("", k.Stretches[i].words())
	}
	if s := k.rest(); s != "" {
		p.note("", s)
	}
}

// pauses shows the long stop-the-worlds and barriers that cost slow requests most.
func (p *page) pauses(r *Report) {
	bs, which := r.longest()
	if len(bs) == 0 {
		return
	}
	p.heading("PAUSES", which)
	for i := range bs {
		b := &bs[i]
		p.par("  ", b.words())
		if s := whoList(b.Leaves, b.End-b.Begin, 4); s != "" {
			p.par("    spent on: ", s)
		}
		for j, h := range b.Hops {
			if j == maxHops && len(b.Hops) > maxHops+1 {
				p.line("      %d more steps (--format json)", len(b.Hops)-j)
				break
			}
			p.par("      ", h)
		}
	}
	if s := fairWords(&r.Kernel.Fair); s != "" {
		p.note("", s)
	}
}

// tiers says what recorded a process, and what could not be seen and so costs certainty.
func (p *page) tiers(r *Report) {
	if len(r.Tiers) == 0 && r.Kernel == nil {
		return
	}
	p.heading("WHAT WAS LOOKED AT", "")
	for _, t := range r.looked() {
		p.note(t[0]+": ", t[1])
	}
	for _, s := range r.Unseen {
		p.note("not seen: ", s)
	}
}
