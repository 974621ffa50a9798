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
	Name string `arg:"" optional:"" help:"The cause to read about; without it all are listed."`
}

func (*causesCmd) Help() string {
	return `Examples:
  whystall causes
  whystall causes sched-latency`
}

func (c *causesCmd) Run(con *console) error {
	if c.Name == "" {
		for _, m := range detect.Causes() {
			fmt.Fprintf(con.stdout, "%-22s %s\n", m.Name, m.Title)
		}
		return nil
	}
	m, ok := detect.Manual(c.Name)
	if !ok {
		return usagef("no cause is named %s%s; whystall causes lists them", c.Name, near(c.Name))
	}
	fmt.Fprintf(con.stdout, "%s: %s\n\n%s\n", m.Name, m.Title, strings.TrimSpace(m.Doc))
	return nil
}

// near suggests the causes that share a word with what was typed.
func near(typed string) string {
	var names []string
	for _, m := range detect.Causes() {
		for _, word := range strings.FieldsFunc(strings.ToLower(typed), func(r rune) bool { return r < 'a' || r > 'z' }) {
			if len(word) > 1 && strings.Contains(m.Name, word) {
				names = append(names, m.Name)
				break
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (near: " + report.Printable(strings.Join(names, ", ")) + ")"
}
