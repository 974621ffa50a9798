package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mongoSlow reads MongoDB's slow operations: JSON since 4.4, text before.
var mongoSlow = &attach.Kind{
	Name: "MongoDB slow log",
	Hints: []string{"Slow query", "\"millis\"", "planSummary:", "\"durationMillis\"",
		" protocol:op_", " keyUpdates:", " reslen:", "COMMAND ", "command ", "aggregate ", "QUERY ", "WRITE "},
	Single:    true,
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && (n == 0 || lines[n].Command == "") {
			_, k := mongoRecord(lines[n:])
			if k == 0 {
				break
			}
			n += k
		}
		return n
	},
	Read: readMongo,
}

var (
	mongoJSON  = pattern.New(`"msg": ?"Slow query".*"durationMillis": ?(\d+)`)
	mongoCut   = pattern.New(`^\{"t":\{"\$date":.*"msg":"Slow query",.*"ns":"[^"]+"`) // its end, with the duration, is missing
	mongoHead  = pattern.New(`\{"t": ?\{"\$date":.*"msg": ?"Slow query"`)
	mongoProf  = pattern.New(`^\{ ?"op" ?: ?"\w+", ?"ns" ?: ?"[^"]+".*"millis" ?: ?(\d+)`) // a document of system.profile
	mongoText  = pattern.New(`\b(?:COMMAND|WRITE|QUERY)\s+\[\S+\] .* (\d+)ms$`)
	mongoOld   = pattern.New(`\[[\w-]+\] (?:command|query|insert|update|remove|getmore) \S+ .*\b(?:keyUpdates|reslen|numYields|nscanned):.* (\d+)ms$`) // before 3.2
	mongoBare  = pattern.New(`^(?:command|query|find|update|remove|getmore|aggregate) [\w$-]+\.\S+ .*planSummary: .* (\d+)ms$`)
	mongoEnd   = pattern.New(`(?:^| )(\d+)ms$`)
	mongoPlan  = pattern.New(`planSummary"?: ?"?(COLLSCAN|IXSCAN|IDHACK|COUNT\w*|EOF|[A-Z_]+)`)
	mongoDocs  = pattern.New(`(?:docsExamined|nscannedObjects)"? ?: ?(\d+)`)
	mongoKeys  = pattern.New(`(?:keysExamined"?|nscanned) ?: ?(\d+)`)
	mongoSent  = pattern.New(`\bnreturned"?: ?(\d+)`)
	mongoNS    = pattern.New(`"ns"? ?: ?"([^"]{1,120})"|(?:^|[\]\s])(?:command|query|find|insert|update|remove|getmore|aggregate) ([\w$-]+\.[^\s:]{1,120}) `)
	mongoSort  = pattern.New(`\b(?:hasSortStage|scanAndOrder)"?: ?(?:1|true)\b`) // no index has the order
	mongoSkip  = pattern.New(`"skip":(\d+),`)
	mongoRead  = pattern.New(`timeReadingMicros"?: ?(\d+)`)
	mongoBytes = pattern.New(`"bytesRead":(\d+)`)
	mongoLock  = pattern.New(`timeAcquiringMicros"?: ?\{([^}]*)\}`)
	mongoFlow  = pattern.New(`flowControl"?: ?\{[^}]*timeAcquiringMicros"?: ?(\d+)`)
	mongoWC    = pattern.New(`waitForWriteConcernDurationMillis"?: ?(\d+)`)
	mongoHeld  = pattern.New(`\blocks\(micros\)((?: [rRwW]:\d+)+)`)                                                   // before 3.0
	mongoGroup = pattern.New(`\$(?:group|count|bucket|sortByCount|facet)\b|"?\b(?:count|distinct|mapReduce)"? ?: ?"`) // few rows are wanted of many
	mongoAll   = pattern.New(`(?:\$match|filter|query|\bq)"?: ?\{ ?\}`)                                               // it asks for all documents
	mongoMicro = pattern.New(`"?[rwRW]"?: ?(\d+)`)
)

// manySkipped is from how many on it is told that a cursor skips documents.
const manySkipped = 1e4

// quick is what nobody calls slow of one statement, in seconds. Logs hold such statements where
// their threshold is low, or logs all that use no index.
const quick = 0.05

func isMongo(text string) bool {
	return mongoJSON.MatchString(text) || mongoProf.MatchString(text) ||
		mongoCut.MatchString(text) || mongoText.MatchString(text) && mongoPlan.MatchString(text) ||
		mongoOld.MatchString(text)
}

// mongoStart is a record's start where a page's width or a person broke it into lines.
var mongoStart = pattern.New(`\b(?:COMMAND|WRITE|QUERY)\s+\[\S+\] |^(?:command|query|find|update|remove|getmore|aggregate) [\w$-]+\.\S+ `)

// mostBroken is how many lines a broken record has at most.
const mostBroken = 25

// mongoRecord is the text of the record that starts here and how many lines it has; 0: none does.
func mongoRecord(lines []paste.Line) (string, int) {
	if mongoHead.MatchString(lines[0].Text) && !mongoJSON.MatchString(lines[0].Text) {
		if text, n := mongoWrapped(lines); n > 0 {
			return text, n
		}
	}
	if isMongo(lines[0].Text) {
		return lines[0].Text, 1
	}
	if text, n := mongoPretty(lines); n > 0 {
		return text, n
	}
	if !mongoStart.MatchString(lines[0].Text) {
		return "", 0
	}
	var b strings.Builder
	for i, l := range lines[:min(len(lines), mostBroken)] {
		t := strings.TrimSpace(l.Text)
		if i > 0 && (l.Command != "" || t == "" || mongoStart.MatchString(t) || b.Len() > 1<<16) {
			break
		}
		b.WriteString(t + " ")
		if mongoEnd.MatchString(t) {
			if text := strings.TrimSpace(b.String()); i > 0 && mongoPlan.MatchString(text) ||
				mongoBare.MatchString(text) {
				return text, i + 1
			}
			break
		}
	}
	return "", 0
}

// mongoWrapped is a record of JSON that a page's width broke into lines, and how many they are.
func mongoWrapped(lines []paste.Line) (string, int) {
	var b strings.Builder
	for i, l := range lines[:min(len(lines), mostBroken)] {
		if i > 0 && (l.Command != "" || strings.Contains(l.Text, `{"t":`) || b.Len() > 1<<16) {
			break
		}
		b.WriteString(l.Text)
		if text := b.String(); i > 0 && mongoJSON.MatchString(text) {
			return text, i + 1
		}
	}
	return "", 0
}

// microTimes are the times of each mode of a lock, in s.
func microTimes(re *pattern.Regexp, text string) (s []float64) {
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		for _, v := range mongoMicro.FindAllStringSubmatch(m[1], -1) {
			us, _ := number(v[1])
			s = append(s, us/1e6)
		}
	}
	return s
}

// mongoSums is what the operations of a log took and waited for, added up in seconds.
type mongoSums struct {
	took                          []float64
	reading, read, locks, flow    float64
	concern, total, docs, scanned float64
	clashes, clashed, held        float64
	scans, every, cut             int
	on                            string // the collection of the longest one
	mostMS                        float64
	sent                          []float64 // what the largest scan returned; none: not said
	sorts                         bool      // and whether it sorted that itself
	wide                          mongoUse  // of operations with an index, the one that read most
	vain                          float64   // the time of all that read much for nothing, s
}

// mongoUse is what an operation read, and what it returned.
type mongoUse struct{ docs, keys, sent float64 }

// inVain reports whether an operation read far more than it returned.
func (u mongoUse) inVain() bool {
	read := max(u.docs, u.keys)
	return read >= manyRows && read >= 10*max(1, u.sent)
}

func (u mongoUse) String() string {
	line := fmt.Sprintf("%s documents examined, %s returned", count(u.docs), count(u.sent))
	if u.keys > 0 {
		line += fmt.Sprintf("; %s keys of an index", count(u.keys))
	}
	return line
}

// examined is how many documents an operation read. Before 2.6 one figure stood for keys and
// documents, where they were the same.
func examined(text string) float64 {
	if v := counted(nil, mongoDocs, text); len(v) > 0 {
		return v[0]
	}
	return attach.Sum(counted(nil, mongoKeys, text))
}

func sumMongo(p *attach.Part) (s mongoSums) {
	num := func(re *pattern.Regexp, text string) float64 { return attach.Sum(counted(nil, re, text)) }
	for at := 0; at < len(p.Lines); {
		l := p.Lines[at]
		text, lines := mongoRecord(p.Lines[at:])
		if at += max(lines, 1); lines > 1 || mongoBare.MatchString(text) {
			l.Text = text
		}
		l.Text = withoutBlanks(l.Text)
		ms := 0.0
		for _, re := range []*pattern.Regexp{mongoJSON, mongoText, mongoOld, mongoProf} {
			if ms == 0 {
				ms = num(re, l.Text)
			}
		}
		if ms == 0 && (lines > 1 || mongoBare.MatchString(l.Text)) {
			ms = num(mongoEnd, l.Text)
		}
		if ms == 0 && mongoCut.MatchString(l.Text) && !strings.Contains(l.Text, `"durationMillis":`) {
			s.cut++
		} else {
			if ms > s.mostMS {
				if s.mostMS, s.on = ms, ""; mongoNS.MatchString(l.Text) {
					m := mongoNS.FindStringSubmatch(l.Text)
					s.on = m[1] + m[2]
				}
			}
			s.took = append(s.took, ms/1e3)
		}
		s.total += ms / 1e3
		s.reading += num(mongoRead, l.Text) / 1e6
		s.read += num(mongoBytes, l.Text)
		s.flow += num(mongoFlow, l.Text) / 1e6
		s.concern += num(mongoWC, l.Text) / 1e3
		if v := num(mongoClash, l.Text); v >= manyClashes {
			s.clashes, s.clashed = s.clashes+v, s.clashed+ms/1e3
		}
		if m := mongoPlan.FindStringSubmatch(l.Text); m != nil && m[1] == "COLLSCAN" {
			s.scans++
			s.scanned += ms / 1e3
			if docs := examined(l.Text); docs >= s.docs { // what others examined is no scan's
				s.docs, s.sent, s.sorts = docs, counted(nil, mongoSent, l.Text), mongoSort.MatchString(l.Text)
			}
			s.every += len(mongoAll.FindAllString(l.Text, 1))
		} else if sent := counted(nil, mongoSent, l.Text); len(sent) > 0 {
			u := mongoUse{examined(l.Text), attach.Sum(counted(nil, mongoKeys, l.Text)), sent[0]}
			if max(u.docs, u.keys) > max(s.wide.docs, s.wide.keys) {
				s.wide = u
			}
			if u.inVain() && !mongoGroup.MatchString(l.Text) {
				s.vain += ms / 1e3
			}
		}
		s.held = max(s.held, slices.Max(append(microTimes(mongoHeld, l.Text), 0)))
		s.locks += attach.Sum(microTimes(mongoLock, l.Text))
	}
	return s
}

func readMongo(p *attach.Part) attach.Reading {
	r, s := &result{}, sumMongo(p)
	r.Title = "MongoDB slow log, " + attach.Plural(len(s.took)+s.cut, "operation")
	if len(s.took) == 0 {
		return mongoBroken(r, p, s.scans, s.cut, s.docs)
	}
	took := "duration: " + spread(s.took)
	if s.on != "" {
		took += "; the longest on " + short(s.on)
	}
	r.figure(took)
	r.fact(FactStatement, attach.Median(s.took)*1e3, "")
	r.Not = "Only operations above slowms are in it."
	if mongoProf.MatchString(p.Lines[0].Text) {
		r.Not = "What the profiler keeps depends on its level: at level 2 all operations are in it."
	}
	if s.cut > 0 {
		r.Flaws = append(r.Flaws, attach.Plural(s.cut, "operation")+" cut off before its duration")
	}
	if s.held > 0 {
		r.figure(fmt.Sprintf("one held its database's lock for %s", dur(s.held)))
		r.Not += " locks(micros) is how long a lock was held, and not how long it was waited for."
	}
	switch {
	case slices.Max(s.took) < quick:
		r.Means = fmt.Sprintf("Each of these operations took less than %s: they are in the log, and not slow.", dur(quick))
		return r.done(attach.Healthy)
	case s.locks >= 0.5*s.total:
		line := fmt.Sprintf("waiting for locks %s of %s", dur(s.locks), dur(s.total))
		r.figure(line)
		r.outside("locks of the database's own collections", line, ratio(s.locks, s.total))
	case s.concern >= 0.5*s.total:
		line := fmt.Sprintf("waiting for the write concern %s of %s", dur(s.concern), dur(s.total))
		r.figure(line)
		r.outside("replication: the other members acknowledge late", line, ratio(s.concern, s.total))
	case s.flow >= 0.5*s.total:
		line := fmt.Sprintf("flow control %s of %s", dur(s.flow), dur(s.total))
		r.figure(line)
		r.outside("flow control: a member lags behind", line, ratio(s.flow, s.total))
	case s.docs >= 1e4 && s.scanned >= 0.3*s.total:
		line := fmt.Sprintf("%d of %d scan the whole collection (COLLSCAN), up to %s documents",
			s.scans, len(s.took), count(s.docs))
		if len(s.sent) > 0 {
			line += fmt.Sprintf(", of which %s were returned", count(s.sent[0]))
		}
		if s.sorts {
			line += "; it sorted them itself: no index gave the order"
		}
		r.figure(line)
		if s.reading >= 0.1*s.total {
			r.figure(fmt.Sprintf("of it reading into its cache: %s of %s", dur(s.reading),
				dur(s.total)) + readRate(s.read, s.reading))
		}
		r.outside("the plan: it reads the whole collection", line, ratio(s.scanned, s.total))
		if s.every == s.scans {
			r.next("estimatedDocumentCount, or a narrower question", "it asks for all documents: no index helps")
		} else {
			r.next("db.COLLECTION.explain('executionStats')", "shows whether an index is missing")
		}
	case s.vain >= 0.5*s.total:
		line := "the one that read most: " + s.wide.String()
		r.figure(line)
		r.outside("the plan: it reads far more by its index than it returns", line, ratio(s.vain, s.total))
		r.next("db.COLLECTION.explain('executionStats')", "shows which index would find fewer")
	case s.reading >= 0.5*s.total:
		line := fmt.Sprintf("reading into its cache %s of %s", dur(s.reading), dur(s.total)) + readRate(s.read, s.reading)
		r.figure(line)
		r.candidate("disk-wait", line)
		r.next("iostat -x 1 10", "says whether the disk is slow, or the plan reads too much")
	case s.clashed >= 0.5*s.total:
		line := fmt.Sprintf("%s write conflicts: an operation that meets another's write is done again", count(s.clashes))
		r.figure(line)
		r.outside("conflicts with other writes of the same documents", line, ratio(s.clashed, s.total))
		r.next("db.currentOp({'secs_running': {$gte: 1}})", "while it happens: what else writes these documents")
	default:
		for _, part := range []struct {
			what string
			took float64
		}{{"waiting for locks", s.locks}, {"waiting for the write concern", s.concern}, {"flow control", s.flow}, {"reading into its cache", s.reading}} {
			if part.took >= 0.1*s.total {
				r.figure(fmt.Sprintf("%s %s of %s", part.what, dur(part.took), dur(s.total)))
			}
		}
		if max(s.wide.docs, s.wide.keys) >= fewestRead {
			r.figure("the one that read most: " + s.wide.String())
		}
		r.Means = "What most of their time was spent with is not in the lines."
		if s.scans > 0 {
			r.figure(fmt.Sprintf("%d of %d scan the whole collection (COLLSCAN)", s.scans, len(s.took)))
			if s.docs == 0 {
				r.Means = "They read whole collections; how many documents that were is not in the lines."
			}
		}
		r.next("whystall record --pid $(pidof mongod)", "shows what its threads wait for")
	}
	return r.done(attach.CannotTell)
}

// readRate is how much was read, and how fast; "": it is not said.
func readRate(bytes, s float64) string {
	if bytes <= 0 || s <= 0 {
		return ""
	}
	return fmt.Sprintf(", %s at %s/s", bytesText(bytes), bytesText(bytes/s))
}

// manyClashes is from how many conflicts on an operation's time is theirs.
const manyClashes = 100

var mongoClash = pattern.New(`\b"?writeConflicts"?: ?(\d+)`)

// mongoBroken says what lines say of which all were cut off before their durations.
func mongoBroken(r *result, p *attach.Part, scans, cut int, docs float64) attach.Reading {
	r.Means = "MongoDB calls it slow; the line was cut off before its duration."
	r.Not = "How long it took stands at the end of the line."
	if scans > 0 {
		r.figure(fmt.Sprintf("%d of %d scan the whole collection (COLLSCAN), up to %s documents",
			scans, cut, count(docs)))
		r.next("db.COLLECTION.explain('executionStats')", "shows whether an index is missing")
		return r.done(attach.CannotTell)
	}
	var most, returned, skipped, keys float64
	for _, l := range p.Lines {
		text := withoutBlanks(l.Text)
		v, n := []float64{examined(text)}, counted(nil, mongoSent, text)
		if len(n) == 0 || v[0] < most {
			continue
		}
		most, returned, skipped = v[0], n[0], attach.Sum(counted(nil, mongoSkip, text))
		keys = attach.Sum(counted(nil, mongoKeys, text))
		if plan := mongoPlan.FindStringSubmatch(text); len(r.Figures) == 0 && plan != nil && cut == 1 {
			r.figure("its plan: " + plan[1])
		}
	}
	if most > 0 {
		r.figure("the one that read most: " + mongoUse{most, keys, returned}.String())
	}
	if skipped >= manySkipped {
		r.figure(fmt.Sprintf("it asks to skip %s: each of these is walked over", count(skipped)))
		r.next("the next page from the last key that was seen, and not by skip",
			"an index finds a key at once, and cannot jump over a number of them")
		return r.done(attach.CannotTell)
	}
	r.next("db.COLLECTION.explain('executionStats')", "shows what the plan reads, and for how long")
	return r.done(attach.CannotTell)
}
