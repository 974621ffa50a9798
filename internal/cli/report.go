package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/whystall/whystall/internal/evidence"
)

var _ = register(&command{
	Name: "report", Help: "Write what explain says, and more, as one page for a browser.", Order: 15,
	New: func() any { return &reportCmd{} },
})

type reportCmd struct {
	Files  []string `arg:"" name:"file" help:"Cases, traces and other evidence, as for explain."`
	Output string   `short:"o" placeholder:"FILE" help:"Where to write the page: one file, which opens from disk without a network."`
	exportFlags
	selectFlags
}

func (*reportCmd) Help() string {
	return `Examples:
  whystall report slow.case -o slow.html
  whystall report trace.out mutex.pb.gz -o slow.html --slow-over 200ms
  whystall report slow.case --folded slow.folded     where slow requests waited, for a flame graph
  whystall report slow.case --otlp slow.json         their traces, for a tracing backend

The files name functions, paths and requests of the service: they are as private as the case.

Exit status: 0 nothing found, 1 a cause was found, 2 wrong usage, 3 could not look.`
}

func (c *reportCmd) Run(con *console) error {
	if c.Output == "" && !c.any() {
		return usagef("report: want a file to write: --output FILE for the page, or --perfetto, --pprof, --folded or --otlp FILE")
	}
	if err := notInput(c.Output, c.Files); err != nil {
		return err
	}
	if err := c.exportFlags.check(c.Output, c.Files); err != nil {
		return err
	}
	r, err := con.examine(c.Files, c.selectFlags, "", true)
	if err != nil {
		return err
	}
	if c.Output != "" {
		if err := writeWhole(c.Output, r.HTML); err != nil {
			return fmt.Errorf("write report %s: %w", c.Output, evidence.FileCause(err))
		}
		con.say("%s written", c.Output)
	}
	if err := con.export(r, &c.exportFlags); err != nil {
		return err
	}
	return exit(statusOf(r))
}

// writeWhole writes a file that is there as a whole or not at all: a full disk leaves no half of
// it, and what the file held before stays. What is no regular file, such as a pipe, is written as
// it comes.
func writeWhole(name string, write func(io.Writer) error) (err error) {
	switch at, lerr := filepath.EvalSymlinks(name); {
	case lerr == nil:
		name = at // the link stays a link
	case !errors.Is(lerr, fs.ErrNotExist):
		return lerr
	}
	if st, serr := os.Stat(name); serr == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		err = write(f)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
