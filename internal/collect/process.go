package collect

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// procStat is the part of /proc/PID/stat that is used here. proc(5) numbers the fields from 1; the
// command is the second.
type procStat struct {
	comm   string
	state  byte
	parent int
	kernel bool  // PF_KTHREAD
	cpuNS  int64 // user and system, of all threads, including ended ones
	start  int64 // ticks since boot; with the pid it identifies a process for ever
}

// userHZ is the unit of times in /proc, 100 on every architecture that this runs on.
const userHZ = 100

const pfKthread = 0x00200000

func procDir(pid int) string { return "/proc/" + strconv.Itoa(pid) }

func parseStat(b []byte) (s procStat, err error) {
	// The command may hold blanks and parentheses: it ends at the last one.
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return s, errors.New("no command in parentheses")
	}
	s.comm = string(b[open+1 : end])
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 {
		return s, fmt.Errorf("want 20 fields after the command, got %d", len(f))
	}
	s.state = f[0][0]
	number := func(i int) int64 {
		n, e := strconv.ParseInt(f[i], 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("field %d: %w", i+3, e)
		}
		return n
	}
	s.parent = int(number(1))
	s.kernel = number(6)&pfKthread != 0
	s.cpuNS = (number(11) + number(12)) * (1e9 / userHZ)
	s.start = number(19)
	return s, err
}

// statusField returns the value of a line of /proc/PID/status, "" if there is no such line.
func statusField(b []byte, name string) string {
	for line := range bytes.Lines(b) {
		if key, value, ok := strings.Cut(string(line), ":"); ok && key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// steers reports whether a variable of the environment may be in a case: those that steer runtimes
// and allocators may, and no other.
func steers(name string) bool {
	switch name {
	case "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GLIBC_TUNABLES":
		return true
	}
	return strings.HasPrefix(name, "MALLOC_")
}

func parseEnv(b []byte) map[string]string {
	env := map[string]string{}
	for _, v := range bytes.Split(b, []byte{0}) {
		if name, value, ok := strings.Cut(string(v), "="); ok && steers(name) && len(value) <= 500 {
			env[name] = strings.ToValidUTF8(value, "?")
		}
	}
	if len(env) == 0 {
		return nil
	}
	return env
}

// parseArgs returns the words of /proc/PID/cmdline.
func parseArgs(b []byte) (args []string) {
	for _, a := range bytes.Split(bytes.TrimRight(b, "\x00"), []byte{0}) {
		args = append(args, strings.ToValidUTF8(string(a), "?"))
	}
	return args
}
