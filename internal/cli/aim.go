package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/whystall/whystall/internal/report"
	"github.com/whystall/whystall/internal/target"
)

// compared is how long processes are looked at to say which CPU they use.
const compared = 300 * time.Millisecond

// aim finds what the argument TARGET names, and puts it where --pid or --pprof would.
func (f *recordFlags) aim(con *console) error {
	if f.Target == "" {
		return nil
	}
	a, err := target.Parse(f.Target)
	if err != nil {
		return usageError{err}
	}
	if a.Kind == target.URL {
		if f.Pprof != "" {
			return usagef("%s and --pprof name two addresses: want one", shellWord(f.Target))
		}
		f.Pprof = f.Target
		return nil
	}
	if f.Pid != 0 {
		return usagef("%s and --pid name two processes: want one", shellWord(f.Target))
	}
	if st, err := os.Stat(f.Target); err == nil && a.Kind == target.Program && (st.Mode().IsRegular() || strings.HasSuffix(f.Target, ".part")) {
		return usagef("%s is a file: whystall explain %s", shellWord(f.Target), shellWord(f.Target))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	pid, err := target.Machine{While: compared}.Find(ctx, a)
	var several *target.Several
	if errors.As(err, &several) {
		con.list(several)
		return exit(statusUsage)
	}
	if err != nil {
		return err
	}
	f.Pid = pid
	return nil
}

// mostListed is how many processes are listed.
const mostListed = 20

// list shows which processes fit an argument.
func (con *console) list(several *target.Several) {
	con.say("%v", several)
	con.sayRow("%9s %8s  %-16s %s", "pid", "CPU", "name", "program")
	for i := range several.Fit {
		p := &several.Fit[i]
		if i == mostListed {
			con.sayRow("%9s %8s  %d more", "", "", len(several.Fit)-i)
			break
		}
		program := p.Exe
		if program == "" {
			program = path.Base(p.Program)
		}
		con.sayRow("%9d %6.1f %%  %-16s %s", p.PID, 100*p.CPU, report.Printable(p.Comm), report.Printable(program))
	}
}
