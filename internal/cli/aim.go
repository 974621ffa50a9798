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

// aim finds what the argument TARGET names, and puts it where --pid or --pprof would. Pprof is nil
// for a command that needs a process.
func (con *console) aim(name string, pid *int, pprof *string) error {
	if name == "" {
		return nil
	}
	a, err := target.Parse(name)
	if err != nil {
		return usageError{err}
	}
	switch st, serr := os.Stat(name); {
	case a.Kind == target.URL && pprof == nil:
		return usagef("%s: want a process of this machine", shellWord(name))
	case a.Kind == target.URL && *pprof != "":
		return usagef("%s and --pprof name two addresses: want one", shellWord(name))
	case a.Kind == target.URL:
		*pprof = name
		return nil
	case *pid != 0:
		return usagef("%s and --pid name two processes: want one", shellWord(name))
	case serr == nil && a.Kind == target.Program && (st.Mode().IsRegular() || strings.HasSuffix(name, ".part")):
		return usagef("%s is a file: whystall explain %s", shellWord(name), shellWord(name))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	found, err := target.Machine{While: compared}.Find(ctx, a)
	var several *target.Several
	if errors.As(err, &several) {
		con.list(several)
		return exit(statusUsage)
	}
	if err != nil {
		return err
	}
	*pid = found
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
