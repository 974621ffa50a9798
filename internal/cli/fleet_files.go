package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/whystall/whystall/internal/fleet"
	"github.com/whystall/whystall/internal/report"
)

type fleetRules struct {
	Output       string   `short:"o" required:"" placeholder:"DIR" help:"The folder for the files."`
	ClusterLabel []string `placeholder:"LABEL" help:"Labels that tell clusters apart. Default: cluster."`
	Standalone   bool     `help:"Containers have no pods, as where cAdvisor runs by itself: labels id and name."`
}

func (*fleetRules) Help() string {
	return `Examples:
  whystall fleet rules -o rules
  promtool check rules rules/whystall.rules.yml
  promtool test rules rules/whystall.test.yml`
}

func (c *fleetRules) Run(con *console) error {
	if err := labelNames(c.ClusterLabel); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Output, 0o755); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	for name, data := range fleet.RuleFiles(fleet.Profile{Cluster: c.ClusterLabel, Standalone: c.Standalone}) {
		if err := os.WriteFile(filepath.Join(c.Output, name), data, 0o644); err != nil {
			return fmt.Errorf("write rules: %w", err)
		}
	}
	con.say("%s and %s written to %s", fleet.RulesFile, fleet.TestsFile, c.Output)
	return nil
}

func labelNames(names []string) error {
	for _, l := range names {
		if !fleet.LabelName(l) {
			return usagef("--cluster-label %s: want the name of a label", l)
		}
	}
	return nil
}

type fleetDashboard struct {
	Output       string `short:"o" placeholder:"FILE" help:"Write it to FILE instead of standard output."`
	ClusterLabel string `placeholder:"LABEL" help:"The label that tells clusters apart. Default: cluster."`
}

func (c *fleetDashboard) Run(con *console) error {
	if c.ClusterLabel != "" {
		if err := labelNames([]string{c.ClusterLabel}); err != nil {
			return err
		}
	}
	b, err := fleet.Dashboard(c.ClusterLabel)
	if err != nil {
		return fmt.Errorf("make a dashboard: %w", err)
	}
	return con.printTo(c.Output, func(w io.Writer, _ report.TextOptions) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}
