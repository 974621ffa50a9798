package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var bpfStacks = &attach.Kind{Name: "BPF stacks", Claim: claimStacks, Read: readStacks, Yields: nil}

var (
	// "    ffffffff810df082 hrtimer_wakeup", "    schedule+0x12", "    [unknown]"
	stackFrame = pattern.New(`^(?:b')?(?:(?:0x)?[0-9a-f]{8,16} +)?(\[unknown\]|\[Missed [A-Za-z ]+\]|[A-Za-z_.$~][\w.$:~@\[\]/;+-]*|[A-Za-z_~][\w~]*(?:::|<|\()\S.*|operator .*|0x[0-9a-f]+)'?$`)
	// "    -                dd (25036)", "    target:          sshd", "    tar [15069]"
	stackOwner = pattern.New(`^(?:-\s+(\S.*?) \((\d+)\)|(target|waker):\s+(\S.*)|(\S+) \[(\d+)\])$`)
)

// foldedOwner is a stack's owner: a thread, or who woke and was woken.
type foldedOwner struct {
	comm          string
	pid           int
	target, waker bool
	dashed        bool // "-  dd (25036)", as tools write it whose numbers are us
}

func stackOwnerOf(text string) (o foldedOwner, ok bool) {
	m := stackOwner.FindStringSubmatch(text)
	switch {
	case m == nil:
		return o, false
	case m[3] != "":
		o.comm, o.target, o.waker = m[4], m[3] == "target", m[3] == "waker"
	default:
		o.comm, o.dashed = m[1]+m[5], m[1] != ""
		o.pid, _ = whole(m[2] + m[6])
	}
	return o, true
}

// stacksHead reports whether a line heads a table of stacks.
func stacksHead(text string) bool {
	return hitEnd(text) && (strings.Contains(text, "stack") || strings.Contains(text, "functions for")) ||
		strings.Contains(text, "kernel stack") &&
			(strings.HasPrefix(text, "Tracing ") || strings.HasPrefix(text, "Sampling ")) ||
		strings.HasPrefix(text, "Sampling at ") && strings.Contains(text, "Hertz")
}

func isWhole(text string) bool { _, ok := whole(text); return ok && len(text) < 20 }

// mayStartStack spares most lines of a long log the expressions: they have several words.
func mayStartStack(text string) bool {
	i := strings.IndexByte(text, ' ')
	return text != "" && (i < 0 || text[0] == '-' || strings.IndexByte(text[:i], '(') > 0 ||
		strings.IndexByte(text[:i], '<') > 0 || strings.Contains(text, "::") ||
		strings.IndexByte(text[i+1:], ' ') < 0 || strings.HasPrefix(text, "target:") ||
		strings.HasPrefix(text, "waker:") || strings.HasPrefix(text, "operator ") || stacksHead(text))
}

func claimStacks(lines []paste.Line) int {
	if first := lines[0].Text; len(first) > 300 || !mayStartStack(strings.TrimSpace(first)) {
		return 0
	}
	end, frames, sure := 0, 0, false
	n := claimed(lines, func(i int, text string) bool {
		_, owner := stackOwnerOf(text)
		switch {
		case isWhole(text):
			if frames < 2 && !sure {
				return false
			}
			if frames > 0 {
				end = i + 1
			}
			frames = 0
		case stacksHead(text):
			sure = sure || strings.Contains(text, "stack")
		case owner:
			sure = true
			frames++
		case text == "^C", text == "--", text == "- -", text == "-                -",
			text == "[...]", text == "[...truncated...]", strings.HasPrefix(text, "WARNING: ") &&
				strings.Contains(text, "stack"):
		case strings.HasPrefix(text, "-") && strings.Trim(text, "- ") == "":
		case stackFrame.MatchString(text):
			sure = sure || schedulerPlumbing[text] || entries[text] || faultFuncs[text]
			if frames++; frames > 260 {
				return false
			}
		default:
			return false
		}
		return true
	})
	if end == 0 {
		return bareStack(lines)
	}
	next := end
	for next < n && strings.TrimSpace(lines[next].Text) == "" {
		next++
	}
	if rest := bareStack(lines[next:]); rest > 0 && next+rest <= n { // the last stack's number was cut off
		end = next + rest
	}
	return attach.ClaimIf(sure, end)
}

// bareStack counts the lines of one stack of a thread off CPU whose time was cut off.
func bareStack(lines []paste.Line) int {
	if len(lines) == 0 {
		return 0
	}
	m := stackFrame.FindStringSubmatch(strings.TrimSpace(lines[0].Text))
	if m == nil {
		return 0
	}
	first, _, _ := strings.Cut(m[1], "+")
	if first, _, _ = strings.Cut(first, "."); !schedulerPlumbing[first] {
		return 0
	}
	n := 0
	for n < min(len(lines), 260) && lines[n].Command == "" && stackFrame.MatchString(strings.TrimSpace(lines[n].Text)) {
		n++
	}
	if n < 5 {
		return 0
	}
	return n
}

// readBareStack says what a stack without its time waits in.
func readBareStack(p *attach.Part) attach.Reading {
	var names []string
	for _, text := range texts(p) {
		if m := stackFrame.FindStringSubmatch(text); m != nil {
			name, _, _ := strings.Cut(m[1], "+0x")
			names = append(names, name)
		}
	}
	kind := waitOf(names)
	return attach.Reading{Title: "a stack of a thread off CPU, without its time", State: attach.CannotTell,
		Figures: []string{fmt.Sprintf("it is in %s: %s", placeOf(kind, names), kind)},
		Means:   "Which thread it is, and how long it waited, was cut off.",
		Not:     "Threads that wait for work make up most of such stacks."}
}

// stackBlock is one stack with its number.
type stackBlock struct {
	names []string // innermost first; the kernel's stand first
	owner foldedOwner
	woken string // with a waker: who was woken
	value float64
	// kernel is how many of names are marked as the kernel's; 0: only the names tell.
	kernel int
}

// split divides the functions into the kernel's and the program's.
func (b *stackBlock) split() (inKernel, inProgram []kernel.Frame) {
	if b.kernel == 0 || b.kernel > len(b.names) {
		return split(b.names, offCPUStack(b.names))
	}
	inKernel, _ = split(b.names[:b.kernel], true)
	return inKernel, frames(b.names[b.kernel:], "")
}

// stackBlocks reads the stacks of a part, and what its head says they are.
func stackBlocks(p *attach.Part) (out []stackBlock, head string) {
	var b stackBlock
	fresh := true
	for _, text := range texts(p) {
		if fresh {
			b, fresh = stackBlock{}, false
		}
		owner, isOwner := stackOwnerOf(text)
		switch {
		case stacksHead(text):
			head = text
		case text == "":
		case isWhole(text):
			b.value, _ = number(text)
			if (len(b.names) > 0 || b.owner.comm != "") && len(out) < most {
				out = append(out, b)
			}
			fresh = true
		case isOwner && owner.waker:
			b.woken = "waker " + owner.comm
		case isOwner:
			b.owner = owner
		case strings.HasPrefix(text, "-") && strings.Trim(text, "- ") == "":
			if b.woken != "" {
				b.names = nil // what stands above is the stack of who woke
			}
		case stackFrame.MatchString(text) && len(b.names) < 256:
			m := stackFrame.FindStringSubmatch(text)
			name, _, _ := strings.Cut(m[1], "+0x")
			b.names = append(b.names, name)
		}
	}
	return out, head
}

// offCPUStack reports whether the innermost functions are those through which a thread leaves its
// CPU.
func offCPUStack(names []string) bool {
	for _, n := range names[:min(2, len(names))] {
		n, _, _ = strings.Cut(n, ".")
		n, _, _ = strings.Cut(n, "+")
		if schedulerPlumbing[n] || n == "thread_return" || n == "preempt_schedule_irq" || n == "_cond_resched" {
			return true
		}
	}
	return false
}

// bracketed is the owner of a stack as stackcount prints it: "tar [15069]".
var bracketed = pattern.New(`^\S+ \[\d+\]$`)

// counted reports whether stacks have counts and no times: by the head or the command, or since the
// threads are written as stackcount does.
func counted(p *attach.Part, head string) bool {
	return strings.Contains(head, "functions for") || strings.Contains(head, "stackcount") ||
		slices.ContainsFunc(texts(p), func(text string) bool { return bracketed.MatchString(text) })
}

func readStacks(p *attach.Part) attach.Reading {
	blocks, head := stackBlocks(p)
	if len(blocks) == 0 && bareStack(p.Lines) > 0 {
		return readBareStack(p)
	}
	total, off, woken := 0.0, 0.0, false
	for _, b := range blocks {
		total += b.value
		if offCPUStack(b.names) {
			off += b.value
		}
		woken = woken || b.owner.target || b.woken != ""
	}
	lower := strings.ToLower(head + " " + p.Command)
	switch {
	case strings.Contains(lower, "off-cpu time"), strings.Contains(lower, "offcputime"),
		total > 0 && off >= 0.8*total && !strings.Contains(lower, "sampling") && !counted(p, lower), woken:
		micro := strings.Contains(lower, "(us)") || strings.Contains(lower, "offcputime") || woken ||
			head == "" && slices.ContainsFunc(blocks, func(b stackBlock) bool { return b.owner.dashed })
		r := offCPUReading(blocks, woken, micro)
		if !micro {
			unitless(&r)
		}
		if last := texts(p); !isWhole(last[len(last)-1]) {
			endCut(&r)
		}
		return r
	case strings.Contains(lower, "sampling"), strings.Contains(lower, "profile"):
		return onCPUReading(blocks, "CPU samples by stack")
	}
	r := countedStacks(blocks)
	if m := strings.Index(head, "functions for"); m >= 0 {
		r.Title = "stacks that led to " +
			strings.TrimSuffix(strings.Trim(head[m+len("functions for "):], "."), "... Hit Ctrl-C to end")
	}
	return r
}

// onCPUReading reads stacks as CPU samples.
func onCPUReading(blocks []stackBlock, title string) attach.Reading {
	p := profile{stacks: true, samples: make([]sample, 0, len(blocks))}
	for i := range blocks {
		b := &blocks[i]
		s := sample{weight: b.value, comm: b.owner.comm}
		s.kernel, s.program = b.split()
		b.names = nil // as frames they take five times the memory already
		p.samples = append(p.samples, s)
		p.number += int(min(b.value, 1e9))
		p.pid = b.owner.pid
	}
	if slices.ContainsFunc(blocks, func(b stackBlock) bool { return b.owner.pid != p.pid }) {
		p.pid = 0
	}
	r := p.reading()
	r.Title = fmt.Sprintf("%s, %s of %s", title, attach.Plural(len(blocks), "stack"), attach.Plural(p.number, "sample"))
	return r
}

// offCPUReading reads stacks as time off CPU. Micro: the numbers are us.
func offCPUReading(blocks []stackBlock, woken, micro bool) attach.Reading {
	w := newWaiting()
	idle, top := 0.0, stackBlock{}
	for _, b := range blocks {
		kind := waitOf(b.names)
		if kernelThread(b.owner.comm) {
			kind = waitedIdle
		}
		if kind.restful() {
			idle += b.value
		}
		w.add(kind, placeOf(kind, b.names), b.value)
		if !kind.restful() && b.value > top.value {
			top = b
		}
	}
	total := w.whole
	r := attach.Reading{State: attach.CannotTell, Title: fmt.Sprintf("time off CPU by stack, %s",
		attach.Plural(len(blocks), "stack"))}
	if woken {
		r.Title = fmt.Sprintf("blocked time by who woke, %s", attach.Plural(len(blocks), "stack"))
	}
	if total <= 0 {
		r.Means = "It has no time."
		return r
	}
	unit := func(v float64) string { return count(v) }
	if micro {
		unit = func(v float64) string { return lasts(v / 1e6) }
	}
	if woken && !slices.ContainsFunc(blocks, func(b stackBlock) bool { return b.woken != "" && offCPUStack(b.names) }) {
		return wakers(r, blocks, total, unit)
	}
	r.Figures = append(r.Figures, unit(total)+" off CPU in all threads, "+w.figures("of it"))
	if top.value > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("the longest that is no idling: %s, %s in %s",
			unit(top.value), top.owner.comm, strings.Join(top.names[:min(8, len(top.names))], " < ")))
	}
	r.Not = "Threads that wait for work make up most of any such sum: it is no time that requests lost."
	if w.by[waitedFutex] > 0 {
		r.Not += " A futex may be a lock or a pool's thread without work; the program's functions would tell."
	}
	offSigns(&r, w, total-idle, micro)
	if r.State == attach.Healthy && (len(blocks) < fewStacks || w.share(waitedCond) >= 0.2) {
		r.State = attach.CannotTell // others were cut off, or wait for what other threads do
	}
	return r
}

// wakers is the reading of stacks of who woke threads: what these had waited for is in none.
func wakers(r attach.Reading, blocks []stackBlock, total float64, unit func(float64) string) attach.Reading {
	by := map[string]float64{}
	for i := range blocks {
		by[blocks[i].owner.comm] += blocks[i].value
	}
	var out []string
	for _, comm := range attach.Largest(by)[:min(3, len(by))] {
		out = append(out, unit(by[comm])+" "+comm)
	}
	r.Figures = append(r.Figures, unit(total)+" off CPU in all threads until they were woken: "+strings.Join(out, ", "))
	r.Means = "The stacks are of who woke the threads: they say who ended a wait, and not what was waited for."
	r.Not = "Threads that wait for work make up most of any such sum: it is no time that requests lost."
	r.Next = append(r.Next, ask("offcputime-bpfcc -p PID 10", 0, "the stacks in which threads waited"))
	return r
}

// kernelThread reports whether a thread is the kernel's own, by its name: it works behind
// everybody.
func kernelThread(comm string) bool {
	for _, p := range []string{"kworker", "swapper", "rcu", "ksoftirqd", "jbd2", "kswapd",
		"kcompactd", "khugepaged", "xfsaild", "migration/", "kthreadd", "ext4lazyinit", "writeback",
		"flush-", "md", "dmcrypt", "loop", "kdmflush", "kdamond", "watchdog"} {
		if rest, ok := strings.CutPrefix(comm, p); ok &&
			(len(p) > 4 || rest == "" || rest[0] == '_' || rest[0] == '/' || rest[0] >= '0' && rest[0] <= '9') {
			return true
		}
	}
	return false
}

// offSigns says what the waits other than for work are.
func offSigns(r *attach.Reading, w *waiting, busy float64, micro bool) {
	least := 0.0
	if micro {
		least = 50_000 // us: what is less is nobody's slowness
	}
	if busy <= least {
		r.State = attach.Healthy
		r.Means = "No part of it is waiting for anything but work."
		if busy > 0 {
			r.Means = "Hardly any of it is waiting for anything but work."
		}
		if busy > 0 && micro {
			r.Means = fmt.Sprintf("Only %s of it is waiting for anything but work: that is little.", lasts(busy/1e6))
		}
		if w.by[waitedCond] > 0 {
			r.Means += " Waits for a condition count as such here, and may be for what other threads do."
		}
		return
	}
	w.whole, w.of = busy, "what is not waiting for work"
	w.signs(r, finding.Possible)
	for i := range r.Signs {
		if s := &r.Signs[i]; micro && s.Grade == attach.Found && s.Share*busy < 1e6 { // over how long is not said
			s.Grade, s.Sure = attach.Candidate, ""
			r.State = attach.CannotTell
		}
	}
	if slices.ContainsFunc(r.Signs, func(s attach.Sign) bool { return s.Grade == attach.Found }) {
		r.State = attach.Ill
	}
	if share := w.share(waitedPreempted); share >= 0.20 {
		line := fmt.Sprintf("%s of it are threads that were put off their CPU while they still wanted it", pct(share))
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate,
			Share: share, Proof: []string{line}},
			attach.Sign{Cause: "cpu-throttled", Grade: attach.Candidate, Share: share, Proof: []string{line}})
	}
	switch {
	case len(r.Signs) > 0 && len(r.Signs[0].Proof) > 0:
		r.Means = upper(r.Signs[0].Proof[0]) + "."
		r.Next = append(r.Next, record(0, "whose requests waited in it"))
	case w.share(waitedPeer) >= 0.5:
		r.Means = fmt.Sprintf("Of the rest, %s waits for the other end of sockets: for an answer, or for a client that asks nothing. Which of them is not in it.", pct(w.share(waitedPeer)))
		r.Next = append(r.Next, record(0, "which of these waits requests had"))
	default:
		r.Means = "What the threads waited for is not plain from these functions."
		r.Next = append(r.Next, record(0, "which of these waits requests had"))
	}
}
