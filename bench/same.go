package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// labCases is where the repository keeps the lab's recorded cases.
const labCases = "internal/cli/testdata/lab"

// recordings are the files which both sides explain, as patterns from the repository's root.
func recordings() []string {
	return []string{labCases + "/*.case", "lab/*/testdata/*.trace", "exectrace/testdata/*.trace"}
}

// sameness says of how many recordings both sides report the same, wording aside.
type sameness struct {
	Recordings int         `json:"recordings"`
	Differ     []different `json:"differ"`
	Sentences  int         `json:"sentences"` // worded differently, in all recordings
	Figures    []different `json:"figures"`   // sentences with other numbers in them: to be looked at
}

// different is a recording of which the sides report something different.
type different struct {
	Recording string       `json:"recording"`
	At        []difference `json:"at"`
}

// compareReports has both sides explain every recording, and compares the reports in JSON by the
// marks of the present tree's schema. Which fields are sentences is written there and nowhere else.
func compareReports(ctx context.Context, root string, patterns []string, base, tree side,
	progress io.Writer) (sameness, error) {
	s := sameness{Differ: []different{}, Figures: []different{}}
	b, err := os.ReadFile(filepath.Join(root, "internal/report/schema.json"))
	if err != nil {
		return s, err
	}
	marks, err := readSchema(b)
	if err != nil {
		return s, err
	}
	files, err := listFiles(root, patterns)
	if err != nil {
		return s, err
	}
	fmt.Fprintf(progress, "compare what both say of %d recordings: ", len(files))
	for i, name := range files {
		was, err := explainJSON(ctx, base, name)
		if err != nil {
			return s, err
		}
		is, err := explainJSON(ctx, tree, name)
		if err != nil {
			return s, err
		}
		d := differ{root: marks}
		d.compare("", marks, was, is)
		title, _ := filepath.Rel(root, name)
		s.Recordings++
		s.Sentences += d.sentences
		if len(d.found) > 0 {
			s.Differ = append(s.Differ, different{title, d.found})
		}
		if len(d.figures) > 0 {
			s.Figures = append(s.Figures, different{title, d.figures})
		}
		if i%10 == 9 {
			fmt.Fprint(progress, ".")
		}
	}
	fmt.Fprintf(progress, " %s\n", s.title())
	return s, nil
}

// listFiles lists what matches the patterns under root. A pattern that matches nothing is an error:
// a comparison of no files would say that nothing differs.
func listFiles(root string, patterns []string) ([]string, error) {
	var all []string
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("list recordings: no file matches %s", pattern)
		}
		all = append(all, files...)
	}
	return all, nil
}

// explainJSON is what a side reports of a recording, with the exit status in the report's place
// "exit status".
func explainJSON(ctx context.Context, s side, name string) (map[string]any, error) {
	cmd := exec.CommandContext(ctx, s.whystall, "explain", "--format", "json", name)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
	}
	report := map[string]any{}
	dec := json.NewDecoder(&stdout)
	dec.UseNumber() // the text of a number, not its nearest float64
	if err := dec.Decode(&report); err != nil {
		report["stderr"] = strings.TrimSpace(stderr.String())
	}
	report["exit status"] = json.Number(fmt.Sprint(cmd.ProcessState.ExitCode()))
	return report, nil
}

func (s *sameness) title() string {
	t := fmt.Sprintf("says the same: %d of %d recordings", s.Recordings-len(s.Differ), s.Recordings)
	if s.Sentences > 0 {
		t += fmt.Sprintf("; %d sentences are worded differently", s.Sentences)
	}
	return t
}

// listed is how many differences of one recording are printed; the JSON has all.
const listed = 8

func (s *sameness) print(out io.Writer) {
	fmt.Fprintln(out, s.title())
	list := func(title string, l []different) {
		for _, d := range l {
			fmt.Fprintf(out, "  %s%s\n", title, d.Recording)
			for _, at := range d.At[:min(len(d.At), listed)] {
				fmt.Fprintf(out, "    %s\n", at)
			}
			if more := len(d.At) - listed; more > 0 {
				fmt.Fprintf(out, "    and %d more (--format json has all)\n", more)
			}
		}
	}
	list("DIFFERS: ", s.Differ)
	list("sentences with other numbers (no failure): ", s.Figures)
}
