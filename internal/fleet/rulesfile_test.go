package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/whystall/whystall/internal/need"
)

// TestRuleFiles has promtool check the rules and run their unit tests.
func TestRuleFiles(t *testing.T) {
	for _, r := range rules {
		if c := made[r.Name]; len(c.Ill) == 0 || len(c.Alike) == 0 {
			t.Errorf("%s: has no case that is ill and one that looks alike", r.Name)
		}
	}
	promtool := need.Tool(t, "promtool")
	dir := t.TempDir()
	write := func(dir string, files map[string][]byte) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(dir, RuleFiles(Profile{}))
	// promtool evaluates all rules for each test: a file for each rule takes far less.
	test := []string{"test", "rules"}
	for _, r := range rules {
		write(filepath.Join(dir, r.Name), ruleFiles(&Profile{}, []*Rule{r}))
		test = append(test, filepath.Join(r.Name, TestsFile))
		if r.Scope == Container && !r.Pods {
			alone := r.Name + "-standalone"
			write(filepath.Join(dir, alone), ruleFiles(&Profile{Standalone: true}, []*Rule{r}))
			test = append(test, filepath.Join(alone, TestsFile))
		}
	}
	for _, args := range [][]string{{"check", "rules", RulesFile}, test} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%.4000s", args[0], err, out)
		}
	}
}
