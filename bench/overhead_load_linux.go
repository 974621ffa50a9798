package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// The goals for the recorder's own cost, and for a case of 20 s at 30 000 switches/s.
const (
	ownCPUGoal  = 0.03 // of one CPU
	ownRSSGoal  = 64 << 20
	caseGoal    = 50 << 20
	explainGoal = 2 * time.Second
)

// measureSwitches records a program that does nothing but switch threads, so many times a second.
func measureSwitches(ctx context.Context, out io.Writer, whystall, tmp string, rate int) error {
	h, err := startHelper(ctx, "switch", strconv.Itoa(rate))
	if err != nil {
		return err
	}
	defer h.end()
	fmt.Fprintln(out)
	slow := rate <= 30_000
	kinds := [][]string{{"without stacks", "--no-stacks"}}
	if slow {
		kinds = append(kinds, []string{"with stacks"})
	}
	for _, k := range kinds {
		file := filepath.Join(tmp, "switches.case")
		seconds := "10"
		if slow {
			seconds = "20"
		}
		args := append([]string{"record", "--pid", strconv.Itoa(h.pid), "--no-probe", "--for",
			seconds + "s", "--budget", "100", "--force", "-o", file}, k[1:]...)
		cmd := exec.CommandContext(ctx, whystall, args...)
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Start(); err != nil {
			return err
		}
		// Measured from the moment at which it has settled to well before its end.
		if err := pause(ctx, 3*time.Second); err != nil {
			return err
		}
		cpu, n, at := processCPU(cmd.Process.Pid), contextSwitches(), time.Now()
		if err := pause(ctx, 5*time.Second); err != nil {
			return err
		}
		took := time.Since(at)
		used, switched := processCPU(cmd.Process.Pid)-cpu, contextSwitches()-n
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("record switches: %w\n%s", err, &output)
		}
		c := costOf(cmd.ProcessState, 0)
		cost, err := kernelCost(file)
		if err != nil {
			return err
		}
		perSecond := float64(switched) / took.Seconds()
		own := float64(used) / float64(took)
		fmt.Fprintf(out, "%.0f switches/s, %s: the recorder took %.1f %% of a CPU and %s MB at most; its programs in the kernel %.2f us a switch; %d of %d events lost",
			perSecond, k[0], 100*own, mb(c.rss),
			float64(cost.KernelNS)/float64(max(1, cost.Records+cost.Lost)*1000), cost.Lost, cost.Records+cost.Lost)
		if slow {
			fmt.Fprintf(out, " (goals %.0f %%: %s, %d MB: %s)\n", 100*ownCPUGoal,
				met(own <= ownCPUGoal), ownRSSGoal>>20, met(c.rss < ownRSSGoal))
		} else {
			fmt.Fprintf(out, " (goal none: %s)\n", met(cost.Lost == 0))
		}
		if cost.Lowered != "" {
			fmt.Fprintf(out, "  detail lowered: %s\n", cost.Lowered)
		}
		if !slow {
			continue
		}
		st, err := os.Stat(file)
		if err != nil {
			return err
		}
		explain := exec.CommandContext(ctx, whystall, "explain", file)
		start := time.Now()
		if err := explain.Run(); err != nil && explain.ProcessState.ExitCode() != 1 {
			return fmt.Errorf("explain switches: %w", err)
		}
		e := costOf(explain.ProcessState, time.Since(start))
		fmt.Fprintf(out, "  its case of %s s: %s MB (goal %d: %s), explained in %.2f s, %.2f s of CPU, %s MB (goal %s: %s)\n",
			seconds, mb(st.Size()), caseGoal>>20, met(st.Size() < caseGoal), e.wall.Seconds(),
			e.cpu.Seconds(), mb(e.rss), explainGoal, met(e.wall < explainGoal))
	}
	return nil
}

// caseCost is what a case's manifest says about the kernel's recorder.
type caseCost struct {
	KernelNS int64  `json:"kernel_ns"`
	Records  int64  `json:"records"`
	Lost     int64  `json:"lost"`
	Lowered  string `json:"lowered"`
}

// kernelCost reads it from a case.
func kernelCost(file string) (c caseCost, err error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return c, err
	}
	defer z.Close()
	f, err := z.Open("manifest.json")
	if err != nil {
		return c, err
	}
	defer f.Close()
	var m struct {
		Collectors []struct {
			Name, State string
			Why         string
			Cost        *caseCost
		}
	}
	if err := json.NewDecoder(f).Decode(&m); err != nil {
		return c, err
	}
	why := "no collector"
	for _, k := range m.Collectors {
		if k.Name == "kernel" && k.State == "ready" && k.Cost != nil {
			return *k.Cost, nil
		} else if k.Name == "kernel" {
			why = k.Why
		}
	}
	return c, errors.New("the kernel was not recorded: " + strings.TrimSpace(why))
}

// processCPU is the CPU time of a process, ns; -1 when it is gone.
func processCPU(pid int) int64 {
	clock := ^uintptr(pid)<<3 | 2 // MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock,
		uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return -1
	}
	return ts.Nano()
}
