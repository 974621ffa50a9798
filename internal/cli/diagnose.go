package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/collect"
)

var _ = register(&command{
	Name: "diagnose", Help: "Record a running service, explain it, print the report: the main job.", Order: 20,
	New: func() any { return &diagnoseCmd{} },
})

type diagnoseCmd struct {
	recordFlags
	Output string `short:"o" placeholder:"FILE" help:"Keep the case in FILE. Without this it is removed after the report."`
	Force  bool   `help:"Overwrite an existing case."`
	explainFlags
}

func (*diagnoseCmd) Help() string {
	return `Examples:
  whystall diagnose --pid 4121
  whystall diagnose --pprof http://localhost:6060
  whystall diagnose --pprof localhost:6060 --for 60s -o keep.case
  whystall diagnose --pprof http://localhost:6060 --entry 'api\.' --slow-over 200ms --format json

Ctrl-C ends the recording early; what was recorded is explained.

Exit status: 0 nothing found, 1 a cause was found, 2 wrong usage, 3 could not look.`
}

func (c *diagnoseCmd) Run(con *console) error {
	if err := c.check(); err != nil {
		return err // before anything is recorded
	}
	o, err := c.options(con, maxFor)
	if err != nil {
		return err
	}
	name, remove := c.Output, func() {}
	if name == "" {
		if name, remove, err = tempCase(); err != nil {
			return fmt.Errorf("create a temporary case: %w", err)
		}
		defer remove()
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
	if err == nil && c.Output != "" {
		if err = w.Finish(); err == nil {
			con.say("%s written", name)
			return con.explain([]string{name}, c.explainFlags, "", c.again())
		}
	}
	if err != nil {
		con.say("%v; what was recorded is explained", err) // the disk is full
	}
	// explain reads the folder as it is. Packing it would take time, and the disk space twice.
	return con.explain([]string{w.Dir()}, c.explainFlags, "", c.again())
}

// again is the command that would do the same, without its secrets.
func (c *diagnoseCmd) again() string {
	s := "whystall diagnose"
	if c.Pid != 0 {
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
