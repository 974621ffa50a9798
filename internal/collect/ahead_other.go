//go:build !linux

package collect

// Ahead does nothing here.
func Ahead() (end func()) { return func() {} }

func ordinary(f func()) { f() }
