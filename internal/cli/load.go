package cli

import (
	"fmt"
	"regexp"
	"time"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/ledger"
	"github.com/whystall/whystall/internal/report"
)

// loaded is what the files held.
type loaded struct {
	trace    *exectrace.Trace
	set      *evidence.Set
	inputs   []report.Input
	target   report.Target
	gaps     []report.Gap
	recorder []string
}

func (in *loaded) close() {
	if in.trace != nil {
		in.trace.Close()
	}
}

// nothing tells that no input could be read.
func (in *loaded) nothing() bool {
	for _, i := range in.inputs {
		if i.Error == "" {
			return false
		}
	}
	return true
}

// load reads the files. One that fails does not lose the others: its error stands with it.
func (con *console) load(files []string) *loaded {
	in := &loaded{set: &evidence.Set{}}
	for _, name := range files {
		i := report.Input{Name: name}
		if err := in.add(con, name, &i); err != nil {
			i.Error = err.Error()
		}
		in.inputs = append(in.inputs, i)
	}
	return in
}

func (in *loaded) add(con *console, name string, i *report.Input) error {
	if in.trace != nil {
		return fmt.Errorf("read %s: a second execution trace: one is explained at a time", name)
	}
	t, err := exectrace.Open(name, exectrace.Options{})
	if err != nil {
		return err
	}
	in.trace, i.Kind = t, "execution trace"
	return nil
}

// account makes the ledgers of the trace.
func (con *console) account(in *loaded, entry *regexp.Regexp, slowOver time.Duration) (*ledger.Result, error) {
	return nil, fmt.Errorf("explain: the ledger is not part of this build yet")
}
