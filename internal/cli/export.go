package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/export"
	"github.com/whystall/whystall/internal/report"
)

// exportFlags name files for other tools.
type exportFlags struct {
	Perfetto string `placeholder:"FILE" help:"Write tracks of the slowest requests, goroutines, Ps, threads and CPUs for ui.perfetto.dev."`
	Pprof    string `placeholder:"FILE" help:"Write where slow requests waited, by cause and stack, as a pprof profile."`
	Folded   string `placeholder:"FILE" help:"Write the same as folded stacks, for a flame graph."`
	OTLP     string `name:"otlp" placeholder:"FILE" help:"Write findings and the slowest requests as traces in OTLP JSON."`
}

func (f *exportFlags) files() map[string]string {
	return map[string]string{"perfetto": f.Perfetto, "pprof": f.Pprof, "folded": f.Folded, "otlp": f.OTLP}
}

func (f *exportFlags) any() bool { return *f != exportFlags{} }

// check refuses a file that is to be read, and one file for two formats. output is the report's.
func (f *exportFlags) check(output string, inputs []string) error {
	taken := map[string]string{}
	if output != "" {
		taken[place(output)] = "--output"
	}
	for _, format := range export.Formats() {
		name := f.files()[format.Name]
		if name == "" {
			continue
		}
		flag := "--" + format.Name
		if err := isInput(flag, name, inputs); err != nil {
			return err
		}
		at := place(name)
		if other := taken[at]; other != "" {
			return usagef("%s %s: is the file of %s too", flag, shellWord(name), other)
		}
		taken[at] = flag
	}
	return nil
}

// place is the same for two names of one file, as far as that can be told before it is there.
func place(name string) string {
	if at, err := filepath.EvalSymlinks(name); err == nil {
		name = at
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
		name = filepath.Join(dir, filepath.Base(name))
	}
	at, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	return at
}

// export writes the files that were asked for. What cannot be written does not keep the others from
// being written.
func (con *console) export(r *report.Report, f *exportFlags) error {
	s := &export.Source{Ledger: r.Account(), Findings: r.Findings,
		Service: cmp.Or(r.Target.Name, r.Target.URL), Host: r.Target.Host, PID: r.Target.PID, Version: version()}
	var errs []error
	for _, format := range export.Formats() {
		name := f.files()[format.Name]
		if name == "" {
			continue
		}
		if s.Ledger == nil {
			errs = append(errs,
				fmt.Errorf("--%s: nothing to write: no execution trace and no kernel records were read", format.Name))
			continue
		}
		if err := writeWhole(name, func(w io.Writer) error { return format.Write(s, w) }); err != nil {
			errs = append(errs, fmt.Errorf("write --%s %s: %w", format.Name, name, evidence.FileCause(err)))
			continue
		}
		con.say("%s written", name)
		if format.Dated && !s.Ledger.Wall {
			con.say("%s: the recording does not say when it was, so its times count from 1970", name)
		}
	}
	return errors.Join(errs...)
}

// isInput keeps a flag's file from overwriting one that is to be read: evidence often exists only
// once.
func isInput(flag, name string, files []string) error {
	out, err := os.Stat(name)
	if name == "" || err != nil {
		return nil
	}
	for _, file := range files {
		if in, err := os.Stat(file); err == nil && os.SameFile(out, in) {
			return usagef("%s %s: is one of the files to explain", flag, shellWord(name))
		}
	}
	return nil
}
