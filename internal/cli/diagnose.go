package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/collect"
	"github.com/whystall/whystall/internal/compare"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&command{
	Name: "diagnose", Help: "Record a running service, explain it, print the report: the main job.", Order: 20,
	New: func() any { return &diagnoseCmd{} },
})

type diagnoseCmd struct {
	recordFlags
	Output string `short:"o" placeholder:"FILE" help:"Keep the case in FILE. Without this it is whystall-TIME.case in the current folder, where the ten newest are kept."`
	NoCase bool   `help:"Keep no case."`
	Force  bool   `help:"Overwrite an existing case."`

	Baseline string `placeholder:"FILE" help:"Compare with a case recorded before the remedy, and print that instead of the report."`
	explainFlags

	before *compare.Run // the baseline, explained before anything is recorded
}

func (*diagnoseCmd) Help() string {
	return `Examples:
  whystall diagnose 4121                     a process by its pid
  whystall diagnose :8080                    by the port that it listens on
  whystall diagnose mysqld                   by its program
  whystall diagnose shop.service             by its unit; others: unit:NAME
  whystall diagnose container:shop           by its container, or by that one's id
  whystall diagnose http://localhost:6060    a Go service elsewhere, by its pprof pages
  whystall diagnose 4121 --for 60s -o keep.case
  whystall diagnose http://localhost:6060 --entry 'api\.' --slow-over 200ms --format json --no-case
  whystall diagnose 4121 --baseline before.case    did the remedy work?

Ctrl-C ends the recording early; what was recorded is explained.

Exit status: 0 nothing found, 1 a cause was found, 2 wrong usage, 3 could not look. With --baseline
it is that of whystall compare.`
}

func (c *diagnoseCmd) Run(con *console) error {
	if err := c.check(); err != nil {
		return err // before anything is recorded
	}
	o, err := c.options(con, maxFor)
	if err != nil {
		return err
	}
	if c.Baseline != "" {
		if c.before, err = con.run(c.Baseline); err != nil {
			return fmt.Errorf("--baseline: %w", err)
		}
	}
	name, remove := c.Output, func() {}
	switch {
	case c.NoCase && name != "":
		return usagef("--no-case and -o %s: want one of them", shellWord(name))
	case name == "" && !c.NoCase && writable("."):
		name, o.Unasked = caseName(time.Now()), true
	case name == "":
		if !c.NoCase {
			con.say("no case is kept: nothing can be written to the current folder; -o FILE keeps it elsewhere")
		}
		if name, remove, err = tempCase(); err != nil {
			return fmt.Errorf("create a temporary case: %w", err)
		}
		defer remove()
		c.gone = true
	}
	// Signals are handled to the end. The first Ctrl-C ends the recording, which is then explained;
	// a later one must not leave the temporary case behind.
	ctx, done := interruptible(remove)
	defer done()
	defer collect.Ahead()()
	w, err := con.recordPart(ctx, o, name, c.Force)
	if w == nil {
		return err
	}
	if err == nil && (c.Output != "" || o.Unasked) {
		if err = w.Finish(); err == nil {
			return c.explainKept(con, name, o.Unasked)
		}
	}
	if err != nil {
		con.say("%v; what was recorded is explained", err) // the disk is full
	}
	// explain reads the folder as it is. Packing it would take time, and the disk space twice.
	return c.tell(con, w.Dir(), c.again())
}

// tell says what was recorded: the report, or with a baseline what the remedy did.
func (c *diagnoseCmd) tell(con *console, name, again string) error {
	if c.before == nil {
		return con.explain([]string{name}, c.explainFlags, "", again, nil)
	}
	after, err := con.run(name)
	if err != nil {
		return err
	}
	return con.printComparison(compare.Sides([]*compare.Run{c.before}, []*compare.Run{after}), c.Format, "")
}

// explainKept explains a case that is kept, and names it in the last line.
func (c *diagnoseCmd) explainKept(con *console, name string, unasked bool) error {
	err := c.tell(con, name, c.again()+" --baseline "+shellWord(name))
	size := ""
	if st, err := os.Stat(name); err == nil {
		size = ", " + finding.Bytes(st.Size())
	}
	if unasked {
		thinOut(".")
		con.say("%s written%s; the %d newest are kept, --no-case keeps none", name, size, mostKept)
	} else {
		con.say("%s written%s", name, size)
	}
	return err
}

// again is the command that would do the same, without its secrets.
func (c *diagnoseCmd) again() string {
	s := "whystall diagnose"
	switch {
	case c.Target != "" && c.Target != c.Pprof:
		s += " " + shellWord(c.Target) // it also names the process that is started with the remedy
	case c.Pid != 0:
		s += " --pid " + strconv.Itoa(c.Pid)
	}
	if c.Pprof != "" {
		s += " --pprof " + shellWord(collect.Shown(c.Pprof))
	}
	s += " --for " + c.For.String()
	for _, h := range c.Header {
		key, _, _ := strings.Cut(h, ":")
		s += " --header " + shellWord(strings.TrimSpace(key)+": ...")
	}
	if c.Entry != "" {
		s += " --entry " + shellWord(c.Entry)
	}
	if c.SlowOver > 0 {
		s += " --slow-over " + c.SlowOver.String()
	}
	return s
}
