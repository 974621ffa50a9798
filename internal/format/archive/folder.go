package archive

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxDepth is how deep folders are looked into: a sosreport has a dozen levels.
const maxDepth = 24

// Folder calls visit for each regular file below dir, by name. Links are not followed. A member
// that is an archive is opened, as Walk does.
func Folder(dir string, b *Budget, visit Visit) (Left, error) {
	w := &walker{b: b, visit: visit}
	w.folder(dir, "", 0)
	return w.left, w.stop
}

func (w *walker) folder(dir, member string, depth int) {
	if depth > maxDepth {
		w.note(dir, fmt.Errorf("more than %d folders deep", maxDepth))
		return
	}
	f, err := os.Open(dir)
	if err != nil {
		w.note(dir, cause(err))
		return
	}
	entries, err := f.ReadDir(max(w.b.Members, 0) + 1)
	f.Close()
	if err != nil && err != io.EOF {
		w.note(dir, cause(err))
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if w.stop != nil {
			return
		}
		if w.b.Members--; w.b.Members < 0 {
			w.note(dir, errMembers)
			return
		}
		name, inner := filepath.Join(dir, e.Name()), e.Name()
		if member != "" {
			inner = member + "/" + e.Name()
		}
		switch {
		case e.IsDir():
			w.folder(name, inner, depth+1)
		case e.Type().IsRegular():
			w.regular(name, inner)
		default:
			w.other(name)
		}
	}
}

// regular opens one file. Some files of a live /proc block whoever reads them, so it asks not to.
func (w *walker) regular(name, member string) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		w.note(name, cause(err))
		return
	}
	defer f.Close()
	head := make([]byte, 4)
	if n, _ := f.ReadAt(head, 0); kindOf(head[:n]) == zipped {
		if st, err := f.Stat(); err == nil {
			w.zip(name, member, f, st.Size(), 1)
			return
		}
	}
	w.open(name, member, &counted{r: f, left: &w.b.Bytes}, 1)
}

// cause is an error of a file without its name, which stands before it.
func cause(err error) error {
	if p, ok := err.(*os.PathError); ok {
		return p.Err
	}
	return err
}
