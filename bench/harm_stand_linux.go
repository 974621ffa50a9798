package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// stand is a target at work with its clients.
type stand struct {
	t        stressed
	o        harmOptions
	whystall string
	dir      string
	target   *helper
	clients  *helper
	recorder int           // its PID while it is at work; 0: none is
	lasts    time.Duration // of the last whole recording, from its start to its end
	note     string
	rate     float64
}

// measure sums up a window from now on. A tenth into it, it calls during, if there is one.
func (s *stand) measure(ctx context.Context, during func() error) (f felt, err error) {
	from := monotonicNS()
	cpu, idle, known := processCPU(s.target.pid), readStat(), s.known()
	if during != nil {
		if err := pause(ctx, s.o.window/10); err != nil {
			return f, err
		}
		if err := during(); err != nil {
			return f, err
		}
	}
	if err := pause(ctx, s.o.window-time.Duration(monotonicNS()-from)); err != nil {
		return f, err
	}
	used, stat, to := processCPU(s.target.pid)-cpu, readStat(), monotonicNS()
	known = s.known() - known
	if gone(s.target.pid) {
		return f, errors.New("the target has ended")
	}
	// What was due at the end of the window is to be answered.
	if err := pause(ctx, 100*time.Millisecond); err != nil {
		return f, err
	}
	if f, err = s.felt(from, to); err != nil {
		return f, err
	}
	f.CPU = float64(used) / 1e9
	wall := float64(to - from)
	f.Busy = 1 - float64(stat.idle-idle.idle)/float64(max(1, stat.all-idle.all))
	f.Foreign = f.Busy*float64(runtime.NumCPU()) - float64(known)/wall
	if q := s.t.limits.cpus; q > 0 {
		f.Busy = float64(used) / (q * wall)
	}
	f.Switches = float64(stat.switches-idle.switches) / (wall / 1e9)
	return f, nil
}

// known is the CPU time of all processes that belong here, ns.
func (s *stand) known() (sum int64) {
	for _, pid := range []int{s.target.pid, s.clients.pid, s.recorder} {
		if pid > 0 {
			sum += max(0, processCPU(pid))
		}
	}
	return sum + ownCPU()
}

// felt asks the clients what they felt.
func (s *stand) felt(from, to int64) (f felt, err error) {
	return s.askClients(fmt.Sprintf("window %d %d", from, to))
}

func (s *stand) askClients(line string) (f felt, err error) {
	if _, err := fmt.Fprintln(s.clients.in, line); err != nil {
		return f, err
	}
	if !s.clients.out.Scan() {
		return f, errors.New("the clients have ended")
	}
	return f, json.Unmarshal(s.clients.out.Bytes(), &f)
}

func (s *stand) setRate(r float64) error {
	s.rate = r
	_, err := s.askClients(fmt.Sprintf("rate %.3f", r))
	return err
}

// drain asks at half the rate until no more requests wait than a server at work has, so that one
// window's queue is not in the next.
func (s *stand) drain(ctx context.Context) error {
	const atWork = 16
	f, err := s.askClients("waiting")
	if err != nil {
		return err
	}
	if rate := s.rate; f.Due > atWork {
		if err := s.setRate(rate / 2); err != nil {
			return err
		}
		for t := time.Now(); err == nil && f.Due > atWork/2 && time.Since(t) < 10*time.Second; {
			if err = pause(ctx, 50*time.Millisecond); err == nil {
				f, err = s.askClients("waiting")
			}
		}
		if err := errors.Join(err, s.setRate(rate)); err != nil {
			return err
		}
	}
	return pause(ctx, 300*time.Millisecond)
}

// slice is one of the parts of a recording's time that the progress shows.
const slice = 500 * time.Millisecond

// overTime is the p99 of each slice of a time, for people who look for what harms.
func (s *stand) overTime(from, to int64) string {
	var l []string
	for at := from; at < to; at += int64(slice) {
		f, err := s.felt(at, min(at+int64(slice), to))
		if err != nil {
			break
		}
		l = append(l, fmt.Sprintf("%.0f", f.P99))
	}
	return strings.Join(l, " ")
}

// findRate sets the rate at which the CPUs, or the quota, are 80 to 95 % busy.
func (s *stand) findRate(ctx context.Context, progress io.Writer) error {
	look := *s
	look.o.window = 700 * time.Millisecond
	at := search{rate: max(s.rate, s.o.rate)}
	for range searchSteps {
		if err := s.setRate(at.rate); err != nil {
			return err
		}
		if err := pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		f, err := look.measure(ctx, nil)
		if err != nil {
			return err
		}
		if f.Foreign > 2*foreignLimit {
			fmt.Fprintf(progress, "%s: others take %.2f CPUs: waiting\n", s.t.key, f.Foreign)
			if err := look.awaitCalm(ctx); err != nil {
				return err
			}
			continue
		}
		answered := f.PerS / at.rate
		fmt.Fprintf(progress, "%s: at %.0f/s %.0f %% busy, %.0f %% answered, p99 %.1f ms\n",
			s.t.key, at.rate, 100*f.Busy, 100*answered, f.P99)
		if at.step(f.Busy, answered) {
			s.note = at.note
			if err := s.setRate(at.rate); err != nil {
				return err
			}
			return s.drain(ctx)
		}
		if answered < keptUp {
			if err := errors.Join(s.setRate(at.rate), s.drain(ctx)); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("no rate was found at which it is %.0f to %.0f %% busy, or others are", 100*busyLow, 100*busyHigh)
}

// calmPatience is how long a search waits for other processes to end, each time it meets them.
const calmPatience = 2 * time.Minute

// awaitCalm asks almost nothing until others take no CPU time to speak of, or its patience is over:
// whoever else is at work is not to be slowed down for nothing.
func (s *stand) awaitCalm(ctx context.Context) error {
	if err := s.setRate(1); err != nil {
		return err
	}
	for t := time.Now(); time.Since(t) < calmPatience; {
		f, err := s.measure(ctx, nil)
		if err != nil || f.Foreign <= foreignLimit {
			return err
		}
	}
	return fmt.Errorf("others were at work for %s", calmPatience)
}

// stat is /proc/stat: ticks of all CPUs, and switches.
type stat struct{ idle, stolen, all, switches int64 }

// stolenSince is how many CPUs the hypervisor has kept to itself since then.
func (s stat) stolenSince() float64 {
	now := readStat()
	return float64(now.stolen-s.stolen) / float64(max(1, now.all-s.all)) * float64(runtime.NumCPU())
}

func readStat() (s stat) {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	for i, v := range strings.Fields(line) {
		n, _ := strconv.ParseInt(v, 10, 64)
		if i == 4 || i == 5 { // idle, iowait
			s.idle += n
		}
		if i == 8 {
			s.stolen += n
		}
		if i >= 1 && i <= 8 { // a guest's time is in user's
			s.all += n
		}
	}
	s.switches = contextSwitches()
	return s
}
