package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/whystall/whystall/internal/fleet"
	"github.com/whystall/whystall/internal/report"
)

// explainFleet takes files of a Prometheus, where the first is one: what fleet --record kept is
// explained, and of samples it says how an engine serves a copy. done: there is nothing else to do.
func (con *console) explainFleet(files []string, f explainFlags, output string) (done bool, err error) {
	for _, name := range files {
		if st, err := os.Stat(name); err == nil && st.IsDir() {
			if _, err := fleet.Recorded(name); err == nil {
				if len(files) > 1 {
					return true, usagef("%s: what whystall fleet --record kept is explained alone", shellWord(name))
				}
				c := fleetAsk{Replay: name, Format: f.Format, Output: output, Timeout: fleetReplayTimeout}
				if f.Format == "html" || f.Format == "" {
					c.Format = "text"
				}
				return true, c.Run(con)
			}
		}
		if d := fleet.DumpOf(name); d != nil {
			if err := con.printTo(output,
				func(w io.Writer, _ report.TextOptions) error { return printDump(w, d, f.Format) }); err != nil {
				return true, err
			}
			return true, exit(statusNoLook)
		}
	}
	return false, nil
}

// fleetReplayTimeout is as long as that of fleet; nothing is waited for.
const fleetReplayTimeout = 20e9

func printDump(w io.Writer, d *fleet.Dump, format string) error {
	if format == "json" {
		return report.JSONLine(w, d)
	}
	if _, err := fmt.Fprintf(w, "%s is %s, from %s to %s. An engine has to serve a copy of it:\n\n",
		report.Printable(d.Path), d.Kind, d.First.Format("2006-01-02 15:04:05"),
		d.Last.Format("2006-01-02 15:04:05 UTC")); err != nil {
		return err
	}
	for _, c := range d.Commands {
		if _, err := fmt.Fprintf(w, "  %s\n", report.Printable(c)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\nThen stop it, and remove whystall-copy, whystall-copy.yml, and whystall-unpacked or whystall-dump where it is.\n")
	return err
}
