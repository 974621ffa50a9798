package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// side is one of the two trees that are compared: its programs, built.
type side struct {
	version
	whystall string
	reader   string // this benchmark, built with the side's own library; its child modes read traces
	noReader string // why there is no reader
}

// version names a tree.
type version struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
	Changed bool   `json:"changed"` // there are changes which are not committed
}

func (v version) String() string {
	s := v.Commit + " " + v.Subject
	if v.Changed {
		s += " (and changes that are not committed)"
	}
	return s
}

// buildBoth builds the program of commit and that of the tree at root, into dir.
func buildBoth(ctx context.Context, root, commit, dir string) (base, tree side, err error) {
	hash, err := git(ctx, root, "rev-parse", "--verify", "--quiet", "--end-of-options", commit+"^{commit}")
	if err != nil {
		return base, tree, fmt.Errorf("read --against: %s is no commit of this repository", commit)
	}
	if base.version, err = versionOf(ctx, root, hash); err != nil {
		return base, tree, err
	}
	if tree.version, err = versionOf(ctx, root, "HEAD"); err != nil {
		return base, tree, err
	}
	changes, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return base, tree, err
	}
	tree.Changed = changes != ""
	if err := tree.build(ctx, root, filepath.Join(root, "bench"), filepath.Join(dir, "tree")); err != nil {
		return base, tree, err
	}
	err = withWorktree(ctx, root, hash, func(worktree string) error {
		// The reader's program is the present one on both sides; what differs is the library. The
		// worktree is thrown away, so its own benchmark may be replaced.
		bench := filepath.Join(worktree, "bench")
		if err := os.RemoveAll(bench); err != nil {
			return err
		}
		if err := os.CopyFS(bench, os.DirFS(filepath.Join(root, "bench"))); err != nil {
			return err
		}
		return base.build(ctx, worktree, bench, filepath.Join(dir, "base"))
	})
	return base, tree, err
}

func versionOf(ctx context.Context, root, revision string) (version, error) {
	line, err := git(ctx, root, "log", "-1", "--format=%h %s", revision)
	if err != nil {
		return version{}, err
	}
	commit, subject, _ := strings.Cut(line, " ")
	return version{Commit: commit, Subject: subject}, nil
}

// build builds the programs of the tree at root into dir. A reader that does not build is no error:
// an old commit's library may lack what the present benchmark calls.
func (s *side) build(ctx context.Context, root, bench, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	s.whystall, s.reader = filepath.Join(dir, "whystall"), filepath.Join(dir, "reader")
	if err := build(ctx, root, "./cmd/whystall", s.whystall); err != nil {
		return err
	}
	if err := build(ctx, bench, ".", s.reader); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.noReader = fmt.Sprintf("this benchmark does not build with the library of %s", s.Commit)
	}
	return nil
}

// build builds a program in the way releases are built: without C, and with the profile beside its
// main package where there is one.
func build(ctx context.Context, dir, program, output string, more ...string) error {
	args := append([]string{"build", "-C", dir, "-trimpath", "-buildvcs=false", "-o", output}, more...)
	cmd := exec.CommandContext(ctx, "go", append(args, program)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", program, err, b)
	}
	return nil
}

// withWorktree has git check out commit beside the repository for as long as use runs. The worktree
// is removed whatever use does, and when ctx has ended.
func withWorktree(ctx context.Context, root, commit string, use func(dir string) error) (err error) {
	tmp, err := os.MkdirTemp("", "whystall-worktree-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "tree")
	defer func() {
		// An add that was cut off may have left a part: remove fails then, and prune forgets what
		// RemoveAll takes away.
		ctx := context.WithoutCancel(ctx)
		if _, e := git(ctx, root, "worktree", "remove", "--force", dir); e != nil {
			os.RemoveAll(tmp)
			git(ctx, root, "worktree", "prune")
		}
	}()
	if _, err := git(ctx, root, "worktree", "add", "--detach", dir, commit); err != nil {
		return err
	}
	return use(dir)
}

// git runs git in dir, and gives its output without the last newline.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(b)), nil
}
