package twin

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// setting reads a line that holds for the whole trace. Done reports whether it was one.
func (p *parser) setting(f []string, body string) (done bool, err error) {
	arg := ""
	if len(f) > 1 {
		arg = f[1]
	}
	switch f[0] {
	case "unit":
		u, err := p.time(arg)
		if err != nil || u <= 0 {
			return true, fmt.Errorf("want unit and a time above 0, got %q", body)
		}
		p.unit = float64(u)
	case "version":
		v, err := strconv.Atoi(arg)
		if err != nil {
			return true, fmt.Errorf("want version and a number, got %q", body)
		}
		p.version = exectrace.Version(v)
	case "procs":
		v, err := strconv.Atoi(arg)
		if err != nil || v < 1 || v > 1<<16 {
			return true, fmt.Errorf("want procs and a number, got %q", body)
		}
		p.procs = v
	case "wall":
		v, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return true, fmt.Errorf("want wall and nanoseconds, got %q", body)
		}
		p.clock.Wall, p.clock.WallNS = true, v
	case "end":
		t, err := p.time(arg)
		if err != nil {
			return true, err
		}
		p.see(t)
	case "damaged":
		p.damaged = true
	default:
		return false, nil
	}
	return true, nil
}

// processLine reads what happens to the process and to no goroutine: "T gc", "T heap live N".
func (p *parser) processLine(n int, f []string, body string) error {
	it, err := p.times(n, f[0])
	if err != nil {
		return err
	}
	it.rank = rankProcess
	if len(f) < 2 {
		return fmt.Errorf("%q says nothing", body)
	}
	it.verb = f[1]
	switch it.verb {
	case "gc":
		p.addRange(it, rankRangeBegin, rankRangeEnd)
		return nil
	case "gap":
		if it.end < it.t || it.end == math.MaxInt64 {
			return fmt.Errorf("want gap with begin and end")
		}
		it.name = p.string(strings.Join(f[2:], " "))
		p.gaps = append(p.gaps, exectrace.Gap{Begin: exectrace.Time(it.t),
			End: exectrace.Time(it.end), Reason: p.String(it.name)})
	case "sync":
	case "procs", "start":
		v := -1
		if len(f) == 3 {
			v, _ = strconv.Atoi(f[2])
		}
		if v < 0 || v > 1<<16 || v == 0 && it.verb == "procs" {
			return fmt.Errorf("want %s and a number, got %q", it.verb, body)
		}
		it.arg[0] = uint64(v)
	case "heap":
		if len(f) != 4 || f[2] != "live" && f[2] != "goal" {
			return fmt.Errorf("want heap live N or heap goal N, got %q", body)
		}
		v, err := strconv.ParseUint(f[3], 10, 64)
		if err != nil {
			return fmt.Errorf("want a number of bytes, got %q", f[3])
		}
		it.verb, it.arg[0] = "heap "+f[2], v
	default:
		return fmt.Errorf("unknown %q", it.verb)
	}
	p.items = append(p.items, it)
	return nil
}

// open reads the line that opens a goroutine.
func (p *parser) open(n int, f []string) error {
	if len(f) < 2 || len(f) > 3 {
		return fmt.Errorf("want goroutine NAME [ENTRY], got %d words", len(f))
	}
	if p.named[f[1]] != nil {
		return fmt.Errorf("goroutine %s is there already", f[1])
	}
	if f[1] == "P" || f[1] == "nobody" {
		return fmt.Errorf("goroutine %s: the name is taken", f[1])
	}
	g := &goroutine{name: f[1], line: n}
	if len(f) == 3 {
		g.entry = f[2]
	}
	if id, err := strconv.ParseInt(f[1], 10, 64); err == nil {
		if id < 1 {
			return fmt.Errorf("want a goroutine number above 0, got %d", id)
		}
		g.id = exectrace.GoID(id)
	}
	p.named[f[1]] = g
	p.gs = append(p.gs, g)
	p.current = g
	return nil
}
