// Package session gives the session of this process the least weight while whystall runs beside a
// service: the kernel's scheduler divides the CPUs among sessions first (sched(7), autogroup), and
// compares the classes of threads within one only. Beside a server of another session p99 was 3.9
// times as long with SCHED_IDLE alone, and 1.4 times with this.
//
// It refuses to touch a session in which another process is at work, but those that this one comes
// from.
//
//	session_linux.go  all of it
package session
