package database

import (
	"cmp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mongoExplain reads what explain() of MongoDB returns, as the shells print it and as JSON: with
// executionStats, without, and as it was before 3.0.
var mongoExplain = &attach.Kind{
	Name: "MongoDB explain",
	Hints: []string{"{", "executionStats", "winningPlan", "queryPlanner", "executionTimeMillis",
		"totalDocsExamined"},
	Yields:  []string{"MongoDB slow log", "MongoDB slow operation", "MongoDB late serverStatus"},
	Reports: true, // each is of one statement
	Claim: func(lines []paste.Line) int {
		first := strings.TrimSpace(lines[0].Text)
		if !strings.HasPrefix(first, "{") && !explainFirst.MatchString(first) {
			return 0
		}
		n, depth, own := 0, 0, 0
		for i, l := range lines {
			t := strings.TrimSpace(l.Text)
			if i > 0 && l.Command != "" || t == "" || !mongoLine.MatchString(t) || i > 60 && own == 0 {
				break
			}
			if strings.ContainsAny(t, "PE") || strings.Contains(t, "nscanned") || strings.Contains(t, "Cursor") {
				own += len(explainWord.FindAllString(t, 4))
			}
			n = i + 1
			if depth += attach.Nesting(t); depth <= 0 && first[0] == '{' {
				break
			}
		}
		return attach.ClaimIf(own > 1, n)
	},
	Read: readMongoExplain,
}

var (
	explainWord  = pattern.New(`"?\b(?:executionStats|executionTimeMillis|totalDocsExamined|totalKeysExamined|winningPlan|rejectedPlans|queryPlanner|nscannedObjects|nscanned)\b"? ?: ?|"cursor" : "(?:Basic|Btree)Cursor`)
	explainFirst = pattern.New(`^"?(?:executionStats|winningPlan|queryPlanner|executionTimeMillis|totalDocsExamined|nReturned|cursor)"? ?: ?`)
	explainMS    = pattern.New(`"?\b(?:executionTimeMillis|millis)"? ?: ?(?:NumberInt\()?(\d+)`)
	explainDocs  = pattern.New(`"?\b(?:totalDocsExamined|nscannedObjects)"? ?: ?(?:NumberInt\()?(\d+)`)
	explainKeys  = pattern.New(`"?\b(?:totalKeysExamined|nscanned)"? ?: ?(?:NumberInt\()?(\d+)`)
	explainSent  = pattern.New(`"?\b(?:nReturned|n)"? ?: ?(?:NumberInt\()?(\d+)`)
	explainStage = pattern.New(`"?\bstage"? ?: ?["'](\w{1,40})["']`)
	explainOld   = pattern.New(`"cursor" : "((?:Basic|Btree)Cursor[^"]{0,80})"`)
)

func readMongoExplain(p *attach.Part) attach.Reading {
	r := &result{}
	var b strings.Builder
	for _, l := range p.Lines {
		b.WriteString(strings.TrimSpace(l.Text) + " ")
	}
	text := b.String()
	stats := text
	if i := strings.Index(text, "executionStats"); i >= 0 {
		stats = text[i:]
	}
	plan, _, _ := strings.Cut(text[max(0, strings.Index(text, "winningPlan")):], "rejectedPlans")
	var stages []string
	for _, m := range explainStage.FindAllStringSubmatch(plan, 50) {
		if !slices.Contains(stages, m[1]) {
			stages = append(stages, m[1])
		}
	}
	r.Title = "MongoDB's explain, of one statement"
	took := counted(nil, explainMS, stats)
	docs, keys := counted(nil, explainDocs, stats), counted(nil, explainKeys, stats)
	sent := counted(nil, explainSent, stats)
	if len(docs) > 0 && len(sent) > 0 {
		use := mongoUse{docs[0], attach.Sum(keys), sent[0]}
		line := use.String()
		if len(took) > 0 {
			line = dur(took[0]/1e3) + ": " + line
		}
		r.figure(line)
		r.whichPlan(stages, explainOld.FindStringSubmatch(text), use, line)
	} else if len(took) > 0 {
		r.figure("it took " + dur(took[0]/1e3))
	}
	if len(stages) > 0 {
		r.figure("its plan, from the result down: " + strings.Join(stages[:min(6, len(stages))], ", "))
	}
	switch {
	case len(took) == 0:
		r.Title += ", without times"
		r.Means = cmp.Or(r.Means, "It has the plan and no time: whether the statement is slow it does not say.")
		r.Not = "That a plan which scans a collection is slow: a small one is read at once."
		r.next("the same with explain('executionStats')", "runs it: how long, and how much it reads")
	case took[0] < quick*1e3:
		r.Signs = nil
		r.Means = "The statement was fast when it was explained."
		r.Not = "A run that was fast says nothing of others that may be slow."
		return r.done(attach.Healthy)
	default:
		r.Means = cmp.Or(r.Means, "It says what the statement read and how long it took, and not what it waited for.")
		r.Not = "The times of one run: it may have found in the cache what others read from the disk."
	}
	return r.done(attach.CannotTell)
}

// whichPlan says what it means that a plan reads much. old is the cursor that versions before 3.0
// name.
func (r *result) whichPlan(stages, old []string, use mongoUse, line string) {
	scan := slices.Contains(stages, "COLLSCAN") || len(stages) == 0 && old != nil && strings.HasPrefix(old[1], "BasicCursor")
	if old != nil {
		r.figure("its cursor: " + old[1])
	}
	switch {
	case scan && use.docs >= manyRows:
		r.outside("the plan: it reads the whole collection", line, 0)
		r.next("an index on the fields of the query, then explain again", "whether it reads fewer documents")
	case use.inVain():
		r.outside("the plan: it reads far more by its index than it returns", line, 0)
		r.next("an index on more fields of the query, then explain again", "whether it reads fewer documents")
	}
	if slices.Contains(stages, "SORT") {
		r.figure("it sorts in memory: no index gives the order")
	}
}

// mongoPrinted is a slow operation that a tool printed with a line for each value.
var mongoPrinted = &attach.Kind{
	Name:    "MongoDB slow operation",
	Hints:   []string{"{"},
	Reports: true,
	Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && (n == 0 || lines[n].Command == "") {
			if strings.TrimSpace(lines[n].Text) == "" && n > 0 && n+1 < len(lines) {
				if _, k := mongoPretty(lines[n+1:]); k > 0 {
					n += 1 + k
					continue
				}
			}
			_, k := mongoPretty(lines[n:])
			if k == 0 {
				break
			}
			n += k
		}
		return n
	},
	Read: readMongo,
}

// mostPretty is how many lines such a record has at most.
const mostPretty = 600

// mongoPretty is such a record in one line, as MongoDB wrote it, and how many lines it has.
func mongoPretty(lines []paste.Line) (string, int) {
	if strings.TrimSpace(lines[0].Text) != "{" {
		return "", 0
	}
	var b strings.Builder
	depth, slow := 0, false
	for i, l := range lines[:min(len(lines), mostPretty)] {
		t := strings.TrimSpace(l.Text)
		if i > 0 && l.Command != "" || b.Len() > 1<<18 || i > 40 && !slow {
			return "", 0
		}
		slow = slow || strings.Contains(t, `"Slow query"`)
		b.WriteString(t + " ")
		if depth += attach.Nesting(t); depth <= 0 {
			if text := withoutBlanks(strings.TrimSpace(b.String())); slow && mongoJSON.MatchString(text) {
				return text, i + 1
			}
			return "", 0
		}
	}
	return "", 0
}
