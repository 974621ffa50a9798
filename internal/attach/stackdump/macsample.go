package stackdump

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// macSample reads what macOS' sample prints, and the Activity Monitor: stacks by the clock, counted
// in a tree for each thread, those that wait as well as those that compute.
var macSample = &attach.Kind{
	Name:  "macOS sample",
	Hints: []string{"Analysis of sampling ", "Call graph:", "Sampling process ", "DispatchQueue_", "  (in "},
	Claim: claimMacSample,
	Read:  readMacSample,
}

var (
	macHead   = pattern.New(`^Analysis of sampling (\S.*?) \(pid (\d+)\) every (\d+ \w+)$`)
	macThread = pattern.New(`^\s*(\d{1,9}) (Thread_[0-9a-fA-F]+)(?::|\b)\s*(.*)$`)
	macFrame  = pattern.New(`^([\s+!:|]*)(\d{1,9}) (\S.*?)  \(in ([^()]+)\)(?: \+ [\d,.x]+)*(?:  ?\[0x[0-9a-f,.x]+\])?(?:  (\S.*))?$`)
	macOther  = pattern.New(`^(?:Sampling (?:process|completed)|Process:|Path:|Load Address:|Identifier:|Version:|Build Info|App Item|Code Type:|Platform:|Parent Process:|Target Type:|Date/Time:|Launch Time:|OS Version:|Report Version:|Analysis Tool:|Physical footprint|Idle exit|Call graph:|Total number in stack|Sort by top of stack|Binary Images:|-{4}$|\s+0x[0-9a-f]+ - |0x[0-9a-f]+ - |Sample analysis of process)`)
	macSorted = pattern.New(`^\s+\S.*  \(in [^()]+\)(?:  \[0x[0-9a-f]+\])?\s+\d+$|^\S+  \(in [^()]+\)\s+\d+$|^\s+\d+\s+\S.*  \(in `)
)

func claimMacSample(lines []paste.Line) int {
	sure := 0
	n := attach.ClaimWhile(lines, func(i int, text string) bool {
		switch {
		case macThread.MatchString(text), macFrame.MatchString(text):
			sure++
			return true
		case sure == 0 && i > 60:
			return false
		}
		return macHead.MatchString(text) || macOther.MatchString(text) || sure > 0 && macSorted.MatchString(text)
	})
	return attach.ClaimIf(sure > 0, n)
}

// sampled is a thread of the tree: its samples, and the way down that most of them took.
type sampled struct {
	thread
	samples int // of the thread
	leaf    int // of them in the innermost function of the way
}

// parseMacSample follows in each thread's tree the first child of each function: children are
// sorted by their samples. A tree without its indentation reads the same while it has one branch.
func parseMacSample(lines []paste.Line) (list []*sampled, pid int, name, every string) {
	var t *sampled
	depth, open := 0, false
	for _, l := range lines {
		if m := macHead.FindStringSubmatch(l.Text); m != nil {
			name, pid, every = m[1], atoi(m[2]), m[3]
		}
		if strings.HasPrefix(l.Text, "Total number in stack") || strings.HasPrefix(l.Text, "Sort by top") {
			break
		}
		if m := macThread.FindStringSubmatch(l.Text); m != nil && len(list) < 4096 {
			t = &sampled{samples: atoi(m[1]), leaf: atoi(m[1])}
			t.name, t.n = strings.TrimSpace(m[2]+" "+m[3]), 1
			list = append(list, t)
			depth, open = -1, true
			continue
		}
		m := macFrame.FindStringSubmatch(l.Text)
		if m == nil || t == nil || !open || len(t.frames) > 400 {
			continue
		}
		at, n := len(m[1]), atoi(m[2])
		if lost := at == 0 && n == t.leaf; at <= depth && !lost {
			open = false // another branch
			continue
		}
		depth, t.leaf = at, n
		fn, _, _ := strings.Cut(m[3], "(")
		t.frames = append([]frame{{fn: fn, file: m[4]}}, t.frames...)
	}
	return list, pid, name, every
}

func readMacSample(p *attach.Part) attach.Reading {
	list, pid, name, every := parseMacSample(p.Lines)
	r := attach.Reading{Title: "macOS sample", State: attach.CannotTell, Who: attach.Who{PID: pid, Name: name}}
	if name != "" {
		r.Title = fmt.Sprintf("macOS sample of %s, every %s", name, every)
	}
	r.Title += ", " + threads(len(list))
	r.Not = "Samples are by the clock and not of CPU time: a thread that sleeps is in all of them too."
	r.Next = []attach.Next{{Command: "spindump PID 10",
		Why: "tells a thread that runs from one that waits, and what it waits for"}}
	waits, first := 0, ""
	for _, t := range list {
		if len(t.frames) == 0 {
			continue
		}
		place(&t.thread, native)
		if t.doing == idle {
			waits++
			continue
		}
		line := fmt.Sprintf("%s, in %s%d samples: %s", t.called(), ofSamples(t.leaf, t.samples),
			t.samples, t.sampleDoes())
		if p, _ := sleepsIn(t.frames); first == "" {
			first = "Most samples of a thread stand in one place: what it does there, or waits for, is in the functions that called it."
			if p == inRead || p == inWrite {
				first = "A thread waits in a read or write: what the other end of that pipe or socket does meanwhile is not in this process."
			}
		}
		if len(r.Figures) < 4 {
			r.Figures = append(r.Figures, line)
		}
	}
	if waits > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s for work or sleep", waitThreads(waits)))
	}
	switch {
	case len(list) == 0:
		r.Means = "No thread's tree is in it."
	case first == "":
		r.State, r.Means, r.Next = attach.Healthy, "Each thread waits for work, or sleeps.", nil
	default:
		r.Means = first
	}
	return r
}

func waitThreads(n int) string {
	if n == 1 {
		return "1 other thread waits"
	}
	return fmt.Sprintf("%d threads wait", n)
}

func ofSamples(n, of int) string {
	if n == of {
		return "all "
	}
	return fmt.Sprintf("%d of ", n)
}

// called is a thread's name: the main thread's, or its queue's.
func (t *sampled) called() string {
	if strings.Contains(t.name, "com.apple.main-thread") {
		return "the main thread"
	}
	return cutName(t.name)
}

// sampleDoes is what a thread does in most of its samples.
func (t *sampled) sampleDoes() string {
	t.from = max(t.from, 0)
	switch p, at := sleepsIn(t.frames); {
	case t.doing == lock:
		return "it waits for a lock, in " + t.first(3)
	case p == inRead, p == inWrite:
		t.from = at + 1
		return fmt.Sprintf("it is in %s, called from %s: it waits for the other end of a pipe or socket, or for a file", t.call, t.first(3))
	case p != anything:
		return "it waits in " + t.call + ", called from " + t.first(3)
	}
	t.from = 0
	return "it is in " + t.first(3)
}
