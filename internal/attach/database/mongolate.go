package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mongoLate is MongoDB's complaint that its own serverStatus took long, with the time at which each
// section of it was done.
var mongoLate = (&spoken{
	name:  "MongoDB late serverStatus",
	marks: []string{"serverStatus was very slow"},
	rules: []late{{pattern.New(`serverStatus was very slow"?[:,].*"?at end"?: ?(\d+)`), 1e-3, "serverStatus took"}},
	tell:  tellMongoLate,
}).kind()

var mongoAfter = pattern.New(`"?(?:after ([\w ]+?)|at (end))"?: ?(\d+)`)

// leastJump is a share of the whole from which on a section counts as late.
const leastJump = 0.1

func tellMongoLate(r *result, s *saidLate) {
	sections, jumps, most, name := 0, 0, 0.0, ""
	for i, text := range s.text {
		before, late := 0.0, 0
		for _, m := range mongoAfter.FindAllStringSubmatch(text, 200) {
			at, _ := number(m[3])
			if step := at - before; i < len(s.took[0]) && step >= leastJump*1e3*s.took[0][i] {
				late++
				if step > most {
					most, name = step, m[1]+m[2]
				}
			}
			before = at
			sections++
		}
		jumps = max(jumps, late)
	}
	if sections == 0 || most == 0 {
		r.Means = "Which section took the time cannot be read."
		return
	}
	r.figure(fmt.Sprintf("the largest step: %s before %q; %d sections took a tenth of it or more",
		dur(most/1e3), name, jumps))
	if jumps < 3 {
		r.Means = "One section of it took most of the time: what that section reads is where to look."
		r.Not = "What it waited for there: a lock, the disk or a CPU."
		return
	}
	r.Means = "Sections that only read counters took long at several places: mongod had no CPU, or stood still, and no one section is the reason."
	r.Not = "Why it stood still: a CPU that others have, a quota, memory from swap. Lines of other processes at that moment say whether the machine did."
	stoodStill(r, r.Figures[0])
}

var (
	pyText   = pattern.New(`\bu?'([^'\\]*)'`)
	pyNumber = pattern.New(`\b(\d+)L\b`)
	pyWord   = pattern.New(`: (True|False|None)\b`)
)

// unPython is a line of a document that Python printed, as the shell of MongoDB would print it.
func unPython(text string) string {
	if !strings.Contains(text, "': ") {
		return text
	}
	text = pyNumber.ReplaceAllString(pyText.ReplaceAllString(text, `"$1"`), "$1")
	return pyWord.ReplaceAllStringFunc(text, strings.ToLower)
}

var (
	mongoTimes = pattern.New(`"?(timeAcquiringMicros|timeLockedMicros)"? ?: ?\{([^{}]*)\}`)
	mongoMode  = pattern.New(`"?\b[rwRW]"? ?: ?(?:NumberLong\(|Long\()?"?(\d+)`)
)

// mongoLocked says how long operations waited for locks so far, and held them: waitingForLock is
// of this instant only.
func mongoLocked(r *result, text string) {
	most := map[string]float64{}
	for _, m := range mongoTimes.FindAllStringSubmatch(text, 1<<12) {
		sum := 0.0
		for _, v := range mongoMode.FindAllStringSubmatch(m[2], 8) {
			us, _ := number(v[1])
			sum += us / 1e6
		}
		most[m[1]] = max(most[m[1]], sum)
	}
	if waited := most["timeAcquiringMicros"]; waited >= 0.1 {
		line := fmt.Sprintf("one operation waited %s in all for locks until now", dur(waited))
		if held := most["timeLockedMicros"]; held > 0 {
			line += fmt.Sprintf("; one held them for %s", dur(held))
		}
		r.Figures = slices.Insert(r.Figures, min(1, len(r.Figures)), line)
		r.outside("locks in the database's own collections, which its operations hold", line, 0)
	}
}
