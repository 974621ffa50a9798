package attach

import (
	"strconv"
	"strings"
)

// fromCommand says which file a command printed, and which process it looked at.
func fromCommand(command string) (path string, pid int) {
	f := strings.Fields(command)
	for i, word := range f {
		word = strings.Trim(word, `"'`)
		switch {
		case strings.HasPrefix(word, "/") && i > 0 && path == "":
			path = word
		case (word == "-p" || word == "--pid" || word == "-tgid") && i+1 < len(f):
			pid, _ = strconv.Atoi(f[i+1])
		case strings.HasPrefix(word, "--pid="):
			pid, _ = strconv.Atoi(word[len("--pid="):])
		}
	}
	if len(f) >= 2 && (f[0] == "jstack" || f[0] == "pstack" || f[0] == "gstack") {
		pid, _ = strconv.Atoi(f[len(f)-1])
	}
	return path, pid
}

// pidOf is the process whose file below /proc this is; 0: none.
func pidOf(path string) int {
	i := strings.Index(path, "proc/")
	if i < 0 {
		return 0
	}
	word, _, _ := strings.Cut(path[i+len("proc/"):], "/")
	pid, _ := strconv.Atoi(word)
	return max(pid, 0)
}
