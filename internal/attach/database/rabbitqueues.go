package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// rabbitQueues reads rabbitmqctl list_queues: how much lies in each queue at this moment. Rows
// without a heading are known by names that only a broker's queues have.
var rabbitQueues = &attach.Kind{
	Name:     "RabbitMQ queues",
	Hints:    []string{"Listing queues", "name\tmessages", "list_queues", "celeryev.", ".pidbox", "amq.gen-"},
	Prompted: true,
	Claim:    claimQueues,
	Read:     readQueues,
}

var (
	queueList = pattern.New(`^Listing queues(?: for vhost .*)?(?: \.\.\.)?$`)
	queueHead = pattern.New(`^name(?:[\t ]+[a-z_.]+)*[\t ]+(?:messages|consumers)\w*(?:[\t ]+[a-z_.]+)*$`)
	queueRow  = pattern.New(`^(\S{1,255})((?:[\t ]+(?:\d+(?:\.\d+)?|running|idle|down|flow|true|false|classic|quorum|\[\]))+)$`)
	queueTime = pattern.New(`^Timeout: [\d.]+ seconds \.\.\.$`)
	queueDone = pattern.New(`^\.\.\.done\.$`)
	// queueOwn are names that brokers and clients make: of nothing else are there lists of them.
	queueOwn  = pattern.New(`^(?:celeryev\.[0-9a-f]{8}-[0-9a-f-]{27}|\S+\.(?:celery\.)?pidbox|amq\.gen-[\w-]{22})[\t ]+\d`)
	queueAsks = pattern.New(`\brabbitmqctl\b.*\blist_queues\b((?: +[a-z_]+)*)`)
)

func claimQueues(lines []paste.Line) int {
	asked := queueAsks.MatchString(lines[0].Command)
	if asked {
		n := claimQueueRows(lines[1:], true)
		return attach.ClaimIf(n > 0, n+1)
	}
	return attach.ClaimIf(lines[0].Command == "", claimQueueRows(lines, false))
}

// claimQueueRows takes rows from the first line on, which makes sure that they are of queues.
func claimQueueRows(lines []paste.Line, sure bool) int {
	rows := 0
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		t := strings.TrimSpace(text)
		switch {
		case queueTime.MatchString(t):
			return true
		case queueList.MatchString(t), queueHead.MatchString(t):
			sure = true
			return true
		case queueDone.MatchString(t):
			return rows > 0
		case queueRow.MatchString(t) && (sure || queueOwn.MatchString(t)):
			sure, rows = true, rows+1
			return true
		}
		return false
	})
	return attach.ClaimIf(rows > 0, n)
}

// queueColumns are the columns behind the name: of the heading, of the command, or the tool's own.
func queueColumns(p *attach.Part) []string {
	for _, l := range p.Lines[:min(4, len(p.Lines))] {
		if t := strings.TrimSpace(l.Text); queueHead.MatchString(t) {
			return strings.Fields(t)[1:]
		}
	}
	if m := queueAsks.FindStringSubmatch(p.Command); m != nil {
		if f := strings.Fields(m[1]); len(f) > 1 && f[0] == "name" {
			return f[1:]
		}
	}
	return []string{"messages"}
}

// queueSort is what a queue is for, as far as its name says.
func queueSort(name string) string {
	switch {
	case strings.HasPrefix(name, "celeryev."):
		return "events for a monitor of Celery, and no tasks"
	case strings.HasSuffix(name, ".pidbox"):
		return "commands to a worker of Celery, and no tasks"
	}
	return ""
}

// queue is a row.
type queue struct {
	name                string
	messages, consumers float64
}

// queueState is what the rows say.
type queueState struct {
	n, empty int
	work     queue // the fullest of those that may hold work
	other    queue // and of those that hold none
	unread   int   // with messages and without a consumer
	unserved queue // the fullest of them
	blind    bool  // no column has the messages
}

func (s *queueState) row(name string, cells, columns []string) {
	q, counted, whole, served := queue{name: name}, false, false, false
	for i, cell := range cells[:min(len(cells), len(columns))] {
		switch v, ok := number(cell); {
		case !ok:
		case columns[i] == "messages":
			q.messages, counted, whole = v, true, true
		case columns[i] == "messages_ready" || columns[i] == "messages_unacknowledged":
			if !whole { // the two of them are all
				q.messages, counted = q.messages+v, true
			}
		case columns[i] == "consumers":
			q.consumers, served = v, true
		}
	}
	s.n++
	if !counted {
		s.blind = true
		return
	}
	if q.messages == 0 {
		s.empty++
		return
	}
	if served && q.consumers == 0 {
		if s.unread++; q.messages > s.unserved.messages {
			s.unserved = q
		}
	}
	into := &s.work
	if queueSort(q.name) != "" {
		into = &s.other
	}
	if q.messages > into.messages {
		*into = q
	}
}

func readQueues(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	columns := queueColumns(p)
	s := queueState{}
	for _, l := range p.Lines {
		if m := queueRow.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
			s.row(m[1], strings.Fields(m[2]), columns)
		}
	}
	r.Title = "RabbitMQ queues, " + attach.Plural(s.n, "queue") + " shown"
	r.Not = "One glance: whether a queue grows, or who reads it how fast, it does not say."
	if s.blind {
		r.Means = "These columns do not say how many messages lie in the queues."
		r.next("rabbitmqctl list_queues name messages consumers", "how much lies in each, and whether anybody reads it")
		return r.done(attach.CannotTell)
	}
	s.tell(r)
	if s.empty == s.n {
		return r.done(attach.Healthy)
	}
	return r.done(attach.CannotTell)
}

// tell says where messages lie. Each of them lies in a queue that a program made for itself, or in
// one of work.
func (s *queueState) tell(r *result) {
	idle := s.other.messages > s.work.messages
	if idle {
		r.figure(fmt.Sprintf("%s messages lie in %s: %s", count(s.other.messages), s.other.name,
			queueSort(s.other.name)))
	}
	if s.work.messages > 0 {
		which := "the fullest queue shown"
		if idle {
			which = "the fullest of the others shown"
		}
		r.figure(fmt.Sprintf("%s has %s messages: %s", which, count(s.work.messages), s.work.name))
	}
	if s.unread > 0 {
		r.figure(fmt.Sprintf("%s with messages and without a consumer, the fullest %s: %s",
			attach.Plural(s.unread, "queue"), s.unserved.name, count(s.unserved.messages)))
	}
	r.figure(fmt.Sprintf("%d of %d are empty", s.empty, s.n))
	switch {
	case s.empty == s.n:
		r.Means = "Nothing lies in these queues at this moment."
		return
	case s.unread > 0 && !idle:
		r.Means = "Messages lie where nobody reads them: they stay until a consumer comes."
	case idle:
		r.Means = "What lies there holds memory of the broker, and delays no task: who asked for it is gone, or does not keep up."
		r.next("rabbitmqctl list_queues name messages consumers", "whether anybody reads that queue")
	default:
		r.Means = "Messages lie in queues at this moment, as in any that is used; whether they wait long it does not say."
		r.next("rabbitmqctl list_queues name messages consumers",
			"twice, a minute apart: whether a queue grows, and whether anybody reads it")
	}
}
