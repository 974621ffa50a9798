// Package settings changes the settings of a machine, and puts them back whatever happens, kill -9
// included. Each change is written into a journal before it is made. A watchdog process puts back
// what the lab leaves behind when it dies. The next start of the lab puts back what both left
// behind.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Folder holds the journals. They live until the next boot, as the settings do.
var Folder = "/run/whystall-lab"

// Kinds of changes.
const (
	kindWrite  = "write"  // a file of /proc or /sys; Old is written back
	kindCgroup = "cgroup" // a new folder; its processes are killed, and it is removed
	kindRemove = "remove" // a new file or folder
)

type change struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
}

// Journal holds the changes of one run.
type Journal struct {
	file     string
	Owner    int      `json:"owner"` // pid of the lab
	Started  string   `json:"started"`
	Changes  []change `json:"changes"`
	watchdog *exec.Cmd
	alive    io.WriteCloser // the watchdog sees its end when the lab is gone
}

// Begin makes a journal, and starts a watchdog. watchdog is its command, which gets the journal's
// name as its last argument and must call Watch.
func Begin(watchdog ...string) (*Journal, error) {
	if err := os.MkdirAll(Folder, 0o755); err != nil {
		return nil, fmt.Errorf("make a journal of settings: %w", err)
	}
	pid := os.Getpid()
	j := &Journal{file: filepath.Join(Folder,
		fmt.Sprintf("%d-%d.json", pid, time.Now().UnixNano())), Owner: pid, Started: started(pid)}
	if err := j.write(); err != nil {
		return nil, err
	}
	j.watchdog = exec.Command(watchdog[0], append(watchdog[1:], j.file)...)
	j.watchdog.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal to the lab's group does not reach it
	var err error
	if j.alive, err = j.watchdog.StdinPipe(); err == nil {
		err = j.watchdog.Start()
	}
	if err != nil {
		os.Remove(j.file)
		return nil, fmt.Errorf("start the watchdog of settings: %w", err)
	}
	return j, nil
}

// write puts the journal on disk before a change is made.
func (j *Journal) write() error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	temp := j.file + ".new"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(temp, j.file)
	}
	if err != nil {
		return fmt.Errorf("write the journal of settings: %w", err)
	}
	return nil
}

func (j *Journal) note(c change) error {
	j.Changes = append(j.Changes, c)
	return j.write()
}

// Set writes a value into a file of /proc or /sys.
func (j *Journal) Set(path, value string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read setting: %w", err)
	}
	old := chosen(string(b))
	if old == value {
		return nil
	}
	if err := j.note(change{kindWrite, path, old}); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("change setting: %w", err)
	}
	return nil
}

// chosen is a setting's value. Where the file lists all values, it is the one in brackets.
func chosen(s string) string {
	if _, rest, ok := strings.Cut(s, "["); ok {
		if word, _, ok := strings.Cut(rest, "]"); ok {
			return word
		}
	}
	return strings.TrimSpace(s)
}

// Remove notes that path, which is about to be made, must be removed.
func (j *Journal) Remove(path string) error { return j.note(change{Kind: kindRemove, Path: path}) }

// End puts everything back.
func (j *Journal) End() error {
	err := heal(j.file)
	j.alive.Close()
	j.watchdog.Wait()
	return err
}

// Watch is the watchdog: it waits until the lab is gone, and puts back what it left.
func Watch(lab io.Reader, journal string) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	io.Copy(io.Discard, lab)
	return heal(journal)
}

// Heal puts back what runs left behind whose lab is gone.
func Heal() error {
	files, _ := filepath.Glob(filepath.Join(Folder, "*.json"))
	var errs []error
	for _, f := range files {
		j, err := read(f)
		if err == nil && j.Started != "" && started(j.Owner) == j.Started {
			continue // its lab lives
		}
		errs = append(errs, heal(f))
	}
	return errors.Join(errs...)
}

func read(file string) (*Journal, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var j Journal
	return &j, json.Unmarshal(b, &j)
}

// heal undoes a journal's changes, the last first. What cannot be undone stays in the journal for
// the next start.
func heal(file string) error {
	j, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the journal of settings %s: %w", file, err)
	}
	var errs []error
	for i := len(j.Changes) - 1; i >= 0; i-- {
		c := j.Changes[i]
		switch c.Kind {
		case kindWrite:
			err = os.WriteFile(c.Path, []byte(c.Old), 0)
		case kindCgroup:
			err = removeCgroup(c.Path)
		case kindRemove:
			err = os.RemoveAll(c.Path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("put back %s: %w", c.Path, err))
		}
	}
	if len(errs) == 0 {
		return os.Remove(file)
	}
	return errors.Join(errs...)
}

// started is when a process started, which distinguishes it from a later one with the same PID; "":
// it has ended.
func started(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 20 || f[0] == "Z" {
		return ""
	}
	return f[19]
}
