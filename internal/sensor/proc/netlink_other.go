//go:build !linux

package proc

import "errors"

// Taskstats is for Linux.
type Taskstats struct{}

// OpenTaskstats fails: this system has no taskstats.
func OpenTaskstats() (*Taskstats, error) {
	return nil, errors.New("read delay accounting: only Linux has it")
}

// Close does nothing.
func (t *Taskstats) Close() error { return nil }

// Process is never reached.
func (t *Taskstats) Process(int) (string, error) { return "", errors.New("only Linux has it") }
