//go:build !linux

package collect

// threadCPU is not known here.
func threadCPU() int64 { return 0 }

// monotonic is not known here either.
func monotonic() int64 { return 0 }
