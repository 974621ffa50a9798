package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/collect"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&command{
	Name: "record", Help: "Record a running service into a case, to explain later.", Order: 30,
	New: func() any { return &recordCmd{} },
})

type recordCmd struct {
	recordFlags
	Output string `short:"o" placeholder:"FILE" help:"The case to write; whystall-TIME.case by default."`
	Force  bool   `help:"Overwrite an existing case."`

	SlowOver    time.Duration `placeholder:"DURATION" help:"Watch for --for, and save only what surrounds a request that takes this long. Where requests cannot be seen, a standstill of the process counts. Each is saved as a case of its own, FILE-UTC.case."`
	Entry       string        `placeholder:"REGEX" help:"With --slow-over: only requests whose entry function or name matches."`
	MaxCaptures int           `default:"10" placeholder:"N" help:"With --slow-over: stop after this many captures; ${default} by default."`
}

// recordFlags are the flags of every command that records.
type recordFlags struct {
	Target   string        `arg:"" optional:"" name:"target" help:"What to record: a pid, a program's name, :PORT that it listens on, the address http://... of its pprof pages, NAME.service or unit:NAME, a container's id or container:NAME. If several processes fit, they are listed."`
	Pid      int           `type:"pid" placeholder:"N" help:"The process to record: its threads, as the kernel sees them, and what its runtime reports. Needs Linux; root sees more (whystall doctor)."`
	Pprof    string        `placeholder:"URL" help:"Where the service serves net/http/pprof: http://host:port, with any prefix; host:port is enough. With --pid, whystall looks for it on the process' own loopback ports by default."`
	For      time.Duration `default:"20s" placeholder:"DURATION" help:"How long to record, in whole seconds; ${default} by default."`
	Header   []string      `sep:"none" placeholder:"'K: V'" help:"Send this header with each request; may be repeated. It is never kept or printed."`
	MaxSize  byteSize      `default:"1GiB" placeholder:"SIZE" help:"Cut what is larger, above all a trace; ${default} by default. What came before the cut is kept and can be explained."`
	Profiles bool          `help:"Take the heap and goroutine profiles too. No cause needs them, and they stop the service's world briefly."`
	CPU      bool          `name:"cpu" help:"Take a CPU profile too. It interrupts the service 100 times a second on each CPU that it uses."`

	Budget   float64 `default:"6" placeholder:"PERCENT" help:"Lower the detail when recording costs more than this share of the CPU time that the process uses; ${default} % by default. For a process that uses little, the limit is a third of this share of one CPU. The recorder's own threads may take another 3 % of a CPU."`
	WithArgs bool    `help:"Keep the process' command-line arguments in the case. They may hold secrets."`
	NoProbe  bool    `help:"Do not look for the process' pprof pages."`
	NoKernel bool    `help:"Do not record kernel events of the process."`
	NoStacks bool    `help:"Record kernel events without stacks: this is cheaper, but less can be named."`
}

func (*recordCmd) Help() string {
	return `Examples:
  whystall record 4121 -o slow.case
  whystall record http://localhost:6060 -o slow.case
  whystall record https://shop.example/admin/debug/pprof/ --header 'Authorization: Bearer ...' --for 60s
  whystall record :8080 --pprof :6060 --max-size 200MiB --force -o slow.case
  whystall record shop.service --for 1h --slow-over 500ms -o shop
  whystall explain slow.case

Ctrl-C ends a recording early and keeps what was recorded. While recording, the case is the folder
FILE.part; whystall explain reads that too.

With --slow-over it waits for the stall. It records segments of 20 s back to back, and judges each
while it records the next. It saves a segment only if a request in it took that long, together with
the segment before it. A request that starts in one segment and ends in the next is not seen whole;
a stall that happens now and then will happen again.

Exit status: 0 recorded, 2 wrong usage, 3 could not record.`
}

func (c *recordCmd) Run(con *console) error {
	longest := maxFor
	if c.SlowOver > 0 {
		longest = maxWatch
	}
	o, err := c.options(con, longest)
	if err != nil {
		return err
	}
	defer collect.Ahead()()
	switch {
	case c.SlowOver < 0 || c.SlowOver > 0 && c.SlowOver < time.Millisecond || c.SlowOver > segmentLength/2:
		return usagef("--slow-over %v: want 1ms to %s", c.SlowOver, segmentLength/2)
	case c.MaxCaptures < 1:
		return usagef("--max-captures %d: want at least 1", c.MaxCaptures)
	case c.MaxCaptures != maxCaptures && c.SlowOver == 0:
		return usagef("--max-captures: is for --slow-over; without that, one recording is made")
	case c.SlowOver > 0:
		return c.watch(con, o)
	case c.Entry != "":
		return usagef("--entry: is for --slow-over; a recording holds all requests")
	}
	name := c.Output
	if name == "" {
		name = caseName(time.Now())
	}
	if err := con.record(o, name, c.Force); err != nil {
		return err
	}
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	con.say("%s written, %s; next: whystall explain %s", name, finding.Bytes(st.Size()), shellWord(name))
	return nil
}

// record records into the case file with this name.
func (con *console) record(o collect.Options, name string, force bool) error {
	ctx, done := interruptible(func() {
		dir := name + ".part"
		if _, err := os.Stat(dir); err == nil {
			con.say("stopped at once; what was recorded so far is in %s: whystall explain %s", dir, shellWord(dir))
		}
	})
	defer done()
	w, err := con.recordPart(ctx, o, name, force)
	if w != nil && err != nil {
		return fmt.Errorf("%w; what was recorded is in %s: free some space, or whystall explain %s",
			err, w.Dir(), shellWord(w.Dir()))
	}
	if err != nil {
		return err
	}
	return w.Finish()
}

// recordPart records into the folder of the case with this name. The end of ctx ends the recording.
// If nothing was recorded, no folder is left. If the disk is full, what was recorded is left, and
// both the writer and the error are returned.
func (con *console) recordPart(ctx context.Context, o collect.Options, name string,
	force bool) (*evidence.Writer, error) {
	m, err := collect.Begin(o)
	if err != nil {
		return nil, err
	}
	w, err := evidence.Create(name, force, m)
	if err != nil {
		return nil, err
	}
	show := con.progress()
	o.Progress = show.update
	err = collect.Run(ctx, o, w)
	show.clear()
	var why *collect.Error
	if errors.As(err, &why) && why.Full {
		return w, err
	}
	if err != nil {
		w.Discard()
		return nil, err
	}
	return w, nil
}

// How long a recording and a watch may last, and how many captures a watch makes by default.
const (
	maxCaptures = 10
	maxFor      = time.Hour
	maxWatch    = 7 * 24 * time.Hour
)

// plainDuration leaves out the units that are zero: 1h.
func plainDuration(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}

// options checks what the user typed.
func (f *recordFlags) options(con *console, longest time.Duration) (collect.Options, error) {
	if err := con.aim(f.Target, &f.Pid, &f.Pprof); err != nil {
		return collect.Options{}, err
	}
	o := collect.Options{
		URL: f.Pprof, PID: f.Pid, Headers: f.Header, For: f.For, MaxSize: int64(f.MaxSize),
		Profiles: f.Profiles, CPU: f.CPU, Version: version(),
		Budget: f.Budget / 100, WithArgs: f.WithArgs, NoProbe: f.NoProbe, NoKernel: f.NoKernel, NoStacks: f.NoStacks,
	}
	switch {
	case f.Pid == 0 && f.Pprof == "":
		return o, usagef("want what to record: a pid, program, :PORT, unit or container, or http://... of its pprof pages")
	case f.Pid == 0 && (f.WithArgs || f.NoProbe || f.NoKernel || f.NoStacks):
		return o, usagef("--with-args, --no-probe, --no-kernel and --no-stacks concern a process: name it, not only its pprof pages")
	case !(f.Budget > 0 && f.Budget <= 100):
		return o, usagef("--budget %v: want a percentage, as 6", f.Budget)
	}
	if f.For < time.Second || f.For > longest || f.For%time.Second != 0 {
		return o, usagef("--for %v: want whole seconds from 1s to %s", f.For, plainDuration(longest))
	}
	if f.MaxSize < 64<<10 {
		return o, usagef("--max-size %s: want at least 64KiB", f.MaxSize)
	}
	if err := collect.Check(o); err != nil {
		return o, usagef("%v", err)
	}
	return o, nil
}

// byteSize is a number of bytes as people write it: 500MB, 1GiB, 65536.
type byteSize int64

var byteUnits = []struct {
	name string
	n    int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3},
	{"kB", 1e3}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"B", 1}, {"", 1}}

// UnmarshalText lets kong read a flag.
func (b *byteSize) UnmarshalText(text []byte) error {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(string(text), u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || n < 0 || !(n*float64(u.n) < 1<<62) {
			break
		}
		*b = byteSize(n * float64(u.n))
		return nil
	}
	return fmt.Errorf("size %q: want bytes, or a number with KiB, MiB, GiB, kB, MB or GB", text)
}

func (b byteSize) String() string {
	switch {
	case b >= 1<<30:
		return fmt.Sprintf("%.3gGiB", float64(b)/(1<<30))
	case b >= 1<<20:
		return fmt.Sprintf("%.3gMiB", float64(b)/(1<<20))
	case b >= 1<<10:
		return fmt.Sprintf("%.3gKiB", float64(b)/(1<<10))
	}
	return fmt.Sprintf("%dB", int64(b))
}

// shellWord quotes a name for a command that is to be pasted.
func shellWord(s string) string { return finding.ShellFile(s) }

// tempCase names a case in a folder of its own, which remove deletes.
func tempCase() (name string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "whystall-")
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(dir, "live.case"), func() { os.RemoveAll(dir) }, nil
}
