package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Facts of databases that rules over several parts ask for.
const (
	FactLost       attach.FactName = "/db/request/lost:ms"     // between client's and server's clock, of one request; Of: the server
	FactClient     attach.FactName = "/db/request/client:ms"   // the same request by the client's clock
	FactServer     attach.FactName = "/db/request/server:ms"   // and by the server's
	FactFsync      attach.FactName = "/db/fsync:ms"            // one fsync or fdatasync, as the database says it; the median of several
	FactPoolWait   attach.FactName = "/db/pool/wait:ms"        // waits for a thread of a pool; Of: the instance
	FactStatement  attach.FactName = "/db/statement:ms"        // how long the statement took
	FactLockWait   attach.FactName = "/db/table-lock/wait:ms"  // a wait for a lock of the database's tables
	FactEngineLock attach.FactName = "/db/engine-lock/wait:ms" // a wait for a lock of the engine; Of: where it is taken
	FactMemory     attach.FactName = "/db/memory/used:bytes"   // by what it keeps for its clients
	FactClients    attach.FactName = "/db/connections:connections"
	FactCommands   attach.FactName = "/db/commands:commands" // since its start
	FactStall      attach.FactName = "/db/stall:ms"          // a time without progress that the server itself measured
)

// result gathers what a kind says, in the order in which it matters.
type result struct {
	attach.Reading
	partial bool   // the client counted more rows than are in the text
	read    string // how much a plan read for what it gives
}

// shown stands behind a sentence about all rows, where some of them are not in the text.
func (r *result) shown() string {
	if r.partial {
		return ", of those that are in the text"
	}
	return ""
}

func (r *result) figure(s string) { r.Figures = append(r.Figures, s) }

// outside says that time is in something which whystall cannot look into.
func (r *result) outside(where, proof string, share float64) {
	r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside, Where: where, Proof: []string{proof}, Share: share})
	if r.Means == "" {
		r.Means = "The time is in " + where + ", outside what whystall can look into."
	}
}

func (r *result) found(cause string, sure finding.Confidence, proof string, share float64) {
	r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Found, Sure: sure,
		Proof: []string{proof}, Share: share})
}

func (r *result) candidate(cause, proof string) {
	r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Proof: []string{proof}})
}

func (r *result) fact(name attach.FactName, value float64, of string) {
	r.Facts = append(r.Facts, attach.Fact{Name: name, Value: value, Of: of})
}

func (r *result) next(command, why string) {
	r.Next = append(r.Next, attach.Next{Command: command, Why: why})
}

// done gives the reading with the state that its signs allow. quiet is the state without any: a
// part of a table shows nothing healthy.
func (r *result) done(quiet attach.State) attach.Reading {
	if r.partial && quiet == attach.Healthy {
		quiet = attach.CannotTell
	}
	r.State = quiet
	for _, s := range r.Signs {
		if s.Grade == attach.Found {
			r.State = attach.Ill
			break
		}
		if s.Grade != attach.Against {
			r.State = attach.CannotTell
		}
	}
	return r.Reading
}

// rowsSaid is how many rows the client says that the result has.
var rowsSaid = pattern.New(`^\(?(\d+) rows?(?:\)| in set)`)

// leftRows says that the client counted more rows than stand in the text.
func (r *result) leftRows(lines []paste.Line, shown int) {
	m := rowsSaid.FindStringSubmatch(strings.TrimSpace(lines[len(lines)-1].Text))
	if m == nil {
		return
	}
	if n, ok := number(m[1]); ok && int(n) > shown {
		r.partial = true
		r.Flaws = append(r.Flaws, fmt.Sprintf("%d of %s rows are in the text", shown, m[1]))
	}
}
