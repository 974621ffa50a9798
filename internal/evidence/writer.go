package evidence

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

const (
	// TraceMember is the member that holds the execution trace. It is stored uncompressed, so that
	// it can be mapped where it lies.
	TraceMember = "trace.out"

	manifestMember = "manifest.json"
	partSuffix     = ".part"
	zipTemp        = ".case.zip" // inside the folder: the same file system, and left out when a folder is opened
)

// Writer makes a case. While it does, the case is the folder NAME.part, which opens like a case;
// Finish makes the file of it.
type Writer struct {
	name  string
	dir   string
	force bool

	mu sync.Mutex
	m  Manifest
}

// Create starts the case file name. If one exists, it refuses, unless force is set.
func Create(name string, force bool, m Manifest) (*Writer, error) {
	w := &Writer{name: name, dir: name + partSuffix, force: force, m: m}
	if err := w.checkName(); err != nil {
		return nil, err
	}
	err := os.Mkdir(w.dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if !force {
			return nil, fmt.Errorf("create %s: exists from another recording: explain it or remove it, or use --force", w.dir)
		}
		// --force removes only what is a case of ours.
		if _, statErr := os.Lstat(filepath.Join(w.dir, manifestMember)); statErr != nil {
			return nil, fmt.Errorf("create %s: exists and is not a case: remove it, or choose another name", w.dir)
		}
		if err = os.RemoveAll(w.dir); err == nil {
			err = os.Mkdir(w.dir, 0o700)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w%s", w.dir, FileCause(err), advice(err))
	}
	if err := w.Update(func(*Manifest) {}); err != nil {
		os.RemoveAll(w.dir)
		return nil, fmt.Errorf("%w%s", err, advice(err))
	}
	return w, nil
}

func (w *Writer) checkName() error {
	st, err := os.Lstat(w.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("create %s: %w", w.name, FileCause(err))
	case st.IsDir():
		return fmt.Errorf("create %s: is a folder: choose another name", w.name)
	case !w.force:
		return fmt.Errorf("create %s: exists already: choose another name, or use --force", w.name)
	}
	return nil
}

// Dir is the folder that holds what was recorded so far.
func (w *Writer) Dir() string { return w.dir }

// Member creates a member, 0600. The caller closes it.
func (w *Writer) Member(name string) (*os.File, error) {
	if err := checkMember(name); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(w.dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// Remove takes back a member that turned out to be nothing.
func (w *Writer) Remove(name string) { os.Remove(filepath.Join(w.dir, name)) }

// Update changes the manifest and writes it at once, so that the case of a killed recording says
// what was done.
func (w *Writer) Update(change func(*Manifest)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.m)
	w.m.Schema = Schema
	b, err := json.MarshalIndent(&w.m, "", "  ")
	if err != nil {
		return fmt.Errorf("write manifest.json: %w", err)
	}
	// It is renamed into place: no reader sees half a manifest, and the old one stays if the disk
	// is full.
	temp := filepath.Join(w.dir, "."+manifestMember)
	if err := os.WriteFile(temp, append(b, '\n'), 0o600); err != nil {
		os.Remove(temp)
		return fmt.Errorf("write %s: %w", filepath.Join(w.dir, manifestMember), FileCause(err))
	}
	return os.Rename(temp, filepath.Join(w.dir, manifestMember))
}

// Finish packs the folder into the case file and removes the folder. After an error the folder
// still exists and can be opened.
func (w *Writer) Finish() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	temp := filepath.Join(w.dir, zipTemp)
	if err := w.zip(temp); err != nil {
		os.Remove(temp)
		return fmt.Errorf("write %s: %w; what was recorded is in %s", w.name, FileCause(err), w.dir)
	}
	// A link fails if a file has appeared meanwhile; a rename would replace it.
	err := os.Link(temp, w.name)
	if err != nil && (w.force || !errors.Is(err, fs.ErrExist)) {
		if err = w.checkName(); err == nil {
			err = os.Rename(temp, w.name)
		}
	}
	if err != nil {
		os.Remove(temp)
		return fmt.Errorf("write %s: %w; what was recorded is in %s", w.name, FileCause(err), w.dir)
	}
	if err := os.RemoveAll(w.dir); err != nil {
		return fmt.Errorf("remove %s: %w", w.dir, FileCause(err))
	}
	return nil
}

// Discard removes all that was recorded.
func (w *Writer) Discard() error { return os.RemoveAll(w.dir) }

func (w *Writer) zip(temp string) (err error) {
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return err
	}
	names := []string{manifestMember}
	for _, e := range entries {
		if n := e.Name(); n != manifestMember && e.Type().IsRegular() && checkMember(n) == nil {
			names = append(names, n)
		}
	}
	slices.Sort(names[1:])
	z := zip.NewWriter(f)
	for _, n := range names {
		h := &zip.FileHeader{Name: n, Method: zip.Deflate, Modified: w.m.Begun.UTC}
		if n == TraceMember || strings.HasSuffix(n, ".gz") || strings.HasSuffix(n, ".stream") { // packed already
			h.Method = zip.Store
		}
		h.SetMode(0o600)
		to, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		from, err := os.Open(filepath.Join(w.dir, n))
		if err != nil {
			return err
		}
		_, err = io.Copy(to, from)
		if err := errors.Join(err, from.Close()); err != nil {
			return err
		}
	}
	return z.Close()
}

// advice says what to do about a place that cannot be written, "" if the error says it.
func advice(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ": make the folder first, or name a file elsewhere"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return ": name a file where you may write"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ": free some space, or name a file elsewhere"
	}
	return ""
}

// FileCause removes the operation and the path from an error of package os, for messages that name
// them already.
func FileCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}
