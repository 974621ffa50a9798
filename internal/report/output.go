package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Output is one way to print a report. Its row stands in the file of its renderer. The command
// line, its help and completions, and the goldens read the table.
//
// An output decides nothing. It may be short, but beside what was found it prints what could not be
// looked at: NotChecked, Gaps, Lacks, Unseen and Errors of the [Report].
type Output struct {
	Name  string // of --format
	Order int    // among the names that people are shown; the first is the default
	Ext   string // of its goldens: testdata/SAMPLE.Ext
	Print func(*Report, io.Writer, TextOptions) error
}

var outputs []*Output

func registerOutput(o *Output) *Output {
	outputs = append(outputs, o)
	return o
}

// Outputs lists the table in its order.
func Outputs() []*Output {
	return slices.SortedFunc(slices.Values(outputs), func(a, b *Output) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name, b.Name))
	})
}

// Print prints the report in the output of this name. The options are for those that a person reads
// on a terminal.
func (r *Report) Print(w io.Writer, name string, o TextOptions) error {
	for _, out := range outputs {
		if out.Name == name {
			return out.Print(r, w, o)
		}
	}
	return fmt.Errorf("print report: no output %q", name)
}
