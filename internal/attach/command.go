package attach

import (
	"path"
	"strconv"
	"strings"
)

// fromCommand says which file a command printed, and which process it looked at.
func fromCommand(command string) (file string, pid int) {
	f := strings.Fields(command)
	for i, word := range f {
		word = strings.Trim(word, `"'`)
		switch {
		case strings.HasPrefix(word, "/") && i > 0 && file == "":
			file = word
		case (word == "-p" || word == "--pid" || word == "-tgid") && i+1 < len(f):
			pid, _ = strconv.Atoi(f[i+1])
		case strings.HasPrefix(word, "--pid="):
			pid, _ = strconv.Atoi(word[len("--pid="):])
		}
	}
	if len(f) >= 2 && (f[0] == "jstack" || f[0] == "pstack" || f[0] == "gstack") {
		pid, _ = strconv.Atoi(f[len(f)-1])
	}
	return file, pid
}

// mostSlept is a day, in seconds.
const mostSlept = 86400

// Slept is how many seconds a command sleeps; 0: it does something else.
func Slept(command string) float64 {
	f := strings.Fields(command)
	if len(f) < 2 || f[0] != "sleep" {
		return 0
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(f[1], "s"), 64)
	if err != nil || !(v > 0) || v > mostSlept {
		return 0
	}
	return v
}

// pidOf is the process whose file below /proc this is; 0: none.
func pidOf(file string) int {
	i := strings.Index(file, "proc/")
	if i < 0 {
		return 0
	}
	word, _, _ := strings.Cut(file[i+len("proc/"):], "/")
	pid, _ := strconv.Atoi(word)
	return max(pid, 0)
}

// What of a paste is looked through for a script.
const (
	mostScriptLines  = 200
	mostScriptRanges = 16
)

// scriptOf is the bpftrace program that a command runs: in the command itself, or in what a cat of
// that file printed further up. Nothing knows its lines.
func scriptOf(command string, unknown []Range) string {
	if _, program, ok := strings.Cut(command, "bpftrace -e "); ok {
		return program
	}
	file := ""
	for _, word := range strings.Fields(command) {
		if strings.HasSuffix(word, ".bt") {
			file = path.Base(word)
			break
		}
	}
	if file == "" {
		return ""
	}
	var lines []string
	for _, r := range unknown[max(0, len(unknown)-mostScriptRanges):] {
		shown := strings.Fields(r.Command)
		if len(shown) < 2 || shown[0] != "cat" || path.Base(shown[len(shown)-1]) != file {
			continue
		}
		for _, l := range r.Lines[:min(len(r.Lines), mostScriptLines)] {
			lines = append(lines, l.Text)
		}
	}
	return strings.Join(lines, "\n")
}
