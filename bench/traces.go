package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
)

// generator holds the generator's sources. An older Go builds them in a module without this
// module's go line.
//
//go:embed tracegen/*.go
var generator embed.FS

// oldGo writes the last format before 1.22. It is fetched like any Go toolchain.
const oldGo = "go1.21.13"

// fallback is read where no old toolchain can be fetched. It is small, so the start of a process
// weighs more.
const fallback = "../exectrace/testdata/srv-go1.21.13.trace"

// traceFile is a trace to read.
type traceFile struct {
	name  string
	title string
	size  int64
}

// makeTraces makes a trace of each size, and one of the format before 1.22. It prints what it makes
// to out.
func makeTraces(ctx context.Context, dir string, mbs []int, out io.Writer) ([]traceFile, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var traces []traceFile
	for _, mb := range mbs {
		name := filepath.Join(dir, fmt.Sprintf("server-%dmb.trace", mb))
		if err := generate(ctx, name, mb, ".", "", out); err != nil {
			return nil, err
		}
		t, err := traceOf(name, fmt.Sprintf("%d MB", mb))
		if err != nil {
			return nil, err
		}
		traces = append(traces, t)
	}
	name := filepath.Join(dir, fmt.Sprintf("server-%s.trace", oldGo))
	title := "format of Go 1.21"
	if err := generateOld(ctx, name, mbs[0], out); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		fmt.Fprintf(out, "%s writes no trace here (%v); reading the small %s instead\n", oldGo, err, fallback)
		name = fallback
	}
	t, err := traceOf(name, title)
	return append(traces, t), err
}

func traceOf(name, title string) (traceFile, error) {
	st, err := os.Stat(name)
	if err != nil {
		return traceFile{}, err
	}
	return traceFile{name: name, title: title, size: st.Size()}, nil
}

// generate makes a trace of mb MB at name, unless there is one. dir holds the module of the
// generator, and toolchain the Go version that builds it; "" is the present one.
func generate(ctx context.Context, name string, mb int, dir, toolchain string, out io.Writer) error {
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./tracegen", "-mb", strconv.Itoa(mb), "-o", abs)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	if toolchain != "" {
		cmd.Env = append(cmd.Env, "GOTOOLCHAIN="+toolchain, "GOFLAGS=")
	}
	b, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("generate %s: %w\n%s", name, err, b)
	}
	out.Write(b)
	return nil
}

// generateOld makes a trace with oldGo, from a copy of the generator in a module of its own.
func generateOld(ctx context.Context, name string, mb int, out io.Writer) error {
	dir, err := os.MkdirTemp("", "whystall-tracegen-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := generator.ReadDir("tracegen")
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "tracegen"), 0o755); err != nil {
		return err
	}
	for _, f := range files {
		src, err := generator.ReadFile(path.Join("tracegen", f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "tracegen", f.Name()), src, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module old\n\ngo 1.16\n"), 0o644); err != nil {
		return err
	}
	return generate(ctx, name, mb, dir, oldGo, out)
}
