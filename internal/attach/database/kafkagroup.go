package database

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// kafkaGroup reads kafka-consumer-groups --describe: what a group has not read yet, by partition,
// and which member has which partition. One glance.
var kafkaGroup = &attach.Kind{
	Name:  "Kafka consumer group",
	Hints: []string{"LOG-END-OFFSET", "logSize"},
	Claim: func(lines []paste.Line) int {
		if !groupHead.MatchString(lines[0].Text) {
			return 0
		}
		at := groupColumns(lines[0].Text)
		return attach.ClaimWhile(lines, func(i int, text string) bool {
			return i == 0 || groupRow(strings.Fields(text), at)
		})
	},
	Apart: func(l paste.Line) bool { return groupHead.MatchString(l.Text) },
	Read:  readKafkaGroup,
}

var groupHead = pattern.New(`^\s*(?:GROUP\s+)?TOPIC\s+PARTITION\s+CURRENT-OFFSET\s+LOG-END-OFFSET\s+LAG\b|^Group\s+Topic\s+Pid\s+Offset\s+logSize\s+Lag\s+Owner$`)

// groupOld are the names of the same columns in ConsumerOffsetChecker, before Kafka 1.0.
var groupOld = map[string]string{"Topic": "TOPIC", "Pid": "PARTITION", "Offset": "CURRENT-OFFSET",
	"logSize": "LOG-END-OFFSET", "Lag": "LAG", "Owner": "OWNER"}

// groupColumns says where the columns stand that are read.
func groupColumns(head string) map[string]int {
	at := map[string]int{}
	for i, name := range strings.Fields(head) {
		at[cmp.Or(groupOld[name], name)] = i
	}
	return at
}

// groupCell is what a row has in a column; "" where the row was cut off before it.
func groupCell(cells []string, at map[string]int, names ...string) string {
	for _, name := range names {
		if i, known := at[name]; known && i < len(cells) {
			return cells[i]
		}
	}
	return ""
}

func groupRow(cells []string, at map[string]int) bool {
	for _, name := range []string{"PARTITION", "CURRENT-OFFSET"} {
		if c := groupCell(cells, at, name); c != "-" && !allDigits(c) {
			return false
		}
	}
	return true
}

// groupState is what the rows of a group say.
type groupState struct {
	partitions, unread, unowned int // unread: of those with a lag; unowned: nobody reads them
	unknown                     int // nothing was committed: how far the group is, is not known
	lag, most, behind           float64
	where                       string
	with, without               map[string]bool // members with a partition, and without any
	cut                         int
}

func readGroupRows(lines []paste.Line) groupState {
	s := groupState{with: map[string]bool{}, without: map[string]bool{}}
	at := groupColumns(lines[0].Text)
	for _, l := range lines[1:] {
		cells := strings.Fields(l.Text)
		lag, member := groupCell(cells, at, "LAG"), groupCell(cells, at, "CONSUMER-ID", "OWNER")
		if member == "none" {
			member = "-"
		}
		host := groupCell(cells, at, "HOST")
		_, hosts := at["HOST"]
		if lag == "" || member == "" || hosts && host == "" {
			s.cut++
			continue
		}
		if member != "-" && host != "" {
			member += " " + host
		}
		if groupCell(cells, at, "PARTITION") == "-" {
			s.without[member] = true
			continue
		}
		s.partitions++
		if member == "-" {
			s.unowned++
		} else {
			s.with[member] = true
		}
		v, ok := number(lag)
		if !ok {
			s.unknown++
			continue
		}
		if v > 0 {
			s.unread++
			if member == "-" {
				s.behind += v
			}
		}
		s.lag += v
		if v > s.most {
			s.most, s.where = v, groupCell(cells, at, "TOPIC")+" "+groupCell(cells, at, "PARTITION")
		}
	}
	return s
}

func readKafkaGroup(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	s := readGroupRows(p.Lines)
	r.Title = "Kafka consumer group, " + attach.Plural(s.partitions, "partition") + " shown"
	if s.cut > 0 {
		r.Flaws = append(r.Flaws, attach.Plural(s.cut, "row")+" cut off before its member")
	}
	known := s.partitions - s.unknown
	switch {
	case known > 0 && s.lag == 0:
		r.figure(fmt.Sprintf("lag 0 in %s shown: all that was written there is read", ofPartitions(known)))
	case known > 0:
		r.figure(fmt.Sprintf("lag %s in %s shown, most of it in %s: %s", count(s.lag),
			ofPartitions(known), s.where, count(s.most)))
	}
	if s.unknown > 0 {
		r.figure(ofPartitions(s.unknown) + " without a committed offset: how far the group is there is not known")
	}
	if len(s.without) > 0 {
		r.figure(fmt.Sprintf("%d of %d members shown have no partition", len(s.without), len(s.with)+len(s.without)))
	}
	if s.unowned > 0 {
		r.figure(ofPartitions(s.unowned) + " without a member: nobody of the group reads there now")
	}
	r.Not = "One glance: the offsets are those of one moment, and no rate follows. A lag is a number of offsets and no time."
	switch {
	case s.partitions == 0:
		r.Means = "No partition stands in these lines."
		return r.done(attach.CannotTell)
	case s.behind > 0:
		r.Means = "Messages lie in partitions that no member of the group reads: they wait until one takes these partitions."
		r.next("kafka-consumer-groups --describe --group GROUP --state",
			"whether the group rebalances, and how many members it has")
	case s.lag > 0:
		r.Means = "Messages were not read yet at this moment; whether the group falls behind, a second look says."
		r.next("the same twice, a minute apart", "whether LAG grows while CURRENT-OFFSET moves")
	case s.unknown > 0:
		r.Means = "What is known of it lags nowhere."
	default:
		r.Means = "The group does not lag where it is shown."
		if len(s.without) > 0 {
			r.Means += " A partition has one reader of a group: members without one do nothing, and more of them would not help."
		}
		return r.done(attach.Healthy)
	}
	return r.done(attach.CannotTell)
}

func ofPartitions(n int) string {
	if n == 1 {
		return "the 1 partition"
	}
	return fmt.Sprintf("the %d partitions", n)
}
