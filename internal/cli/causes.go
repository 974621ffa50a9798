package cli

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/detect"
	"github.com/whystall/whystall/internal/report"
)

var _ = register(&command{
	Name: "causes", Help: "Read the manual of causes.", Order: 40,
	New: func() any { return &causesCmd{} },
})

type causesCmd struct {
	Name string `arg:"" optional:"" help:"The cause or chapter to read about. Without it, all are listed."`
}

func (*causesCmd) Help() string {
	return `Examples:
  whystall causes
  whystall causes sched-latency
  whystall causes how-sure        what proven, supported and possible mean`
}

func (c *causesCmd) Run(con *console) error {
	if c.Name == "" {
		for _, m := range detect.Causes() {
			fmt.Fprintf(con.stdout, "%-22s %s\n", m.Name, m.Title)
		}
		fmt.Fprintln(con.stdout)
		for _, m := range detect.Chapters() {
			fmt.Fprintf(con.stdout, "%-22s %s\n", m.Name, m.Title)
		}
		return nil
	}
	for _, m := range detect.Chapters() {
		if m.Name == c.Name {
			printPage(con, m.Name, m.Title, m.Doc)
			return nil
		}
	}
	m, ok := detect.Manual(c.Name)
	if !ok {
		return usagef("no cause is named %s%s; whystall causes lists them", c.Name, near(c.Name))
	}
	printPage(con, m.Name, m.Title, m.Doc)
	return nil
}

func printPage(con *console, name, title, doc string) {
	fmt.Fprintf(con.stdout, "%s: %s\n\n%s\n", name, title, strings.TrimSpace(doc))
}

// pages lists the names that have a page: the causes', then the chapters'.
func pages() (names []string) {
	for _, m := range detect.Causes() {
		names = append(names, m.Name)
	}
	for _, m := range detect.Chapters() {
		names = append(names, m.Name)
	}
	return names
}

// near suggests the pages that share a word with typed.
func near(typed string) string {
	var names []string
	for _, name := range pages() {
		for _, word := range strings.FieldsFunc(strings.ToLower(typed),
			func(r rune) bool { return r < 'a' || r > 'z' }) {
			if len(word) > 1 && strings.Contains(name, word) {
				names = append(names, name)
				break
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (near: " + report.Printable(strings.Join(names, ", ")) + ")"
}
