package cli

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sched"
)

var _ = register(&command{
	Name: "judge", Help: "Say whether anything in a segment took too long: for record --slow-over.",
	Order: 100, Hidden: true,
	New: func() any { return &judgeCmd{} },
})

type judgeCmd struct {
	Folder   string        `arg:"" help:"The segment."`
	SlowOver time.Duration `required:"" placeholder:"DURATION" help:"How long is too long."`
	Entry    string        `placeholder:"REGEX" help:"Only requests whose entry function or name matches."`
}

func (c *judgeCmd) Run(con *console) error {
	var entry *regexp.Regexp
	if c.Entry != "" {
		var err error
		if entry, err = regexp.Compile(c.Entry); err != nil {
			return usagef("--entry: %v", err)
		}
	}
	in := con.load([]string{c.Folder})
	defer in.close()
	if in.nothing() {
		return fmt.Errorf("%s", in.inputs[0].Error)
	}
	r, err := con.account(in, entry, c.SlowOver)
	if r == nil && err != nil && in.threads == nil {
		return err
	}
	var v verdict
	switch {
	case r != nil && r.Requests.Count > 0:
		v = verdict{What: whatRequest, NS: r.Requests.Max, Count: r.Requests.Slow}
		if len(r.Requests.Slowest) > 0 {
			s := &r.Requests.Slowest[0]
			if v.Name = s.Name; v.Name == "" {
				v.Name = s.Entry
			}
			if r.Wall {
				v.UTC = time.Unix(0, s.Begin+r.WallOffset).UTC()
			}
		}
	case in.threads != nil:
		v = standstill(in.threads, int64(c.SlowOver))
		if v.NS > 0 && in.manifest != nil {
			b := in.manifest.Begun
			v.UTC = b.UTC.Add(time.Duration(v.begin - b.MonoNS)).UTC()
		}
	}
	if in.manifest != nil {
		v = longerHalt(v, in.manifest.Target.Halted)
	}
	return json.NewEncoder(con.stdout).Encode(v)
}

// longerHalt replaces a verdict by a stop of the whole process that was longer. While a process is
// stopped none of its threads is queued, and a request that waits for it may end in a later
// segment.
func longerHalt(v verdict, h *evidence.Halt) verdict {
	if h == nil || h.NS <= v.NS {
		return v
	}
	return verdict{What: whatHalt, Name: h.By, NS: h.NS}
}

// standstill is the longest time in which no thread ran though one was queued or throttled. Count
// is how many such times took longer than the limit.
func standstill(k *sched.Timeline, limit int64) verdict {
	v := verdict{What: whatStandstill}
	for i, s := range capacity.Standstills(k, 1) {
		if i == 0 {
			v.NS, v.begin = s.End-s.Begin, s.Begin
		}
		if s.End-s.Begin >= limit {
			v.Count++
		}
	}
	return v
}

// atEase runs a command to its end at the lowest priority and returns its standard output.
func atEase(cmd *exec.Cmd) ([]byte, error) {
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lowest(cmd.Process.Pid)
	err := cmd.Wait()
	return []byte(out.String()), err
}
