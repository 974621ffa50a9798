package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// builder builds whystall and the programs of cases, each once.
type builder struct {
	dir      string // for what it builds
	progress io.Writer

	mu   sync.Mutex
	done map[string]*built // by program

	prebuilt string // folder of programs which are built already: in a virtual machine, which has no Go
	static   bool   // link statically, for such a machine
}

// built is a program's binary, or the reason why there is none.
type built struct {
	once sync.Once
	file string
	err  error
}

func newBuilder(dir string, progress io.Writer, prebuilt string) *builder {
	return &builder{dir: dir, progress: progress, done: map[string]*built{}, prebuilt: prebuilt}
}

// all builds whystall, and then the programs of the variants side by side, as nothing may be built
// while something is measured. A program that does not build is reported when its variant runs.
func (b *builder) all(ctx context.Context, variants []chosen) (whystall string, err error) {
	type program struct {
		c    *Case
		name string
	}
	programs := map[program]bool{}
	for _, x := range variants {
		for _, p := range x.v.Start {
			programs[program{x.c, p.Program}] = true
		}
	}
	if whystall, err = b.whystall(ctx); err != nil {
		return "", err
	}
	var builds sync.WaitGroup
	places := make(chan struct{}, runtime.NumCPU())
	for p := range programs {
		builds.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			b.program(ctx, p.c, p.name)
		})
	}
	builds.Wait()
	return whystall, ctx.Err()
}

func prebuiltName(program string) string {
	return strings.NewReplacer("/", "_", ":", "_").Replace(program)
}

// whystall builds the project's own binary.
func (b *builder) whystall(ctx context.Context) (string, error) {
	if _, err := os.Stat("../cmd/whystall"); err != nil && b.prebuilt == "" {
		return "", fmt.Errorf("find whystall's source: %w; start the lab as: go run -C lab . list", err)
	}
	return b.once("whystall", func(out string) error { return goBuild(ctx, "go", "..", out, "./cmd/whystall") })
}

// program builds a process' program:
//
//	""                  the case's folder, a Go package
//	"clients"           the package which the cases share
//	":server"           the module in the case's folder server
//	"go1.13.15:server"  the same with that toolchain, fetched on first use
//	"server.cc"         a C++20 file in the case's folder
func (b *builder) program(ctx context.Context, c *Case, program string) (string, error) {
	name := c.Name + "/" + program
	if program == "clients" {
		name = program
	}
	return b.once(name, func(out string) error {
		version, dir, old := strings.Cut(program, ":")
		switch {
		case program == "":
			return goBuild(ctx, "go", ".", out, "./"+c.Name)
		case program == "clients":
			return goBuild(ctx, "go", ".", out, "./clients")
		case old && version == "":
			return goBuild(ctx, "go", filepath.Join(c.Name, dir), out, ".")
		case old:
			tool, err := toolchain(ctx, version, b.progress)
			if err != nil {
				return err
			}
			return goBuild(ctx, tool, filepath.Join(c.Name, dir), out, ".")
		case strings.HasSuffix(program, ".cc"):
			link := "-pthread"
			if b.static {
				link = "-static"
			}
			cmd := exec.CommandContext(ctx, "g++", link, "-std=c++20", "-O2", "-g",
				"-fno-omit-frame-pointer", "-pthread", "-o", out, filepath.Join(c.Name, program))
			text, err := cmd.CombinedOutput()
			if errors.Is(err, exec.ErrNotFound) {
				return skip("g++ is not installed: apt-get install g++")
			}
			if err != nil {
				return fmt.Errorf("build %s/%s: %w\n%s", c.Name, program, err, text)
			}
			return nil
		}
		return fmt.Errorf("read case %s: program %q is not known", c.Name, program)
	})
}

func (b *builder) once(name string, make func(out string) error) (string, error) {
	b.mu.Lock()
	got := b.done[name]
	if got == nil {
		got = &built{}
		b.done[name] = got
	}
	dir := filepath.Join(b.dir, fmt.Sprint(len(b.done)))
	b.mu.Unlock()
	got.once.Do(func() { got.file, got.err = b.build(name, dir, make) })
	return got.file, got.err
}

func (b *builder) build(name, dir string, make func(out string) error) (string, error) {
	if b.prebuilt != "" {
		file := filepath.Join(b.prebuilt, prebuiltName(name))
		if _, err := os.Stat(file); err != nil {
			return "", skip("its program is not in this virtual machine")
		}
		return file, nil
	}
	base := strings.NewReplacer("/", "-", ":", "-", ".cc", "").Replace(strings.TrimSuffix(name, "/"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	fmt.Fprintf(b.progress, "building %s ...\n", base)
	out := filepath.Join(dir, base)
	return out, make(out)
}

func goBuild(ctx context.Context, tool, dir, out, pkg string) error {
	cmd := exec.CommandContext(ctx, tool, "build", "-trimpath", "-o", out, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if tool != "go" {
		// An old toolchain knows neither go.work nor the flags of a newer one.
		cmd.Env = append(cmd.Env, "GOENV=off", "GOFLAGS=", "GOTOOLCHAIN=local", "GOROOT="+
			filepath.Dir(filepath.Dir(tool)), "GO111MODULE=on", "GOEXPERIMENT=")
	}
	if b, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("build %s in %s: %w\n%s", pkg, dir, err, b)
	}
	return nil
}

// toolchain gives the go command of a released version, such as go1.13.15. It is fetched through
// the module proxy.
func toolchain(ctx context.Context, version string, progress io.Writer) (string, error) {
	fmt.Fprintf(progress, "fetching the toolchain of %s unless it is there already (100 MB, once) ...\n", version)
	module := fmt.Sprintf("golang.org/toolchain@v0.0.1-%s.%s-%s", version, runtime.GOOS, runtime.GOARCH)
	dir, err := moduleDir(ctx, module)
	if err != nil {
		return "", err
	}
	// The module cache does not keep files executable.
	for _, part := range []string{"bin", "pkg/tool"} {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				info, err := d.Info()
				if err == nil && info.Mode()&0o100 == 0 {
					return os.Chmod(path, 0o755)
				}
			}
			return err
		})
		if err != nil {
			return "", fmt.Errorf("prepare the toolchain of %s: %w", version, err)
		}
	}
	return filepath.Join(dir, "bin", "go"), nil
}

// moduleDir fetches a module through the module proxy, and gives its folder.
func moduleDir(ctx context.Context, module string) (string, error) {
	// Outside any module, so that no go.mod is involved.
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = os.TempDir()
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &got); jsonErr != nil || got.Dir == "" {
		return "", skip(fmt.Sprintf("%s cannot be fetched: %s", module,
			strings.TrimSpace(got.Error+fmt.Sprint(" ", errOr(err, jsonErr)))))
	}
	return got.Dir, nil
}

func errOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// skip is the reason why a variant cannot run here.
type skip string

func (s skip) Error() string { return "skipped: " + string(s) }
