package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/whystall/whystall/lab/settings"
	"github.com/whystall/whystall/lab/witness"
)

// stage is a variant with its processes started.
type stage struct {
	c       *Case
	v       *Variant
	journal *settings.Journal // nil where nothing is changed
	child   map[string]*child
	order   []*child
	says    map[string]string
	joined  map[string][]string // the cgroup.procs that each process joined, by its name
	unwatch func() error        // ends the watch over scarce memory; nil without one
}

// leastFree is how much memory, in bytes, a variant that needs much leaves to the machine.
const leastFree = 3 << 30

// set starts a variant's processes in order, as each may need what an earlier one says. Where the
// machine lacks something, the error is a skip.
func set(ctx context.Context, b *builder, c *Case, v *Variant) (s *stage, err error) {
	if v.Memory > 0 {
		free, err := available()
		if err != nil {
			return nil, err
		}
		if free < v.Memory+leastFree {
			return nil, skip(fmt.Sprintf("it needs %d MiB of memory, and 3 GiB must stay free; %d MiB are free now", v.Memory>>20, free>>20))
		}
	}
	if v.Nodes > nodes() {
		return nil, skip(fmt.Sprintf("it needs %d NUMA nodes, and this machine has %d; in a virtual machine: lab qemu %s", v.Nodes, nodes(), c.Name))
	}
	s = &stage{c: c, v: v, child: map[string]*child{}, joined: map[string][]string{},
		says: map[string]string{"cpus": strconv.Itoa(runtime.NumCPU())}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end())
			s = nil
		}
	}()
	programs := map[string]string{}
	for i := range v.Start {
		p := &v.Start[i]
		if programs[p.Name], err = b.program(ctx, c, p.Program); err != nil {
			return s, err
		}
		if p.Cgroup != (settings.Limits{}) && os.Geteuid() != 0 {
			return s, asRoot("making a cgroup", c)
		}
	}
	if (len(v.Settings) > 0 || v.Leave > 0) && os.Geteuid() != 0 {
		return s, asRoot("changing the machine's settings", c)
	}
	if v.changes() {
		if s.journal, err = settings.Begin(os.Args[0], "watchdog"); err != nil {
			return s, err
		}
	}
	for _, set := range v.Settings {
		if err = s.journal.Set(set.Path, set.Value); err != nil {
			return s, err
		}
	}
	if v.Leave > 0 {
		if s.unwatch, err = scarce(s.journal, v.Leave); err != nil {
			return s, err
		}
	}
	for i := range v.Start {
		if err = s.start(ctx, &v.Start[i], programs[v.Start[i].Name]); err != nil {
			return s, err
		}
	}
	if s.child["server"] == nil || s.clients() == nil {
		return s, fmt.Errorf("read case %s: variant %s has no server, or no process which knows its figures", c.Name, v.Name)
	}
	return s, nil
}

// start starts a process with what it needs: its folder, its cgroup, and what earlier ones said.
func (s *stage) start(ctx context.Context, p *Process, program string) error {
	if p.Folder {
		dir, err := os.MkdirTemp("", tempPrefix)
		if err != nil {
			return err
		}
		if err := s.journal.Remove(dir); err != nil {
			return err
		}
		s.says[p.Name+".folder"] = dir
	}
	args, err := fill(p.Args, s.says)
	if err != nil {
		return err
	}
	var join []string
	if p.Cgroup != (settings.Limits{}) {
		if join, err = s.journal.Cgroup(s.v.Name+"-"+p.Name, p.Cgroup); err != nil {
			return err
		}
	}
	s.joined[p.Name] = join
	child, err := start(ctx, p, program, args, join)
	if err != nil {
		return err
	}
	s.child[p.Name] = child
	s.order = append(s.order, child)
	for k, v := range child.says {
		s.says[p.Name+"."+k] = v
	}
	return nil
}

// asRoot is a skip because the lab does not run as root.
func asRoot(what string, c *Case) skip {
	return skip(fmt.Sprintf(`%s needs root: sudo env "PATH=$PATH" go run -C lab . run %s`, what, c.Name))
}

// changes reports whether something must be put back at the end.
func (v *Variant) changes() bool {
	for _, p := range v.Start {
		if p.Folder || p.Cgroup != (settings.Limits{}) {
			return true
		}
	}
	return len(v.Settings) > 0 || v.Leave > 0
}

// clients is the process which knows the figures: clients or, where units of work are the server's
// own, the server.
func (s *stage) clients() *child {
	if c := s.child["clients"]; c != nil {
		return c
	}
	return s.child["server"]
}

// pid is that of the process which is diagnosed.
func (s *stage) pid() int { return s.child["server"].pid }

// end stops all processes, the last one first, and puts back what was changed.
func (s *stage) end() error {
	for i := len(s.order) - 1; i >= 0; i-- {
		s.order[i].stop()
	}
	s.order = nil
	if s.journal == nil {
		return nil
	}
	var short error
	if s.unwatch != nil {
		short = s.unwatch()
	}
	j := s.journal
	s.journal, s.unwatch = nil, nil
	return errors.Join(short, j.End())
}

// dead gives an error where a process has ended by itself.
func (s *stage) dead() error {
	for _, c := range s.order {
		select {
		case _, open := <-c.lines:
			if !open {
				return fmt.Errorf("%s died: %s", c.name, &c.errs)
			}
		default:
		}
	}
	return nil
}

// growsWithin is how long the server's memory may take to grow.
const growsWithin = 40 * time.Second

// warmUp lets the service run until the symptom shows.
func (s *stage) warmUp(ctx context.Context) error {
	d, err := time.ParseDuration(s.v.WarmUp)
	if err != nil {
		d = time.Second
	}
	if err := wait(ctx, s.clients(), d); err != nil {
		return err
	}
	for started := time.Now(); resident(s.pid()) < s.v.GrowsTo; {
		if time.Since(started) > growsWithin {
			return skip(fmt.Sprintf("its server's memory must grow to %d MiB, and after %.0f s it is %d MiB", s.v.GrowsTo>>20, growsWithin.Seconds(), resident(s.pid())>>20))
		}
		if err := wait(ctx, s.clients(), 200*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// watch lets the service run for d, and gives its figures for that time.
func (s *stage) watch(ctx context.Context, d time.Duration) (*seen, error) {
	if _, err := s.clients().mark(ctx, false); err != nil {
		return nil, err
	}
	before, started := usedBy(s.pid()), time.Now()
	if err := wait(ctx, s.clients(), d); err != nil {
		return nil, err
	}
	after, wall := usedBy(s.pid()), time.Since(started)
	figures, err := s.clients().mark(ctx, false)
	if err != nil {
		return nil, err
	}
	return &seen{figures: figures, used: after.since(before), wall: wall, resident: resident(s.pid())}, s.dead()
}

// seen is what the lab sees of a variant over a stretch of time.
type seen struct {
	figures []witness.Figures
	used    used
	wall    time.Duration

	resident int64   // bytes of the server's memory at the end
	others   float64 // share of the CPUs that processes outside the lab used

	report *report // whystall's, afterwards; nil where it was not asked
}

func (x *seen) print(w io.Writer, title string) {
	fmt.Fprintf(w, "\n%s\n", title)
	for _, f := range x.figures {
		fmt.Fprintf(w, "  %-28s %s\n", f.Name+":", f)
	}
}
