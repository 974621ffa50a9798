package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mongoState reads what MongoDB's shell prints of serverStatus and currentOp: nearly JSON, with
// NumberLong and the like in it, whole or cut off.
var mongoState = &attach.Kind{
	Name:   "MongoDB state",
	Yields: []string{"MongoDB late serverStatus"},
	Hints:  []string{"{", "u'", "inprog", "globalLock", "wiredTiger", "currentQueue"},
	Claim: func(lines []paste.Line) int {
		n, depth, own := 0, 0, 0
		for i, l := range lines {
			t := unPython(strings.TrimSpace(l.Text))
			if t == "" && l.Command == "" && i > 0 && strings.HasSuffix(strings.TrimSpace(lines[i-1].Text), "{") {
				continue // the shell prints an empty document on three lines
			}
			switch {
			case l.Command != "" || t == "" || len(t) > 64<<10:
				return attach.ClaimIf(own > 0, n)
			case i == 0 && t[0] != '{' && t[0] != '"' && t[0] != '\'', !mongoLine.MatchString(t):
				return attach.ClaimIf(own > 0, n)
			}
			if slices.ContainsFunc(mongoWords, func(w string) bool { return strings.Contains(t, w) }) {
				own += len(mongoOwn.FindAllString(t, 4))
			}
			depth += attach.Nesting(t)
			n = i + 1
			if depth <= 0 && strings.HasPrefix(strings.TrimSpace(lines[0].Text), "{") {
				return attach.ClaimIf(own > 0, n)
			}
		}
		return attach.ClaimIf(own > 0, n)
	},
	Read: readMongoState,
}

// mongoWords are what mongoOwn looks for. A line without any of them is spared the slower search.
var mongoWords = []string{"inprog", "globalLock", "concurrentTransactions", "secs_running",
	"waitingForLock", "opcounters", "currentQueue"}

var (
	mongoOwn     = pattern.New(`"?\b(inprog|globalLock|concurrentTransactions|secs_running|microsecs_running|waitingForLock|opcounters|currentQueue)"? ?: ?`)
	mongoLine    = pattern.New(`^["'{}\[\]\w$-]`)
	mongoQueue   = pattern.New(`"?currentQueue"? ?: ?\{ ?"?total"? ?: ?(?:NumberLong\(|Long\(|NumberInt\()?"?(\d+)`)
	mongoTicks   = pattern.New(`"?(read|write)"? ?: ?\{ ?"?out"? ?: ?(\d+), ?"?available"? ?: ?(\d+)`)
	mongoRuns    = pattern.New(`\bsecs_running"? ?: ?(?:NumberLong\(|Long\(|NumberInt\()?"?(\d+)`)
	mongoWaiting = pattern.New(`"?waitingForLock"? ?: ?(?:true|false)`)
	mongoWaits   = pattern.New(`"?waitingForLock"? ?: ?true`)
)

var (
	mongoName = pattern.New(`"?\bns"? ?: ?"([\w.$-]{1,120})"`)
	mongoOp   = pattern.New(`"?\bop"? ?: ?"(\w{1,20})"`)
	mongoScan = pattern.New(`"?\bplanSummary"? ?: ?"(\w{1,20})`)
	mongoCode = pattern.New(`"?\$where"? ?:`)
)

// mongoSlowest says what the operation that runs longest does, as far as its own fields say it.
func mongoSlowest(r *result, text string, longest float64) {
	at := mongoRuns.FindAllStringIndex(text, 1<<12)
	for i, m := range mongoRuns.FindAllStringSubmatch(text, 1<<12) {
		if v, _ := number(m[1]); v != longest || v <= 0 {
			continue
		}
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		own := text[at[i][0]:end]
		// The fields before secs_running are this operation's, if no other stands before it.
		if i == 0 && len(at) == 1 {
			own = text
		}
		var says []string
		if m := mongoOp.FindStringSubmatch(own); m != nil {
			says = append(says, m[1])
		}
		if m := mongoName.FindStringSubmatch(own); m != nil {
			says = append(says, "on "+m[1])
		}
		if m := mongoScan.FindStringSubmatch(own); m != nil {
			says = append(says, "with the plan "+m[1])
			if m[1] == "COLLSCAN" {
				r.outside("a scan of a whole collection, without an index", "COLLSCAN, "+dur(longest), 0)
			}
		}
		if mongoCode.MatchString(own) {
			says = append(says, "with $where, which runs code for each document")
			r.outside("code of the query itself ($where), run for each document", "$where, "+dur(longest), 0)
		}
		if len(says) > 0 {
			r.figure("that one: " + strings.Join(says, " "))
		}
		return
	}
}

func readMongoState(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	var b strings.Builder
	for _, l := range p.Lines {
		b.WriteString(unPython(strings.TrimSpace(l.Text)) + " ")
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	longest, ops := 0.0, 0
	for _, m := range mongoRuns.FindAllStringSubmatch(text, 1<<12) {
		v, _ := number(m[1])
		longest = max(longest, v)
		ops++
	}
	waits := len(mongoWaits.FindAllString(text, 1<<12))
	r.Title = "MongoDB serverStatus"
	if ops > 0 || strings.Contains(text, "inprog") {
		r.Title = fmt.Sprintf("MongoDB currentOp, %s", attach.Plural(ops, "running operation"))
		r.figure(fmt.Sprintf("the longest runs for %s; %d wait for a lock", dur(longest), waits))
		mongoSlowest(r, text, longest)
		r.Means = "It lists what runs at one instant; one that runs long may be a background task."
	}
	if ops == 0 && strings.Contains(text, "waitingForLock") {
		r.Title = "MongoDB currentOp, a part of it"
		r.figure(fmt.Sprintf("%d of %d operations wait for a lock at this instant", waits,
			len(mongoWaiting.FindAllString(text, 1<<12))))
		r.Not = "That locks were waited for: acquireCount counts locks that were taken, and yields take them again."
	}
	mongoLocked(r, text)
	if m := mongoQueue.FindStringSubmatch(text); m != nil {
		r.figure(m[1] + " operations wait for a lock or a ticket now (currentQueue)")
	}
	for _, m := range mongoTicks.FindAllStringSubmatch(text, 4) {
		r.figure(fmt.Sprintf("%s tickets: %s in use, %s free", m[1], m[2], m[3]))
		if m[3] == "0" {
			r.candidate("pool-exhaustion", fmt.Sprintf("all %s tickets of WiredTiger are in use: %s", m[1], m[2]))
			r.candidate("disk-wait", "the operations that have the tickets may wait for the disk")
			r.Means = "All tickets are in use at this instant: operations wait to be let in, and why those inside take long is not in it."
		}
	}
	if waits > 0 {
		r.outside("a lock in the database's own collections", attach.Plural(waits, "operation")+
			" waiting for a lock", 0)
	}
	if r.Means == "" {
		r.Means = "Counters since the start and a state at one instant: why an operation is slow is not in it."
	}
	r.next("db.currentOp({secs_running: {$gte: 1}}) twice, some seconds apart",
		"whether the same operations run on, and their plan")
	return r.done(attach.CannotTell)
}
