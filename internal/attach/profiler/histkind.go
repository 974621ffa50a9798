package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var bpfHistogram = &attach.Kind{Name: "BPF histogram", Claim: claimHistogram, Read: readHistogram}

// keyLine is what bcc's tools print above one of several histograms: "disk = 'sda'", "pid = 7".
var keyLine = pattern.New(`^([\w:]{1,40}|(?:Remote|Local|All) Addres{1,2}(?:es)?) = (.{1,120})$`)

var clockLine = pattern.New(`^(?:@ ?)?\d{2}:\d{2}:\d{2}:?$`)

// preamble reports whether a line is what the BPF tools print before any figures.
func preamble(text string) bool {
	return text == "^C" || clockLine.MatchString(text) || strings.HasPrefix(text, "Attaching ") &&
		strings.Contains(text, "probe") ||
		hitEnd(text) || strings.HasPrefix(text, "Tracing ") &&
		strings.HasSuffix(text, "... Output every 1 secs.") || isAverage(text) ||
		strings.HasPrefix(text, "Exiting trace of ") || strings.HasPrefix(text, "Lost ") &&
		strings.Contains(text, "events")
}

// isAverage reports whether a line is what stands beside some histograms: "avg = 23 usecs, ...".
func isAverage(text string) bool {
	return strings.HasPrefix(text, "avg = ") || strings.HasPrefix(text, "average = ")
}

// forSeconds is how the perf-tools say the same.
var forSeconds = pattern.New(`( for \d+ seconds( \(buffered\))?\.\.\.|Output every \d+ seconds\.)$`)

// hitEnd reports whether a line says how to end a tool.
func hitEnd(text string) bool {
	starts := strings.HasPrefix(text, "Tracing") || strings.HasPrefix(text, "Sampling") ||
		strings.HasPrefix(text, "Measuring") || strings.HasPrefix(text, "Summarize") ||
		strings.HasPrefix(text, "Counting") || strings.HasPrefix(text, "Tracking")
	return starts && (strings.Contains(text, "Ctrl-C") || strings.Contains(text, "Ctrl+C") ||
		forSeconds.MatchString(text))
}

// histLine reports whether a line is of a histogram: a row, or what stands above rows. tail: its
// counts stand behind the bars.
func histLine(text string, tail bool) (row, ok bool) {
	if _, ok := bucketOf(text); ok {
		return true, true
	}
	if _, ok := tailBucketOf(text); ok && tail {
		return true, true
	}
	return false, arrowHead.MatchString(text) || tailHead.MatchString(text) || tail && text == "~" ||
		mapHead.MatchString(text) || keyLine.MatchString(text) || preamble(text)
}

// mayStartHistogram spares most lines of a long log the expressions.
func mayStartHistogram(text string) bool {
	if text == "" {
		return false
	}
	key := strings.Index(text, " = ")
	return strings.IndexByte("@[(^", text[0]) >= 0 || strings.HasSuffix(text, "|") ||
		strings.HasPrefix(text, "value ") ||
		strings.HasSuffix(text, "istribution") || key > 0 && key <= 40 || len(text) < 12 ||
		hitEnd(text) || strings.HasPrefix(text, "Attaching ") || strings.Contains(text, " -> ")
}

func claimHistogram(lines []paste.Line) int {
	if first := strings.TrimSpace(lines[0].Text); len(first) > 200 || !mayStartHistogram(first) {
		return 0
	}
	rows, end, since, key, tail := 0, 0, 0, 0, false
	claimed(lines, func(i int, text string) bool {
		before := key
		if key = inKey(text, key); key > 0 || before > 0 && stackEnd.MatchString(text) {
			return key < mostKey
		}
		tail = tail || tailHead.MatchString(text)
		row, ok := histLine(text, tail)
		if !ok && rows > 0 && (i+1 == len(lines) || strings.Contains(text, "->")) && cutRow.MatchString(text) {
			end = i + 1
			return false
		}
		switch {
		case !ok:
			return false
		case row:
			rows, since, end = rows+1, 0, i+1
		case since > 8: // a row is near, or this is something else
			return false
		default:
			if since++; isAverage(text) || strings.HasPrefix(text, "Exiting trace of ") {
				end = i + 1
			}
		}
		return true
	})
	if rows < 2 && (rows == 0 || !strings.Contains(lines[end-1].Text, "|") ||
		singleRow.MatchString(strings.TrimSpace(lines[0].Text))) {
		return 0
	}
	return end
}

// histograms reads all histograms of a part. Those with the same key are intervals and are added
// up.
func histograms(p *attach.Part) (out []*histogram, context string, intervals int) {
	byKey := map[string]*histogram{}
	seen := map[string]int{}
	words := []string{p.Command, p.Script}
	units := unitsOf(p.Script)
	var now *histogram
	key, inside, stack := "", 0, stackKey{}
	lines := texts(p)
	for _, text := range lines {
		if n := inKey(text, inside); n > 0 {
			if n == 1 {
				stack = stackKey{label: strings.TrimSuffix(text, "[")}
			} else {
				stack.add(text)
			}
			inside, now = n, nil
			continue
		}
		if inside > 0 && stackEnd.MatchString(text) {
			now = &histogram{key: stack.says(), label: stack.label, unit: unitOf(stack.label), behind: stack.behind}
			words = append(words, stack.label)
			out = append(out, now)
			inside = 0
			continue
		}
		inside = 0
		b, ok := bucketOf(text)
		if !ok && now != nil && now.label == tailLabel {
			b, ok = tailBucketOf(text)
		}
		if ok {
			if now == nil {
				now = &histogram{key: key}
				byKey[key] = now
				out = append(out, now)
			}
			if s := now.seconds(); s > 0 && b.low*s >= overflown {
				now.wrong += b.n
				continue
			}
			if strings.Contains(now.label, "<(") { // ">=(ms) .. <(ms)" of perf-tools
				b.high--
			}
			now.add(b)
			now.last = b.n
			continue
		}
		if m := keyLine.FindStringSubmatch(text); m != nil && !isAverage(text) {
			key = strings.Trim(m[1]+" "+strings.Trim(m[2], "'\""), " ")
			words = append(words, text)
			now = nil
			continue
		}
		if now != nil && cutRow.MatchString(text) {
			now.cut = true
			continue
		}
		label := ""
		if m := arrowHead.FindStringSubmatch(text); m != nil {
			label = m[1]
		} else if tailHead.MatchString(text) {
			label = tailLabel
		} else if m := mapHead.FindStringSubmatch(text); m != nil {
			label, key = m[1], m[1]
		} else {
			if words = append(words, text); now != nil {
				now.addUp(text)
			}
			continue
		}
		words = append(words, label)
		id := key + "\x00" + label
		if now = byKey[id]; now == nil && len(out) < most {
			now = &histogram{key: key, label: label, unit: unitOf(label)}
			if unit := units[mapName(label)]; unit != "" {
				now.renamed, now.unit = now.unit != "" && now.unit != unit, unit
			}
			byKey[id] = now
			out = append(out, now)
		}
		seen[id]++
		intervals = max(intervals, seen[id])
	}
	for _, h := range out {
		if h.label == tailLabel {
			h.linear()
		} else if h.last == 0 && h.total() > 0 { // no tool ends with a row of none
			h.cut = true
		}
	}
	if now != nil && barCut(lines) {
		now.cut = true
	}
	return out, strings.Join(words, "\n"), intervals
}

// tailLabel is the name of the values' column in SystemTap and DTrace.
const tailLabel = "value"

// barCut reports whether lines end within the bar of a row, below one whose bar is whole: more rows
// may follow.
func barCut(lines []string) bool {
	n := len(lines)
	if n < 2 {
		return false
	}
	_, row := bucketOf(lines[n-1])
	return row && strings.Contains(lines[n-1], "|") && !closedBar.MatchString(lines[n-1]) &&
		closedBar.MatchString(lines[n-2])
}

// muchLast is the share of the values in the last row from which on rows may be missing below it:
// the far end of a whole distribution has few.
const muchLast = 0.05

// tracedFunction is the function that funclatency names above its table.
var tracedFunction = pattern.New(`(?i)Tracing \d+ functions? for "([^"\s]{1,80})"`)

func readHistogram(p *attach.Part) attach.Reading {
	all, context, intervals := histograms(p)
	what := measureOf(context)
	unitless := what.timed() && !slices.ContainsFunc(all, func(h *histogram) bool { return h.seconds() > 0 })
	if unitless && slices.ContainsFunc(all, func(h *histogram) bool { return strings.HasPrefix(h.label, "@") }) {
		what = ofUnknown // a program may add up bytes at the same probes
	}
	if what == ofUnknown && slices.ContainsFunc(all, (*histogram).latency) {
		what = ofLatency
	}
	slices.SortStableFunc(all, func(a, b *histogram) int {
		return cmp.Compare(b.at(0.99).low*cmp.Or(b.seconds(), 1), a.at(0.99).low*cmp.Or(a.seconds(), 1))
	})
	r := attach.Reading{Title: fmt.Sprintf("histogram of %s", what), State: attach.CannotTell}
	if m := tracedFunction.FindStringSubmatch(context); m != nil && what == ofFunction {
		r.Title = fmt.Sprintf("histogram of time in %s", m[1])
	}
	if len(all) > 1 {
		r.Title = fmt.Sprintf("%d histograms of %s", len(all), what)
	}
	if intervals > 1 {
		r.Title += fmt.Sprintf(", %d intervals added up", intervals)
	}
	for _, h := range all[:min(3, len(all))] {
		line := h.says()
		if told := h.told(); told != "" {
			line += told
		} else if what == ofOffCPU || what == ofOnCPU {
			line += h.sum()
		}
		r.Figures = append(r.Figures, line)
	}
	enough := 100.0
	if what == ofDisk {
		enough = 50
	}
	foreground := slices.DeleteFunc(slices.Clone(all), func(h *histogram) bool { return h.behind })
	if len(foreground) == 0 {
		r.Means = "All of these are of threads of the kernel, which work behind the programs: whether anybody waited for them is not in it."
		return r
	}
	worst := worstOf(foreground, enough)
	if unitless && what != ofUnknown {
		r.Means = "The line that names the unit of these values is not in it: how long they are cannot be said."
		return r
	}
	histMeaning(&r, what, worst)
	if len(all) > 1 && worst.key != "" {
		ofOne(&r, what, worst.key)
	}
	if h := slower(foreground, worst); h != nil && r.State == attach.Healthy {
		r.State, r.Signs, r.Facts = attach.CannotTell, nil, nil
		s := h.seconds()
		r.Means += fmt.Sprintf(" But of %s %s of %s values are %s or longer.", h.key,
			count(h.from(0.010/s)), count(h.total()), h.value(h.border(0.010/s)))
	}
	scriptMeaning(&r, p.Script, all)
	if slices.ContainsFunc(all, func(h *histogram) bool { return h.cut }) && r.State == attach.Healthy {
		r.State, r.Signs, r.Facts = attach.CannotTell, nil, nil
		r.Means = "It is cut off within its rows: what is shown is fast, and longer ones may be missing."
	}
	if n := worst.total(); r.State == attach.Healthy && len(worst.buckets) > 1 && worst.last >= muchLast*n {
		r.State, r.Signs, r.Facts = attach.CannotTell, nil, nil
		r.Means += fmt.Sprintf(" But the last row has %s of the values: longer ones may be cut off.", pct(worst.last/n))
	}
	if all[0].unit == "usecs" || all[0].unit == "nsecs" {
		r.Not = strings.TrimSpace(r.Not + " Borders of buckets are powers of two: 1.02 ms is 1024 us.")
	}
	return r
}

// ofOne says of which of several histograms what was said is.
func ofOne(r *attach.Reading, what measure, key string) {
	switch what {
	case ofDisk, ofRunQueue, ofFiles, ofQueueLen, ofLatency:
		r.Means = fmt.Sprintf("Of %s, which has the longest p99: %s", key, lower(r.Means))
		for i := range r.Signs {
			for j, line := range r.Signs[i].Proof {
				r.Signs[i].Proof[j] = "of " + key + ": " + line
			}
		}
	}
}

// Facts of run queue latency. Throttling looks the same in them: cpu.stat decides.
const (
	RunQueueP99  attach.FactName = "/runqlat/p99:ns"         // where it lies at least
	RunQueueLong attach.FactName = "/runqlat/over-1ms:share" // of all waits for a CPU
)

// histMeaning says what follows. Main is the histogram with the largest p99.
func histMeaning(r *attach.Reading, what measure, main *histogram) {
	switch what {
	case ofRunQueue:
		runQueueMeaning(r, main)
	case ofDisk:
		diskMeaning(r, main)
	case ofQueueLen:
		queueLenMeaning(r, main)
	case ofFiles:
		r.Means = "It is the time of whole calls, with page cache hits and misses in one: a slow bucket may be a disk, a lock of the file or a writeback."
		r.Not = "The text does not say whose requests waited."
		s := main.seconds()
		if s > 0 && main.from(0.010/s) == 0 && main.total() >= 100 {
			r.State, r.Means = attach.Healthy, fmt.Sprintf("No call of these took %s.",
				main.value(main.border(0.010/s)))
			r.Not = "Many short calls may add up; the text does not say whose requests waited."
		} else if s > 0 && main.total() >= 100 && main.from(0.010/s) >= main.total()/100 {
			r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate,
				Share: main.from(0.010/s) / main.total(),
				Proof: []string{main.part(0.010/s) + " of the calls took 10 ms or longer"}})
			r.Means = main.part(0.010/s) +
				" of the calls took 10 ms or longer, with page cache hits and misses in one: they may have waited for a disk, a lock of the file or a writeback."
			r.Next = append(r.Next, ask("biolatency-bpfcc -m 10 1", 0, "whether the disk took that time"))
		}
	case ofReads:
		r.Means = "It is the time of whole calls: one on a socket, a pipe or a terminal waits for its other end, and one on a file may wait for a disk."
		r.Not = "Which of these the slow ones are of, and whose requests waited, is not in it."
		if s := main.seconds(); s > 0 && main.from(0.010/s) == 0 && main.total() >= enoughForP99 {
			r.State, r.Means = attach.Healthy, fmt.Sprintf("No call of these took %s.", main.value(main.border(0.010/s)))
			r.Not = "Many short calls may add up; the text does not say whose requests waited."
		}
	case ofOnCPU:
		r.Means = "It is how long threads ran until they left their CPU. It has no waiting in it."
		r.Not = "Short stretches are usual for services that wait a lot; long ones for computing."
	case ofOffCPU:
		r.Means = "It is how long threads were off CPU, for whatever reason: waits for work are in it."
		r.Not = "Long buckets are mostly threads that had nothing to do."
		r.Next = append(r.Next, ask("offcputime-bpfcc -p PID 10", 0, "in which functions the threads waited"))
	case ofInterrup:
		r.Means = "It is how long single interrupts ran."
		if main.unit == "usecs" && main.at(0.5).low >= 1000 {
			r.Not = "Some versions of softirqs and hardirqs print nanoseconds below usecs with -d: interrupts of milliseconds at the median are more likely microseconds."
		}
		if s := main.seconds(); s > 0 && main.from(0.001/s) == 0 {
			if main.total() >= enoughForP99 {
				r.State = attach.Healthy
			}
			r.Means += " None of them took a millisecond."
		}
	case ofRTT:
		r.Means = "It is the network's round trip, which is outside of this machine."
		r.Not = "A long round trip is distance or a peer's delayed answer, and no stall here."
	case ofQueries:
		r.Means = "It is how long a database took for queries: what it waited for meanwhile is not in it."
		if s := main.seconds(); s > 0 && main.from(0.100/s) > 0 {
			r.Signs = append(r.Signs,
				attach.Sign{Grade: attach.Outside,
					Where: fmt.Sprintf("the database: %s queries from %s on",
						count(main.from(0.100/s)), main.value(main.border(0.100/s)))})
		}
	case ofWork:
		r.Means = "It is how long work waited for threads of the kernel: write-back, timers and the like. No request waits for most of it."
	case ofBacklog:
		r.Means = "It is how many connections waited for the program's accept when another one came."
		r.Not = "The limit of the queue is its key, where there is one: beyond it connections are dropped."
		if main.mayBe(4) == 0 && main.total() >= enoughForP99 {
			r.State = attach.Healthy
			r.Means += " None found four or more there."
		}
	case ofLatency:
		r.Means = "By its name and unit it is how long something took or waited; of what, its key or the script says."
		if s, n := main.seconds(), main.total(); s > 0 && n >= 20 && main.from(0.010/s) >= n/100 {
			r.Means = fmt.Sprintf("By its name and unit it is how long something took or waited: %s of it 10 ms or longer. Of what, its key or the script says.", main.part(0.010/s))
		}
		r.Not = "A long tail may be idle waiting: who waits for it is not in it."
	case ofSizes:
		r.Means = "It is a distribution of sizes: no time is in it."
	default:
		r.Means = "Without the command above it, what these values are cannot be said."
		if what == ofFunction {
			r.Means = "It is the wall time of a function, with all of its waits."
		}
		r.Not = "A long tail may be idle waiting: it depends on what was measured."
	}
}
