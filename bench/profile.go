package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const profileUsage = `usage: bench profile [--dir DIR]

Makes cmd/whystall/default.pgo anew: the CPU profile by which the compiler knows the hot paths. It names functions, so
a function that is renamed or moved to another package loses what the profile says about it. Make it on a machine
that does nothing else, and commit it. --dir keeps the traces, as for bench.
`

// profiled is the main.go of a program which writes a profile.
//
//go:embed profiled/main.go
var profiled string

// profileInputs are what is explained for the profile, besides a large trace of the present format
// and of the last one before 1.22. The number says how often: small files count as much as the
// large ones.
var profileInputs = []struct {
	pattern string
	times   int
}{
	{"exectrace/testdata/srv-*.trace", 4},
	{labCases + "/logger-lock.ill.case", 12},
	{labCases + "/thread-churn.ill.case", 12},
}

// largeTimes is how often each of the two large traces is explained.
const largeTimes = 6

// makeProfile makes the compiler's profile anew.
//
//  1. The program is built with a main function which profiles what it explains, and without a
//     profile: the result does not depend on the last one.
//  2. It explains all inputs in one process.
func makeProfile(ctx context.Context, args []string, _, progress io.Writer) error {
	fs := flag.NewFlagSet("profile", flag.ContinueOnError)
	fs.SetOutput(progress)
	fs.Usage = func() { fmt.Fprint(fs.Output(), profileUsage) }
	dir := fs.String("dir", "", "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return errors.New("wrong usage: see bench profile --help")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	return profileInto(ctx, root, *dir, 50, filepath.Join(root, "cmd/whystall/default.pgo"), progress)
}

// profileInto writes the profile of the tree at root to output, by large traces of mb MB, which dir
// keeps.
func profileInto(ctx context.Context, root, dir string, mb int, output string, progress io.Writer) error {
	tmp, err := os.MkdirTemp("", "whystall-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if dir == "" {
		dir = tmp
	}
	program := filepath.Join(tmp, "profiled")
	if err := buildProfiled(ctx, root, tmp, program); err != nil {
		return err
	}
	traces, err := makeTraces(ctx, dir, []int{mb}, progress)
	if err != nil {
		return err
	}
	var files []string
	for _, t := range traces {
		files = append(files, slices.Repeat([]string{t.name}, largeTimes)...)
	}
	for _, in := range profileInputs {
		some, err := listFiles(root, []string{in.pattern})
		if err != nil {
			return err
		}
		files = append(files, slices.Repeat(some, in.times)...)
	}
	fmt.Fprintf(progress, "explain %d files\n", len(files))
	b, err := exec.CommandContext(ctx, program, append([]string{output}, files...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("write the profile: %w\n%s", err, b)
	}
	return nil
}

// buildProfiled builds the program with profiled in place of its main.go.
func buildProfiled(ctx context.Context, root, tmp, output string) error {
	_, source, _ := strings.Cut(profiled, "\n") // without the constraint which keeps it out of this module
	main, overlay := filepath.Join(tmp, "main.go"), filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(main, []byte(source), 0o600); err != nil {
		return err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, "cmd/whystall/main.go"): main}})
	if err == nil {
		err = os.WriteFile(overlay, b, 0o600)
	}
	if err != nil {
		return err
	}
	return build(ctx, root, "./cmd/whystall", output, "-overlay="+overlay, "-pgo=off")
}
