//go:build !linux

package collect

import (
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

// now has no CLOCK_MONOTONIC: a trace's clock differs by system.
func now() evidence.Moment { return evidence.Moment{UTC: time.Now().UTC()} }

func monotonic() int64 { return 0 }

func threadCPU() int64 { return 0 }

func ownCPU() int64 { return 0 }

func release() string { return "" }
