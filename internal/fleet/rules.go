package fleet

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/finding"
)

// Rule is one row of the table: what of a kind of member is lost to a cause.
type Rule struct {
	Name  string // "direct-reclaim-host": its file, in recording rules and in NotChecked
	Cause string // a detector's name, or one that metrics only know (Only)
	Title string `prose:"yes"`
	Scope Scope
	Key   Key
	Unit  Unit
	Order int // the nearer to the root, the smaller

	Needs []string // metrics without which it is not asked
	Uses  []string // metrics that it asks for where they are there

	// Loss is the figure that ranks members, a second; from Least on it counts.
	Loss  func(*env) string
	Least float64
	// And is another counter that has to agree; nil: none is asked. Its metrics are AndNeeds. Where
	// a target lacks these, the loss alone makes the finding possible, with the reason Alone.
	And      func(*env) string
	AndNeeds []string
	Alone    string `prose:"yes"`
	// AloneNot: without the second counter nothing is said.
	AloneNot bool

	Sure   finding.Confidence // with And, where there is one
	Why    string             `prose:"yes"` // of Sure
	Risk   bool               // a setting: nothing shows that it does harm
	Levels bool               // Loss is a level and no loss: it is not multiplied by time

	// Pods: only pods' names tell which Go program runs in which container.
	Pods bool
	// Counts is metrics of which one grows in any case where they are counted at all: constant
	// zeros are no all-clear.
	Counts []string

	// Proof are figures that stand beside a finding.
	Proof []Proof
	// Like says what has the loss without And, where And's metrics are there: a look-alike.
	Like string `prose:"yes"`
	// Hides lists causes that this one makes look present: they stand under it on the same host or
	// pod.
	Hides []string
	// Instead lists causes that it stands for where they are possible and no more.
	Instead []string
}

// Proof is one figure of a finding's members.
type Proof struct {
	Text  string `prose:"yes"` // with one %s for the value
	Needs string
	Expr  func(*env) string
	Unit  Unit
}

// Only are causes that metrics can show and no recording has a detector for.
var Only = []string{"swap", "clock", "disk", "network"}

var rules = slices.SortedFunc(slices.Values(slices.Concat(hostRules, containerRules, goRules)), func(a, b *Rule) int {
	return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name, b.Name))
})

// allocstalls are the counters of direct reclaim, a zone each.
var allocstalls = []string{"node_vmstat_allocstall_normal", "node_vmstat_allocstall_movable",
	"node_vmstat_allocstall_dma32", "node_vmstat_allocstall_dma", "node_vmstat_allocstall_device"}
