package target

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Machine is where to look. The zero value is this machine.
type Machine struct {
	Proc  string // "": /proc
	Run   Run    // nil: Command
	While time.Duration
}

// Several is the error of an argument that more than one process fits.
type Several struct {
	What string
	Fit  []Process // those with most CPU first
}

func (e *Several) Error() string {
	return fmt.Sprintf("%s: %d processes fit; name one by its pid", e.What, len(e.Fit))
}

// Find gives the one process that an argument of any kind but URL names. Where several fit, the
// error is a [Several].
func (m Machine) Find(ctx context.Context, a Arg) (pid int, err error) {
	m.Proc = cmp.Or(m.Proc, "/proc")
	if m.Run == nil {
		m.Run = Command
	}
	if a.Kind == PID {
		return a.Number, nil
	}
	all, err := list(m.Proc, os.Getpid())
	if err != nil {
		return 0, fmt.Errorf("look for %s %s: %w", a.Kind, a.Value, err)
	}
	fit, err := m.fitting(ctx, a, all)
	switch {
	case err != nil:
		return 0, err
	case len(fit) == 1:
		return fit[0].PID, nil
	}
	m.measure(fit)
	return 0, &Several{What: string(a.Kind) + " " + a.Value, Fit: fit}
}

// fitting lists the processes that fit. None is an error, which says what to do.
func (m Machine) fitting(ctx context.Context, a Arg, all []Process) ([]Process, error) {
	which := func(fits func(*Process) bool) (l []Process) {
		for i := range all {
			if fits(&all[i]) {
				l = append(l, all[i])
			}
		}
		return l
	}
	var fit []Process
	var none string
	switch a.Kind {
	case Port:
		return m.onPort(all, a.Number)
	case Unit:
		fit = which(func(p *Process) bool { return p.in(func(part string) bool { return part == a.Value }) })
		none = "no process is in its cgroup; see systemctl status " + a.Value
	case Container:
		fit = which(func(p *Process) bool { return p.in(func(part string) bool { return isOf(part, a.Value) }) })
		none = "no process is in a cgroup with that id; is it running, on this machine?"
	case Named:
		ids, err := ids(ctx, m.Run, a.Value)
		if err != nil {
			return nil, err
		}
		fit = which(func(p *Process) bool {
			return p.in(func(part string) bool {
				return slices.ContainsFunc(ids, func(id string) bool { return isOf(part, id) })
			})
		})
		none = "no process is in its cgroup; is it running?"
	default:
		fit = which(func(p *Process) bool { return p.is(a.Value) })
		none = "no process runs a program of that name; pgrep -af " + a.Value + " searches command lines"
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("%s %s: %s", a.Kind, a.Value, none)
	}
	return fit, nil
}

// isOf reports whether a part of a cgroup's path is that of a container: the id alone, or between
// what its runtime puts around it, as in docker-ID.scope and cri-containerd-ID.scope.
func isOf(part, id string) bool {
	part = strings.TrimSuffix(part, ".scope")
	part = part[strings.LastIndexAny(part, "-:")+1:]
	return isID(part) && strings.HasPrefix(part, id)
}

// publishers are programs that listen for a container's port in its stead.
var publishers = []string{"docker-proxy", "rootlessport", "rootlessport-child", "slirp4netns", "pasta", "pasta.avx2"}

// onPort lists who listens on a port.
func (m Machine) onPort(all []Process, port int) ([]Process, error) {
	inodes := listeners(m.Proc, all, port)
	if len(inodes) == 0 {
		return nil, fmt.Errorf("port :%d: nobody listens on it here, over TCP; ss -ltn lists who does", port)
	}
	fit, hidden := holders(m.Proc, all, inodes)
	for i := range fit {
		if slices.Contains(publishers, fit[i].Comm) {
			return nil, fmt.Errorf("port :%d: %s (pid %d) passes it on to a container: name that one, as container:NAME", port, fit[i].Comm, fit[i].PID)
		}
	}
	if len(fit) == 0 && hidden > 0 {
		return nil, fmt.Errorf("port :%d: a process of another user listens on it, which /proc hides: run whystall as root", port)
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("port :%d: the process that listens on it is not visible here; in a container, share the host's pid namespace", port)
	}
	return fit, nil
}

// measure finds out what CPU the processes use now, and puts the busiest first.
func (m Machine) measure(l []Process) {
	const ticks = 100 // a second: USER_HZ of all architectures that Go supports
	read := func(p *Process) (int64, bool) {
		_, n, ok := stat(filepath.Join(m.Proc, strconv.Itoa(p.PID)))
		return n, ok
	}
	begun := time.Now()
	for i := range l {
		l[i].Ticks, _ = read(&l[i])
	}
	time.Sleep(m.While)
	for i := range l {
		now, ok := read(&l[i])
		if d := time.Since(begun).Seconds(); ok && d > 0 {
			l[i].CPU = max(0, float64(now-l[i].Ticks)/ticks/d)
		}
	}
	slices.SortStableFunc(l, func(a, b Process) int { return cmp.Compare(b.CPU, a.CPU) })
}
