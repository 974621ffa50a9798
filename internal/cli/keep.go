package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

// diagnose keeps its case though nobody asked for it: what it found can then be looked at again,
// and compared with a later recording. Only so many are kept, and what was asked for is never
// removed.

// mostKept is how many cases are kept that nobody asked for.
const mostKept = 10

// caseName is the name of a case that nobody named, in the current folder.
func caseName(now time.Time) string {
	stem := "whystall-" + now.UTC().Format("20060102T150405Z")
	name := stem + ".case"
	for n := 2; taken(name) && n < 100; n++ {
		name = fmt.Sprintf("%s-%d.case", stem, n)
	}
	return name
}

var ownName = regexp.MustCompile(`^whystall-\d{8}T\d{6}Z(-\d+)?\.case$`)

func taken(name string) bool {
	for _, n := range []string{name, name + ".part"} {
		if _, err := os.Lstat(n); err == nil {
			return true
		}
	}
	return false
}

// writable reports whether files can be made in a folder.
func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".whystall-*")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}

// thinOut removes from a folder all but the newest cases that diagnose kept by itself. The manifest
// of each says so: a case that somebody asked for may have such a name as well. The names sort by
// time.
func thinOut(dir string) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var names []string
	for _, f := range files {
		if f.Type().IsRegular() && ownName.MatchString(f.Name()) {
			names = append(names, f.Name())
		}
	}
	// Of one second, the one with the higher number is the newer; it is longer, or sorts later.
	slices.SortFunc(names, func(a, b string) int {
		const stamp = len("whystall-20060102T150405Z")
		return cmp.Or(-cmp.Compare(a[:stamp], b[:stamp]), -cmp.Compare(len(a), len(b)), -cmp.Compare(a, b))
	})
	kept := 0
	for _, name := range names {
		if !isUnasked(filepath.Join(dir, name)) {
			continue
		}
		if kept++; kept > mostKept {
			os.Remove(filepath.Join(dir, name))
		}
	}
}

func isUnasked(name string) bool {
	c, err := evidence.Open(name)
	if err != nil {
		return false
	}
	defer c.Close()
	return c.Manifest.Unasked
}
