package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/detect"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/report"
	"github.com/whystall/whystall/internal/toll"
)

var _ = register(&command{
	Name: "explain", Help: "Say what slow requests waited for, from files.", Order: 10,
	New: func() any { return &explainCmd{} },
})

type explainCmd struct {
	Files  []string `arg:"" name:"file" help:"Execution traces, cases, folders NAME.case.part, pprof profiles, and what hangs on a ticket: outputs of tools, lines of logs, thread dumps, files of /proc and cgroups, folders and archives of them, in any order. They are recognised by their content; - reads standard input."`
	Output string   `short:"o" placeholder:"FILE" help:"Write the report to FILE instead of standard output."`
	exportFlags
	explainFlags
}

// selectFlags say which requests are explained.
type selectFlags struct {
	Entry    string        `placeholder:"REGEX" help:"Only requests whose entry function or name matches."`
	SlowOver time.Duration `placeholder:"DURATION" help:"Count requests over this as slow. By default, the slowest 1 % of each group are, at least 10 in all."`
}

// explainFlags are the flags of every command that explains and prints.
type explainFlags struct {
	selectFlags
	Format  string `enum:"${outputs}" default:"${output}" placeholder:"FORMAT" help:"${outputs_in_words}."`
	Verbose bool   `short:"v" help:"Print everything. Without this, text and markdown are one screen."`
	Only    string `placeholder:"PART" help:"Print one part of the text: ${parts}."`

	gone bool // the files do not outlive the report
}

// check says what was typed wrongly, before any work is done.
func (f *selectFlags) check() (*regexp.Regexp, error) {
	if f.SlowOver < 0 {
		return nil, usagef("--slow-over %v: must be more than zero", f.SlowOver)
	}
	if f.Entry == "" {
		return nil, nil
	}
	entry, err := regexp.Compile(f.Entry)
	if err != nil {
		return nil, usagef("--entry %s: not a regular expression: %v", shellWord(f.Entry), err)
	}
	return entry, nil
}

func (f *explainFlags) check() error {
	if f.Only != "" && !slices.Contains(report.Parts(), f.Only) {
		return usagef("--only %s: want %s", shellWord(f.Only), strings.Join(report.Parts(), ", "))
	}
	if f.Only != "" && f.Format != "text" {
		return usagef("--only: is for text; --format %s has all parts", f.Format)
	}
	_, err := f.selectFlags.check()
	return err
}

func (*explainCmd) Help() string {
	return `Examples:
  whystall explain trace.out                          a Go execution trace, of any version since 1.11
  whystall explain slow.case                          what whystall record made
  whystall explain trace.out mutex.pb.gz metrics.txt  more evidence, more causes that can be checked
  curl -s 'http://localhost:6060/debug/pprof/trace?seconds=5' | whystall explain -
  whystall explain paste.txt sosreport.tar.xz         what hangs on a ticket, in any mix
  whystall explain trace.out --entry 'api\.' --slow-over 200ms
  whystall explain slow.case -v                       everything; without this, one screen
  whystall explain slow.case --only locks             one part
  whystall explain trace.out --format json | jq '.findings[].cause'
  whystall explain slow.case --perfetto slow.pftrace  tracks, for ui.perfetto.dev
  whystall explain slow.case --pprof wait.pb.gz       then: go tool pprof -http=: wait.pb.gz

It knows files by their content: cases; Go's traces, profiles and gctrace, goroutine dumps; files of
/proc, /sys and cgroups, the kernel's log; what top, vmstat, pidstat, sar, perf, strace, the BPF tools
and others print; thread dumps and logs of JVMs; plans, slow logs and status of databases; archives
and folders of them.

Exit status: 0 nothing found, 1 a cause was found, 2 wrong usage, 3 could not look, or what is there
cannot tell.`
}

func (c *explainCmd) Run(con *console) error {
	if err := c.exportFlags.check(c.Output, c.Files); err != nil {
		return err
	}
	return con.explain(c.Files, c.explainFlags, c.Output, "", &c.exportFlags)
}

// explain reads the files, explains what they hold and prints the report. Both explain and diagnose
// end with it. output is the file for the report, "" for standard output. again is the command that
// would record the same target once more, for the line "verify"; "" where it is not known. What
// went wrong with a file is on stderr and in the report. The error is an exit, or whatever else
// failed. Exports are written after the report; nil is none.
func (con *console) explain(files []string, f explainFlags, output, again string, exports *exportFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := notInput(output, files); err != nil {
		return err
	}
	if done, err := con.explainFleet(files, f, output); done {
		return err
	}
	others := exports != nil && exports.any()
	r, err := con.examine(files, f.selectFlags, again, others)
	if err != nil {
		return err
	}
	if err := con.print(r, f, output, f.more(files)); err != nil {
		return err
	}
	if others {
		if err := con.export(r, exports); err != nil {
			return err
		}
	}
	return exit(statusOf(r))
}

// more is the command that prints what the one screen leaves out. What came from standard input is
// gone, and so is a recording that is not kept.
func (f *explainFlags) more(files []string) string {
	s := "whystall explain"
	if f.gone {
		return "the same with -v, or keep the case"
	}
	for _, name := range files {
		if name == "-" {
			return "the same with -v"
		}
		s += " " + shellWord(name)
	}
	return s + " -v"
}

// examine reads the files and explains what they hold, with the stories of the slowest requests if
// they are wanted.
func (con *console) examine(files []string, f selectFlags, again string, stories bool) (*report.Report, error) {
	entry, err := f.check()
	if err != nil {
		return nil, err
	}
	started, cpu := time.Now(), cpuTime()
	in := con.load(files)
	in.stories = stories
	defer in.close()
	for _, i := range in.inputs {
		if i.Error != "" {
			con.say("%s", i.Error)
		}
	}
	s := report.Source{Target: in.target, Inputs: in.inputs, Gaps: in.gaps, Entry: f.Entry, SlowOver: int64(f.SlowOver)}
	s.Cost.Recorder, s.Cost.Recording, s.Tiers = in.recorder, in.cost, in.tiers
	if in.toll != nil {
		s.Cost.Service, s.Cost.Eased = toll.Weigh(in.toll), in.toll.Eased
	}
	if s.Ledger, err = con.account(in, entry, f.SlowOver); err != nil {
		con.say("%v", err)
		s.Errors = append(s.Errors, err.Error())
	}
	s.Gaps = in.gaps // account may have added some
	if in.nothing() {
		return nil, exit(statusNoLook)
	}
	if f.Entry != "" && s.Ledger != nil && s.Ledger.Requests.Count == 0 {
		s.Ledger.Requests.NoRequestsCause = fmt.Sprintf("no request that --entry %s matches started and ended inside the trace; without it the report lists the entries", shellWord(f.Entry))
	}
	s.Found = in.detect(s.Ledger, again, f.SlowOver)
	if s.Attached = in.answer(&s.Found); s.Attached != nil && in.trace == nil && in.kern == nil {
		s.Found.Findings = findings(s.Attached)
	}
	s.Cost.ExplainNS, s.Cost.ExplainCPUNS = int64(time.Since(started)), cpuTime()-cpu
	return report.New(s), nil
}

// detect has the detectors look at what was read; r is nil where there is no ledger.
func (in *loaded) detect(r *account.Result, again string, slowOver time.Duration) finding.Result {
	facts := detect.Facts{Service: in.target.Service, Again: cmp.Or(again, in.again()),
		CPUs: in.target.CPUs, SlowOver: int64(slowOver)}
	if in.toll != nil {
		facts.Shortened = slices.ContainsFunc(in.toll.Eased,
			func(e evidence.Easing) bool { return e.Did == evidence.Shortened })
	}
	if r == nil {
		facts.Memory = capacity.Memory(in.set, false)
	}
	return detect.Run(r, in.set, facts)
}

// again is the command that would record the target of the case once more, "" where it is not
// known.
func (in *loaded) again() string {
	baseline := ""
	if len(in.inputs) == 1 {
		baseline = " --baseline " + shellWord(in.inputs[0].Name)
	}
	switch m := in.manifest; {
	case m == nil:
	case m.Target.PID != 0:
		return "whystall diagnose --pid PID --for 20s" + baseline // the process of the case is long gone
	case m.Target.URL != "":
		return "whystall diagnose --pprof " + shellWord(m.Target.URL) + " --for 20s" + baseline
	}
	return ""
}

// statusOf is the exit status that a report means. If something was found, it does not matter what
// else could not be read. If nothing was, it does: a check that a script relies on must not pass
// because a file was damaged.
func statusOf(r *report.Report) int {
	a := r.Attached
	if len(r.Findings) > 0 || a != nil && a.State == report.AttachedIll {
		return statusFound
	}
	for _, in := range r.Inputs {
		if in.Error != "" {
			return statusNoLook
		}
	}
	if len(r.Errors) > 0 || a != nil && a.State == report.AttachedUnsure {
		return statusNoLook
	}
	if !r.Looked() && (a == nil || !r.AttachedOnly()) {
		return statusNoLook
	}
	return statusNothing
}

// outputVars fills the names of the report's outputs into the flags' tags.
func outputVars() kong.Vars {
	var names []string
	for _, o := range report.Outputs() {
		names = append(names, o.Name)
	}
	last := len(names) - 1
	return kong.Vars{"parts": strings.Join(report.Parts(), ", "),
		"outputs": strings.Join(names, ","), "output": names[0],
		"outputs_in_words": strings.Join(names[:last], ", ") + " or " + names[last]}
}

// notInput keeps -o from overwriting a file that is to be read.
func notInput(output string, files []string) error { return isInput("--output", output, files) }

func (con *console) print(r *report.Report, f explainFlags, output, more string) error {
	return con.printTo(output, func(w io.Writer, o report.TextOptions) error {
		o.All, o.Only, o.More = f.Verbose, f.Only, more
		return r.Print(w, f.Format, o)
	})
}

// printTo prints to a file, or to standard output where its name is "".
func (con *console) printTo(output string, print func(io.Writer, report.TextOptions) error) error {
	options := func(w io.Writer) report.TextOptions {
		return report.TextOptions{Colour: con.colour(w), Columns: columns(w)}
	}
	var err error
	if output == "" {
		err = print(con.stdout, options(con.stdout))
	} else {
		var file *os.File
		if file, err = os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err == nil {
			err = errors.Join(print(file, options(file)), file.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// colour reports whether w shows colours and its reader wants them.
func (con *console) colour(w io.Writer) bool {
	return con.getenv("NO_COLOR") == "" && con.getenv("TERM") != "dumb" && terminal(w)
}

// terminal reports whether w is a terminal, or another character device, which does no harm.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
