//go:build !linux

package perfevent

import (
	"errors"
	"fmt"
	"time"
)

// Reader reads what the kernel records. There is none here.
type Reader struct{}

// Open works on Linux only.
func Open(Options) (*Reader, error) {
	return nil, fmt.Errorf("open perf events: %w", errors.ErrUnsupported)
}

// Probe says that Open would not work.
func Probe(Options) error { return errors.ErrUnsupported }

// Wait and the others do nothing.
func Wait(time.Duration, ...*Reader) error { return errors.ErrUnsupported }

// Read reads nothing.
func (*Reader) Read(func(*Record)) error { return errors.ErrUnsupported }

// Horizon is 0.
func (*Reader) Horizon() int64 { return 0 }

// CPUs are none.
func (*Reader) CPUs() []int { return nil }

// Missing is nothing.
func (*Reader) Missing() []string { return nil }

// Stop does nothing.
func (*Reader) Stop(Event) error { return errors.ErrUnsupported }

// Start does nothing.
func (*Reader) Start(Event) error { return errors.ErrUnsupported }

// Close does nothing.
func (*Reader) Close() error { return nil }
