package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	etcdWarned = pattern.New(`\d [WEC] \| |"level": ?"(?:warn|error|dpanic|panic|fatal)"`)
	etcdFailed = pattern.New(`\d [EC] \| |"level": ?"(?:error|dpanic|panic|fatal)"`)
)

// nothingSlow says what lines are that complain of nothing slow: they may be of what failed.
func (c *complaints) nothingSlow(r *result) attach.State {
	of := attach.Plural(c.lines, "line")
	switch {
	case c.overloaded > 0:
		r.Means = "etcd takes itself for overloaded: a slow disk and a lack of CPU look alike to it."
		return attach.CannotTell
	case c.timeouts+c.unsent > 0:
		r.Means = "Something of etcd's did not get through in time; what was slow, these lines do not say."
		return attach.CannotTell
	case c.failed > 0:
		r.figure(fmt.Sprintf("errors, or worse, by their own level: %d of %s", c.failed, of))
		r.Means += " But something failed: its errors say what."
		return attach.CannotTell
	case c.warned > 0:
		r.figure(fmt.Sprintf("warnings: %d of %s", c.warned, of))
	default:
		r.figure("no complaint in " + of)
	}
	return attach.Healthy
}

// stallLeast is in seconds what newer versions of etcd take for late at all.
const stallLeast = 0.1

// brief reports whether all that was late took less than newer versions complain of, which versions
// before 3.2 do from 10 ms on.
func (c *complaints) brief() bool {
	late := slices.Concat(c.apply, c.reads)
	return len(late) > 0 && slices.Max(late) < stallLeast && c.beats+c.index+c.timeouts+c.elections+c.unsent == 0
}

// mildFew is how many complaints of little are mild: more of them are a server that is always late.
const mildFew = 5

// mild reports whether all that was late is a few requests just above what etcd complains from.
func (c *complaints) mild() bool {
	late := slices.Concat(c.apply, c.reads, c.traces, c.served)
	return len(late) > 0 && len(late) <= mildFew && slices.Max(late) < 2*stallLeast &&
		c.beats+c.index+c.timeouts+c.elections+c.unsent == 0
}

// onlyMany reports whether all that was late are reads of many keys: a few of them show no lack.
func (c *complaints) onlyMany() bool {
	return len(c.reads)+len(c.apply) > 0 && c.many == len(c.reads)+len(c.apply) && c.many < 3 &&
		c.beats+c.index+c.timeouts+c.elections == 0
}

// onlyApplies reports whether all that was late are applies of entries. What etcd 3.4 calls an
// apply request may be a read that waited for the leader, and counts among reads.
func (c *complaints) onlyApplies() bool {
	return len(c.apply) > 0 && len(c.reads)+c.beats+c.index+c.timeouts+c.elections+c.unsent == 0
}

// onlyAgreement reports whether all requests that were traced waited for the members' agreement,
// and etcd complains of no heartbeat and no disk.
func (c *complaints) onlyAgreement() bool {
	return len(c.traces) > 0 && c.agreement >= len(c.traces) && c.beats+len(c.fsync) == 0
}

var (
	// etcdOfClient is what only lines about a client's request have.
	etcdOfClient = pattern.New(`took too long|with result "|read-only range|"request": ?"`)
	// etcdAnswer is the error that a client's request ended with.
	etcdAnswer = pattern.New(`with result "error:([^"]+)"|"error": ?"([^"]+)"`)
)

// ofRequest notes a slow request that ended with an error.
func (c *complaints) ofRequest(text string) {
	m := etcdAnswer.FindStringSubmatch(text)
	if m == nil || !strings.Contains(text, "took too long") {
		return
	}
	if c.refused == nil {
		c.refused = map[string]float64{}
	}
	said := short(m[1] + m[2])
	if len(c.refused) >= mostAnswers && c.refused[said] == 0 {
		said = "of other words"
	}
	c.refused[said]++
}

// mostAnswers bounds the errors that are told apart, and mostSaid those that are named.
const (
	mostAnswers = 100
	mostSaid    = 3
)

// tellRefused says how many of the slow requests ended with an error, and with which.
func (c *complaints) tellRefused(r *result) {
	names := attach.Largest(c.refused)
	if len(names) == 0 {
		return
	}
	n, list := 0.0, []string(nil)
	for i, name := range names {
		if n += c.refused[name]; i < mostSaid {
			list = append(list, fmt.Sprintf("%.0f %s", c.refused[name], name))
		}
	}
	if len(names) > mostSaid {
		list = append(list, "others")
	}
	r.figure(fmt.Sprintf("%.0f of the slow requests ended with an error: %s", n, strings.Join(list, ", ")))
}
