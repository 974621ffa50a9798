//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// apart keeps Ctrl-C from reaching a helper: it is the recorder's to hear.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// lowest gives a process the lowest priority. Threads that it has made by now keep theirs; it was just begun.
func lowest(pid int) { syscall.Setpriority(syscall.PRIO_PROCESS, pid, 19) }
