//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// apart keeps Ctrl-C from reaching a helper process: the recorder handles it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// lowest gives a process the lowest priority. Threads that it has already made keep theirs, so it
// is called right after the start.
func lowest(pid int) { syscall.Setpriority(syscall.PRIO_PROCESS, pid, 19) }
