package target

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Run runs a program and gives what it printed. It is passed in, so that tests need no daemon.
type Run func(ctx context.Context, name string, args ...string) ([]byte, error)

// patience is how long a tool may take: a daemon may hang.
const patience = 5 * time.Second

// Command runs a program of this machine.
func Command(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	return cmd.Output()
}

// tools know containers by name.
var tools = []struct {
	name string
	args func(container string) []string
}{
	{"docker", func(c string) []string { return []string{"inspect", "--type", "container", "--format", "{{.Id}}", c} }},
	{"podman", func(c string) []string { return []string{"inspect", "--type", "container", "--format", "{{.Id}}", c} }},
	{"crictl", func(c string) []string {
		return []string{"ps", "--quiet", "--no-trunc", "--name", "^" + quoted(c) + "$"}
	}},
}

// quoted is a name in a regular expression; plainName let only one character through that means
// something there.
func quoted(name string) string { return strings.ReplaceAll(name, ".", `\.`) }

// ids asks the local tools which container has a name.
func ids(ctx context.Context, run Run, name string) (found []string, err error) {
	var asked, failed []string
	for _, t := range tools {
		out, err := run(ctx, t.name, t.args(name)...)
		if errors.Is(err, exec.ErrNotFound) {
			continue
		}
		asked = append(asked, t.name)
		if err != nil {
			failed = append(failed, t.name+": "+why(err))
			continue
		}
		for line := range strings.Lines(string(out)) {
			if id := strings.TrimSpace(line); isID(id) && !slices.Contains(found, id) {
				found = append(found, id)
			}
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(asked) == 0:
		return nil, fmt.Errorf("container %s: neither docker nor podman nor crictl is here to ask: name its id, or its process", name)
	case len(failed) > 0:
		return nil, fmt.Errorf("container %s: none is known by that name (%s)", name, strings.Join(failed, "; "))
	}
	return nil, fmt.Errorf("container %s: none is known by that name to %s", name, strings.Join(asked, " and "))
}

// why is what a tool said, in one line.
func why(err error) string {
	var left *exec.ExitError
	if errors.As(err, &left) {
		if line, _, _ := strings.Cut(strings.TrimSpace(string(left.Stderr)), "\n"); line != "" {
			return line[:min(len(line), 200)]
		}
	}
	return err.Error()
}
