package database

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// mongoSlow reads MongoDB's slow operations: JSON since 4.4, text before.
var mongoSlow = &attach.Kind{
	Name:      "MongoDB slow log",
	Hints:     []string{"Slow query", "planSummary:", "\"durationMillis\"", " protocol:op_", " keyUpdates:", " reslen:", "COMMAND ", "command ", "aggregate ", "QUERY ", "WRITE "},
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
	mongoJSON  = regexp.MustCompile(`"msg": ?"Slow query".*"durationMillis": ?(\d+)`)
	mongoCut   = regexp.MustCompile(`^\{"t":\{"\$date":.*"msg":"Slow query".*"planSummary":`) // its end, with the duration, is missing
	mongoText  = regexp.MustCompile(`\b(?:COMMAND|WRITE|QUERY)\s+\[\S+\] .* (\d+)ms$`)
	mongoOld   = regexp.MustCompile(`\[[\w-]+\] (?:command|query|insert|update|remove|getmore) \S+ .*\b(?:keyUpdates|reslen|numYields|nscanned):.* (\d+)ms$`) // before 3.2
	mongoBare  = regexp.MustCompile(`^(?:command|query|find|update|remove|getmore|aggregate) [\w$-]+\.\S+ .*planSummary: .* (\d+)ms$`)
	mongoEnd   = regexp.MustCompile(`(?:^| )(\d+)ms$`)
	mongoPlan  = regexp.MustCompile(`planSummary"?: ?"?(COLLSCAN|IXSCAN|IDHACK|COUNT\w*|EOF|[A-Z_]+)`)
	mongoDocs  = regexp.MustCompile(`(?:docsExamined"?|nscanned): ?(\d+)`)
	mongoRead  = regexp.MustCompile(`timeReadingMicros"?: ?(\d+)`)
	mongoLock  = regexp.MustCompile(`timeAcquiringMicros"?: ?\{([^}]*)\}`)
	mongoFlow  = regexp.MustCompile(`flowControl"?: ?\{[^}]*timeAcquiringMicros"?: ?(\d+)`)
	mongoWC    = regexp.MustCompile(`waitForWriteConcernDurationMillis"?: ?(\d+)`)
	mongoMicro = regexp.MustCompile(`"?[rwRW]"?: ?(\d+)`)
)

// quick is what nobody calls slow of one statement, in seconds. Logs hold such statements where
// their threshold is low, or logs all that use no index.
const quick = 0.05

func isMongo(text string) bool {
	return mongoJSON.MatchString(text) || mongoCut.MatchString(text) || mongoText.MatchString(text) && mongoPlan.MatchString(text) || mongoOld.MatchString(text)
}

// mongoStart is a record's start where a page's width or a person broke it into lines.
var mongoStart = regexp.MustCompile(`\b(?:COMMAND|WRITE|QUERY)\s+\[\S+\] |^(?:command|query|find|update|remove|getmore|aggregate) [\w$-]+\.\S+ `)

// mostBroken is how many lines a broken record has at most.
const mostBroken = 25

// mongoRecord is the text of the record that starts here and how many lines it has; 0: none does.
func mongoRecord(lines []paste.Line) (string, int) {
	if isMongo(lines[0].Text) {
		return lines[0].Text, 1
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
			if text := strings.TrimSpace(b.String()); i > 0 && mongoPlan.MatchString(text) || mongoBare.MatchString(text) {
				return text, i + 1
			}
			break
		}
	}
	return "", 0
}

func readMongo(p *attach.Part) attach.Reading {
	r := &result{}
	var took []float64
	var reading, locks, flow, concern, total, docs float64
	scans, cut := 0, 0
	num := func(re *regexp.Regexp, text string) float64 {
		if m := re.FindStringSubmatch(text); m != nil {
			v, _ := number(m[1])
			return v
		}
		return 0
	}
	for at := 0; at < len(p.Lines); {
		l := p.Lines[at]
		text, lines := mongoRecord(p.Lines[at:])
		if at += max(lines, 1); lines > 1 || mongoBare.MatchString(text) {
			l.Text = text
		}
		l.Text = withoutBlanks(l.Text)
		ms := num(mongoJSON, l.Text)
		if ms == 0 {
			ms = num(mongoText, l.Text)
		}
		if ms == 0 {
			ms = num(mongoOld, l.Text)
		}
		if ms == 0 && (lines > 1 || mongoBare.MatchString(l.Text)) {
			ms = num(mongoEnd, l.Text)
		}
		if ms == 0 && mongoCut.MatchString(l.Text) && !strings.Contains(l.Text, `"durationMillis":`) {
			cut++
		} else {
			took = append(took, ms/1e3)
		}
		total += ms / 1e3
		reading += num(mongoRead, l.Text) / 1e6
		flow += num(mongoFlow, l.Text) / 1e6
		concern += num(mongoWC, l.Text) / 1e3
		docs = max(docs, num(mongoDocs, l.Text))
		if m := mongoPlan.FindStringSubmatch(l.Text); m != nil && m[1] == "COLLSCAN" {
			scans++
		}
		for _, m := range mongoLock.FindAllStringSubmatch(l.Text, -1) {
			for _, v := range mongoMicro.FindAllStringSubmatch(m[1], -1) {
				us, _ := number(v[1])
				locks += us / 1e6
			}
		}
	}
	r.Title = "MongoDB slow log, " + attach.Plural(len(took)+cut, "operation")
	if len(took) == 0 {
		r.figure(fmt.Sprintf("%d of %d scan the whole collection (COLLSCAN), up to %s documents", scans, cut, count(docs)))
		r.Means = "MongoDB calls it slow; the line was cut off before its duration."
		r.Not = "How long it took, and what it waited for, stands at the end of the line."
		r.next("db.COLLECTION.explain('executionStats')", "shows whether an index is missing")
		return r.done(attach.CannotTell)
	}
	r.figure(fmt.Sprintf("duration: median %s, at most %s", dur(attach.Median(took)), dur(slices.Max(took))))
	r.fact(FactStatement, attach.Median(took)*1e3, "")
	r.Not = "Only operations above slowms are in it."
	switch {
	case slices.Max(took) < quick:
		r.Means = fmt.Sprintf("Each of these operations took less than %s: they are in the log, and not slow.", dur(quick))
		return r.done(attach.Healthy)
	case locks >= 0.5*total:
		line := fmt.Sprintf("waiting for locks %s of %s", dur(locks), dur(total))
		r.figure(line)
		r.outside("locks of the database's own collections", line, ratio(locks, total))
	case concern >= 0.5*total:
		line := fmt.Sprintf("waiting for the write concern %s of %s", dur(concern), dur(total))
		r.figure(line)
		r.outside("replication: the other members acknowledge late", line, ratio(concern, total))
	case flow >= 0.5*total:
		line := fmt.Sprintf("flow control %s of %s", dur(flow), dur(total))
		r.figure(line)
		r.outside("flow control: a member lags behind", line, ratio(flow, total))
	case reading >= 0.5*total:
		line := fmt.Sprintf("reading from the disk %s of %s", dur(reading), dur(total))
		r.figure(line)
		r.candidate("disk-wait", line)
		r.next("iostat -x 1 10", "says whether the disk is slow, or the plan reads too much")
	case scans > 0 && docs >= 1e4:
		line := fmt.Sprintf("%d of %d scan the whole collection (COLLSCAN), up to %s documents", scans, len(took), count(docs))
		r.figure(line)
		r.outside("the plan: it reads the whole collection", line, 1)
		r.next("db.COLLECTION.explain('executionStats')", "shows which index is missing")
	default:
		r.Means = "What these operations waited for is not in the lines."
		r.next("whystall record --pid $(pidof mongod)", "shows what its threads wait for")
	}
	return r.done(attach.CannotTell)
}
