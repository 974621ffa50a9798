package main

import (
	"os"
	"path/filepath"
	"syscall"
)

const tempPrefix = "whystall-lab-"

// tempDir makes a folder for what is built and recorded. remove removes it. Where the lab is killed
// before, its next start does: a lab holds a lock on its folder for as long as it lives.
func tempDir() (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", tempPrefix); err != nil {
		return "", nil, err
	}
	f, err := os.Create(filepath.Join(dir, "lock"))
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() {
		os.RemoveAll(dir)
		f.Close()
	}, nil
}

// sweep removes the folders of labs which have ended.
func sweep() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*", "lock"))
	for _, name := range locks {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(filepath.Dir(name))
		}
		f.Close()
	}
}
