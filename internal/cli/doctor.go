package cli

import (
	"context"
	"fmt"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/whystall/whystall/internal/collect"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/report"
)

var _ = register(&command{
	Name: "doctor", Help: "Say what this machine and user permit whystall to see.", Order: 35,
	New: func() any { return &doctorCmd{} },
})

type doctorCmd struct {
	Target  string `arg:"" optional:"" name:"target" help:"Say it for this process too: a pid, a program's name, :PORT, NAME.service or unit:NAME, a container's id or container:NAME."`
	Pid     int    `type:"pid" placeholder:"N" help:"Say it for this process too."`
	NoProbe bool   `help:"Do not look for the process' pprof pages."`
	Format  string `enum:"text,json" default:"text" placeholder:"FORMAT" help:"text or json."`
}

func (*doctorCmd) Help() string {
	return `doctor records nothing and changes nothing. Of a process it fetches the index of its pprof pages.

Examples:
  whystall doctor
  whystall doctor :8080
  sudo whystall doctor 4121 --format json | jq '.abilities[] | select(.ready | not)'

Exit status: 0 all can be seen, 1 something cannot be seen or only in part, 2 wrong usage,
3 the process cannot be recorded.`
}

// diagnosis is the JSON of doctor.
type diagnosis struct {
	Schema    int               `json:"schema"`
	Host      evidence.Host     `json:"host"`
	Target    *evidence.Target  `json:"target,omitempty"`
	Abilities []collect.Ability `json:"abilities"`
}

func (c *doctorCmd) Run(con *console) error {
	if err := con.aim(c.Target, &c.Pid, nil); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	t, as, err := collect.Doctor(ctx, c.Pid, !c.NoProbe)
	if err != nil {
		return err
	}
	d := diagnosis{Schema: 1, Host: evidence.Host{OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPUs: runtime.NumCPU(), Kernel: collect.Release()}, Abilities: as}
	if c.Pid != 0 {
		d.Target = &t
	}
	if c.Format == "json" {
		err = report.PrintJSON(con.stdout, d)
	} else {
		err = con.printDoctor(&d)
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	for _, a := range as {
		if !a.Ready || a.Part {
			return exit(statusFound)
		}
	}
	return nil
}

func (con *console) printDoctor(d *diagnosis) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %s, %d CPUs\n", d.Host.OS, d.Host.Kernel, d.Host.Arch, d.Host.CPUs)
	if t := d.Target; t != nil {
		what := t.GoVersion
		if what == "" {
			if what = t.Runtime; what == "" {
				what = "native"
			}
		}
		if t.Container {
			what += ", in namespaces of its own"
		}
		fmt.Fprintf(&b, "pid %d, %s, %s: %s\n", t.PID, t.Comm, t.Exe, what)
	}
	wide := report.Columns
	if n := columns(con.stdout); n > 0 {
		wide = min(wide, max(n, 72))
	}
	tier := ""
	for _, a := range d.Abilities {
		if a.Tier != tier {
			tier = a.Tier
			fmt.Fprintf(&b, "\n%s\n", tierTitle(tier))
		}
		state := "yes"
		switch {
		case !a.Ready:
			state = "no"
		case a.Part:
			state = "part"
		}
		const hang = 31
		for i, l := range report.Wrap(a.Say, wide-hang) {
			if i == 0 {
				fmt.Fprintf(&b, "  %-4s  %-22s %s\n", state, a.Name, l)
			} else {
				fmt.Fprintf(&b, "%*s%s\n", hang, "", l)
			}
		}
		if a.More != "" {
			fmt.Fprintf(&b, "%*smore: %s\n", hang, "", a.More)
		}
	}
	// Names come from the process. What a terminal would act upon is made visible, line by line.
	for l := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(con.stdout, report.Printable(strings.TrimRight(l, " \n"))); err != nil {
			return err
		}
	}
	return nil
}

func tierTitle(tier string) string {
	return map[string]string{
		"runtime":    "THE RUNTIME: what goroutines wait for",
		"system":     "/PROC, /SYS, CGROUPS: quotas, limits, pressure, memory",
		"perf_event": "PERF_EVENT: when its threads run, without eBPF",
		"eBPF":       "EBPF: who ran instead, who woke whom, throttling, reclaim, locks",
	}[tier]
}
