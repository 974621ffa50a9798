package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/compare"
	"github.com/whystall/whystall/internal/report"
)

var _ = register(&command{
	Name: "compare", Help: "Say whether a remedy worked, from recordings before and after it.", Order: 25,
	New: func() any { return &compareCmd{} },
})

type compareCmd struct {
	Files  []string `arg:"" name:"file" help:"BEFORE AFTER, or several a side with -- between the sides. Cases or execution traces."`
	Output string   `short:"o" placeholder:"FILE" help:"Write the comparison to FILE instead of standard output."`
	Format string   `enum:"text,json,markdown,html" default:"text" placeholder:"FORMAT" help:"text, json, markdown or html, a page for a browser."`
}

func (*compareCmd) Help() string {
	return `Examples:
  whystall compare before.case after.case
  whystall compare before.trace after.trace --format markdown
  whystall compare before.case after.case --format html -o remedy.html
  whystall compare b1.case b2.case b3.case -- a1.case a2.case a3.case

For each cause that was found before it says: confirmed, not confirmed, worse, or cannot tell and
why. From one recording a side only a large fall can be told: p99 by a third, and what the cause
takes of a slow request by half. Three starts of the process a side, each recorded, tell a fall of a
tenth. Record both sides under the same load.

Exit status: 0 all causes are confirmed as gone, 1 one is not or is worse, 2 wrong usage, 3 one cannot
be told, or nothing was found before.`
}

// sidesMark stands for -- among the arguments of compare, which the parser of flags swallows. No
// file can have this name.
const sidesMark = "\x00--"

// markSides replaces -- in the arguments of compare by a mark that the parser leaves alone.
func markSides(args []string) []string {
	if len(args) == 0 || args[0] != "compare" {
		return args
	}
	i := slices.Index(args, "--")
	if i < 0 {
		return args
	}
	args = slices.Clone(args)
	args[i] = sidesMark
	return args
}

func (c *compareCmd) Run(con *console) error {
	before, after, err := c.sides()
	if err != nil {
		return err
	}
	if err := notInput(c.Output, slices.Concat(before, after)); err != nil {
		return err
	}
	b, err := con.runs(before)
	if err != nil {
		return err
	}
	a, err := con.runs(after)
	if err != nil {
		return err
	}
	if twice := sameRecording(b, a); twice != "" {
		return usagef("compare %s: the same recording is on both sides", twice)
	}
	return con.printComparison(compare.Sides(b, a), c.Format, c.Output)
}

func (con *console) printComparison(c *compare.Comparison, format, output string) error {
	err := con.printTo(output, func(w io.Writer, o report.TextOptions) error {
		return report.PrintComparison(w, c, format, o)
	})
	if err != nil {
		return err
	}
	return exit(c.Status())
}

// sides divides the files.
func (c *compareCmd) sides() (before, after []string, err error) {
	i := slices.Index(c.Files, sidesMark)
	switch {
	case i >= 0:
		before, after = c.Files[:i], c.Files[i+1:]
	case len(c.Files) == 2:
		before, after = c.Files[:1], c.Files[1:]
	default:
		return nil, nil, usagef("want BEFORE AFTER, or BEFORE... -- AFTER...; got %d files without --", len(c.Files))
	}
	if len(before) == 0 || len(after) == 0 {
		return nil, nil, usagef("want files on both sides of --")
	}
	if slices.Contains(after, sidesMark) {
		return nil, nil, usagef("want one -- between the sides")
	}
	return before, after, nil
}

// runs explains the recordings of a side.
func (con *console) runs(files []string) (runs []*compare.Run, err error) {
	for _, name := range files {
		r, err := con.run(name)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// run explains one recording.
func (con *console) run(name string) (*compare.Run, error) {
	in := con.load([]string{name})
	defer in.close()
	if in.inputs[0].Error != "" {
		return nil, fmt.Errorf("%s", in.inputs[0].Error)
	}
	if in.trace == nil && in.kern == nil {
		return nil, fmt.Errorf("compare %s: neither an execution trace nor a case with kernel records; whystall record makes one", name)
	}
	r := &compare.Run{Name: name}
	ledger, err := con.account(in, nil, 0)
	if ledger == nil {
		return nil, err
	}
	if err != nil {
		con.say("%v; what was read is compared", err)
	}
	r.Result, r.Found = ledger, in.detect(ledger, "", 0)
	r.CPUs, r.Program = in.target.CPUs, in.target.Name
	r.CPUNS = grown(in, "/process/cpu:ns")
	if m := ledger.Memory; m != nil {
		r.RSS = m.RSS
	}
	if m := in.manifest; m != nil {
		r.Begun, r.PID, r.Started = m.Begun.UTC, m.Target.PID, m.Target.Started
		r.Host = strings.Join([]string{m.Host.OS, m.Host.Arch, m.Host.Kernel}, " ")
	}
	r.OthersCPUs, r.OthersKnown = capacity.Others(in.set, ledger.Kernel)
	return r, nil
}

func grown(in *loaded, stream string) int64 {
	d, _, _ := in.set.Delta(stream)
	return int64(min(max(d, 0), 1e18))
}

// sameRecording is the name of a recording that is on both sides, "" if none is.
func sameRecording(before, after []*compare.Run) string {
	for _, b := range before {
		for _, a := range after {
			if b.Name == a.Name || !b.Begun.IsZero() && b.Begun.Equal(a.Begun) && b.PID == a.PID {
				return a.Name
			}
		}
	}
	return ""
}
