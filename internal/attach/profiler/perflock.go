package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var perfLock = &attach.Kind{Name: "perf lock", Claim: claimPerfLock, Read: readPerfLock,
	Hints: []string{"contended", "wait"}}

var (
	// "  40   50.25 us   8.10 us   1.26 us   spinlock   native_write_msr+0x6"
	contentionRow = pattern.New(`^(\d+)\s+(\d+(?:\.\d+)?) (ns|us|ms|s)\s+(\d+(?:\.\d+)?) (ns|us|ms|s)\s+(\d+(?:\.\d+)?) (ns|us|ms|s)\s+(?:(\S+)\s+)?(\S.*)$`)
	// "  &rq->__lock   1200   33   2.10 us   70.11 us   9.11 us   512 ns", in ns before 6.x
	lockRow = pattern.New(`^(\S+)\s+(\d+)\s+(\d+)\s+(\d+(?:\.\d+)?)(?: (ns|us|ms|s))?\s+(\d+(?:\.\d+)?)(?: (ns|us|ms|s))?\s+(\d+(?:\.\d+)?)(?: (ns|us|ms|s))?\s+(\d+(?:\.\d+)?)(?: (ns|us|ms|s))?$`)
)

func lockHead(text string) bool {
	return header(text, "Name", "acquired", "contended") || header(text, "contended", "total", "wait")
}

func claimPerfLock(lines []paste.Line) int {
	if !lockHead(strings.TrimSpace(lines[0].Text)) {
		return 0
	}
	return claimed(lines, func(_ int, text string) bool {
		return lockHead(text) || contentionRow.MatchString(text) || lockRow.MatchString(text) ||
			strings.HasPrefix(text, "=== output for debug") || strings.HasPrefix(text, "bad: ") ||
			strings.HasPrefix(text, "bad rate") || strings.HasPrefix(text, "histogram of") ||
			strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "acquire") ||
			strings.HasPrefix(text, "contended:") ||
			strings.HasPrefix(text, "release") || strings.HasPrefix(text, "contention_")
	})
}

// unitSeconds is what a unit of perf lock is; without one it is ns.
func unitSeconds(unit string) float64 {
	switch unit {
	case "us":
		return 1e-6
	case "ms":
		return 1e-3
	case "s":
		return 1
	}
	return 1e-9
}

// lockRowSum is what rows of one caller, or of one lock, say together.
type lockRowSum struct {
	name         string
	n            float64
	sum, longest float64 // s
	lone         float64 // s, waits that are nearly all of a row's sum: a mean of these rows is of none
	rows         int     // that were added up
	doubted      bool
	background   bool // of a thread of the kernel, or one wait of a thread: the kind of lock is not said
}

// spunTooLong is a single wait for a spinlock, in s, that is hardly one: a CPU would have spun all
// the while, with preemption off. An end that perf missed looks like that.
const spunTooLong = 0.1

// lockRowOf reads a row of either table.
func lockRowOf(text string) (row lockRowSum, ok bool) {
	if m := contentionRow.FindStringSubmatch(text); m != nil {
		row.name = contendedBy(m[8], m[9])
		row.n, _ = number(m[1])
		row.sum, _ = number(m[2])
		row.longest, _ = number(m[4])
		row.sum, row.longest = row.sum*unitSeconds(m[3]), row.longest*unitSeconds(m[5])
		spins := m[8] == "spinlock" || strings.HasPrefix(m[8], "rwlock") ||
			strings.HasSuffix(m[9], "(spinlock)") || strings.HasSuffix(m[9], "(rwlock)")
		row.doubted = spins && row.longest >= spunTooLong
		if _, thread := whole(m[8]); thread {
			row.background = kernelsOwn(m[9]) || row.n == 1
		}
	} else if m := lockRow.FindStringSubmatch(text); m != nil {
		row.name = m[1]
		row.n, _ = number(m[3])
		row.sum, _ = number(m[6])
		row.longest, _ = number(m[8])
		row.sum, row.longest = row.sum*unitSeconds(m[7]), row.longest*unitSeconds(m[9])
	} else {
		return row, false
	}
	row.rows = 1
	if row.n > 1 && row.longest >= 0.9*row.sum {
		row.lone = row.longest
	}
	return row, true
}

// kernelsOwn reports whether a thread is the kernel's own by its name. Besides those that are
// known, a slash in a name without a blank is the kernel's way to number its threads.
func kernelsOwn(comm string) bool {
	return kernelThread(comm) || strings.Contains(comm, "/") && !strings.Contains(comm, " ")
}

// contendedBy names a row by its last columns: a kind of lock and who asks for it, with -t a
// thread, or with -l a lock's address and name.
func contendedBy(first, second string) string {
	if pid, ok := whole(first); ok {
		return fmt.Sprintf("%s (%d)", second, pid)
	}
	if len(first) >= 12 && strings.Trim(first, "0123456789abcdef") == "" {
		return second + " at " + first
	}
	return strings.TrimSpace(first + " at " + second)
}

// says is the line of figures of a row.
func (row *lockRowSum) says() string {
	line := fmt.Sprintf("%s: waited %s in all, %s times", row.name, lasts(row.sum), count(row.n))
	switch {
	case row.n == 1:
		line = fmt.Sprintf("%s: waited %s, once", row.name, lasts(row.sum))
	case row.rows > 1 && row.longest > 0:
		line += fmt.Sprintf(", longest %s, in %d rows", lasts(row.longest), row.rows)
	case row.lone > 0:
		line += fmt.Sprintf(", nearly all of it one wait of %s", lasts(row.lone))
	case row.longest > 0:
		line += fmt.Sprintf(", longest %s", lasts(row.longest))
	}
	return line
}

func readPerfLock(p *attach.Part) attach.Reading {
	rows := map[string]*lockRowSum{}
	by := map[string]float64{}
	for _, text := range texts(p) {
		row, ok := lockRowOf(text)
		if !ok || len(by) >= most {
			continue
		}
		if one := rows[row.name]; one != nil {
			one.n, one.sum, one.rows = one.n+row.n, one.sum+row.sum, one.rows+1
			one.longest, one.lone = max(one.longest, row.longest), max(one.lone, row.lone)
			one.doubted, one.background = one.doubted || row.doubted, one.background && row.background
		} else {
			rows[row.name] = &row
		}
		by[row.name] += row.sum
	}
	r := attach.Reading{Title: fmt.Sprintf("perf lock, %s", attach.Plural(len(by), "row")), State: attach.CannotTell}
	if len(by) == 0 {
		r.Means = "No row stands below its head: either nobody waited for a lock, or the rows were cut off."
		return r
	}
	total, worst, background := 0.0, 0.0, 0.0
	var doubted []string
	for _, name := range attach.Largest(by) {
		row := rows[name]
		if len(r.Figures) < 2 {
			r.Figures = append(r.Figures, row.says())
		}
		if row.doubted {
			doubted = append(doubted, fmt.Sprintf("%s (one of %s)", name, lasts(row.longest)))
			continue
		}
		total += row.sum
		if row.background {
			background += row.sum
		}
		worst = max(worst, row.longest)
	}
	r.Not = "It is a sum over all threads and CPUs, and no elapsed time. Locks of the program itself are not in it."
	if len(doubted) > 0 {
		lockDoubts(&r, doubted, len(by), total, worst)
		return r
	}
	r.Figures = append(r.Figures, fmt.Sprintf("all: %s, longest %s", lasts(total), lasts(worst)))
	r.Means = fmt.Sprintf("Threads waited %s for locks of the kernel in these rows; over how long, and whose requests, is not in it.", lasts(total))
	switch {
	case worst < 0.001 && total < 0.1:
		r.Means = fmt.Sprintf("Threads waited %s for locks of the kernel in these rows, and less than a millisecond at a time (%s at most).", lasts(total), lasts(worst))
	case total >= 0.1 && total-background < 0.1:
		r.Means = "Nearly all of it are waits of threads of the kernel, or single waits: which lock is not in it, and a thread that waits for work at a semaphore looks the same."
		r.Next = append(r.Next, ask("perf lock contention -ab -- sleep 10", 0,
			"which functions wait, and for what kind of lock"))
	case total >= 0.1:
		r.Signs = append(r.Signs, attach.Sign{Cause: "kernel-lock", Grade: attach.Candidate, Proof: r.Figures[:1]})
		r.Next = append(r.Next, record(0, "whose requests waited for it"))
	}
	return r
}

// lockDoubts says what is left where waits for spinlocks are longer than any CPU spins.
func lockDoubts(r *attach.Reading, doubted []string, n int, total, worst float64) {
	r.Means = fmt.Sprintf("Single waits for spinlocks are hardly real here, since a CPU would have spun all the while: %s. An end that perf missed looks like that.", strings.Join(doubted[:min(3, len(doubted))], ", "))
	if len(doubted) == n {
		return
	}
	r.Figures = append(r.Figures, fmt.Sprintf("without these: %s, longest %s", lasts(total), lasts(worst)))
	r.Means += fmt.Sprintf(" Without these threads waited %s for locks of the kernel, %s at most.",
		lasts(total), lasts(worst))
	if total >= 0.1 {
		r.Signs = append(r.Signs, attach.Sign{Cause: "kernel-lock", Grade: attach.Candidate,
			Proof: []string{r.Figures[len(r.Figures)-1]}})
		r.Next = append(r.Next, record(0, "whose requests waited for it"))
	}
}
