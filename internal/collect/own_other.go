//go:build !linux

package collect

func ownCPU() int64 { return 0 }

func release() string { return "" }
