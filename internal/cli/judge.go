package cli

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/timeline"
)

var _ = register(&command{
	Name: "judge", Help: "Tell of a segment whether anything took too long: used by record --slow-over.", Order: 100, Hidden: true,
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
		v = verdict{What: "request", NS: r.Requests.Max, Count: r.Requests.Slow}
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
			v.UTC = b.UTC.Add(time.Duration(v.at - b.MonoNS)).UTC()
		}
	}
	return json.NewEncoder(con.stdout).Encode(v)
}

// standstill is the longest time in which no thread ran though one was queued or throttled. Short runs end it, as those in which a
// throttled thread is switched out again: they are too short for any work.
func standstill(k *timeline.Kernel, over int64) verdict {
	const blip = 50_000
	v := verdict{What: "standstill"}
	lo, hi := k.Span()
	var begin, end int64 // of the stretch that goes on; 0: none
	flush := func() {
		if d := end - begin; begin != 0 {
			if d > v.NS {
				v.NS, v.at = d, begin
			}
			if d >= over {
				v.Count++
			}
		}
		begin, end = 0, 0
	}
	for _, t := range k.Process(lo, hi, nil) {
		switch {
		case t.State == timeline.ProcessThrottled || t.State == timeline.ProcessQueued:
			if begin == 0 {
				begin = t.Begin
			}
			end = t.End
		case t.State == timeline.ProcessOn && t.End-t.Begin <= blip && begin != 0:
			// it ends the stretch only if nothing waits after it
		default:
			flush()
		}
	}
	flush()
	return v
}

// atEase runs a command to its end at the lowest priority and gives its standard output.
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
