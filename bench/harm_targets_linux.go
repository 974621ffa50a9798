package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// stressedSources are the servers under stress.
//
//go:embed harmtarget/main.go harmtarget/native/server.cc
var stressedSources embed.FS

// stressed is a server under stress.
type stressed struct {
	key, title string
	toolchain  string // of Go; "": the present one
	native     bool   // C++, or a Go program posing as one: it has no pages
	args       []string
	env        []string
	limits     limits
	file       bool // it reads a file, which competes for its memory
}

// stressedTargets is the table of targets. The sizes were chosen so that a request takes some
// hundred microseconds to a few milliseconds of CPU, and garbage collection a tenth to a half.
func stressedTargets() []stressed {
	return []stressed{
		{key: "go-busy", title: "Go, garbage collection at work"},
		{key: "go-quota", title: "Go at a CPU quota of 1", limits: limits{cpus: 1}},
		{key: "go-memcg", title: "Go at its cgroup's memory limit",
			limits: limits{memory: 150 << 20}, file: true, args: []string{"-heap=32", "-alloc=128"}},
		{key: "go-memlimit", title: "Go at its GOMEMLIMIT", env: []string{"GOMEMLIMIT=85MiB"}},
		{key: "go-gogc5", title: "Go with GOGC=5", env: []string{"GOGC=5"}, args: []string{"-heap=8"}},
		{key: "go-10000", title: "Go with 10 000 goroutines", args: []string{"-goroutines=10000"}},
		{key: "go1.21", title: "Go 1.21, garbage collection at work", toolchain: oldGo},
		{key: "go1.19", title: "Go 1.19, garbage collection at work", toolchain: "go1.19.13"},
		{key: "native", title: "C++, a thread per connection", native: true},
	}
}

// standIn is the name of the Go program that stands in for the C++ server.
const standIn = "target-threads"

// buildTarget builds the target's program into dir. note says what was left out.
func buildTarget(ctx context.Context, t stressed, dir string) (program, note string, err error) {
	source := "harmtarget/main.go"
	if t.native {
		if _, err := exec.LookPath("g++"); err == nil {
			source = "harmtarget/native/server.cc"
		} else {
			note = "no g++ here: a Go program with a locked thread per connection stands in"
		}
	}
	b, err := stressedSources.ReadFile(source)
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(dir, "target-"+t.key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	name := filepath.Join(dir, filepath.Base(source))
	if err := os.WriteFile(name, b, 0o644); err != nil {
		return "", "", err
	}
	program = filepath.Join(dir, "target")
	if note != "" {
		program = filepath.Join(dir, standIn)
	}
	cmd := exec.CommandContext(ctx, "g++", "-O2", "-pthread", "-o", program, name)
	if strings.HasSuffix(source, ".go") {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"),
			[]byte("module target\n\ngo "+goLine(t.toolchain)+"\n"), 0o644); err != nil {
			return "", "", err
		}
		cmd = exec.CommandContext(ctx, "go", "build", "-o", program, "main.go")
		cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOWORK=off")
		if t.toolchain != "" {
			cmd.Env = append(cmd.Env, "GOTOOLCHAIN="+t.toolchain)
		}
	}
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build: %w: %s", err, lastLine(string(b)))
	}
	return program, note, nil
}

// goLine is the version in the target's go.mod. It decides about settings of the runtime, so the
// present Go gets its own.
func goLine(toolchain string) string {
	v := strings.TrimPrefix(runtime.Version(), "go")
	if parts := strings.Split(v, "."); toolchain == "" && len(parts) >= 2 {
		return parts[0] + "." + parts[1]
	}
	return "1.16"
}

// startTarget starts it within its limits. end ends it and removes its cgroup.
func startTarget(ctx context.Context, t stressed, program, dir string) (h *helper, end func() error, err error) {
	g := &cgroup{}
	if t.limits != (limits{}) {
		if g, err = makeCgroup(t.limits); err != nil {
			return nil, nil, err
		}
	}
	args := t.args
	if t.native && filepath.Base(program) == standIn {
		args = []string{"-threads"}
	}
	if t.file {
		args = append(args, "-file", filepath.Join(dir, "file"))
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(cleanEnv(), t.env...)
	cmd.SysProcAttr = ownSession()
	if h, err = startCommand(cmd); err != nil {
		return nil, nil, errors.Join(err, g.remove())
	}
	end = func() error { h.end(); return g.remove() }
	if err := g.add(h.pid); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	if _, err := h.in.Write([]byte("start\n")); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	if err := h.hear(); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return h, end, nil
}

// ownSession is for a process that is alone in its session, as a service is that an init system
// starts, and a tool in a terminal of its own. The scheduler shares the CPUs out among sessions
// first (sched(7), autogroup).
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// cleanEnv is our environment without what steers Go's runtime.
func cleanEnv() []string {
	var l []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG":
		default:
			l = append(l, v)
		}
	}
	return l
}
