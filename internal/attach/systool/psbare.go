package systool

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// psKernelPlace is what ps prints as WCHAN: a function of the kernel, or none.
var psKernelPlace = pattern.New(`^([a-z_][a-zA-Z0-9_]{2,}(\.[\w.]+)?|-|0|\?|\*)$`)

// psBare gives the columns of rows that have no line of names, since a filter or a person left it
// out: those of ps aux, or those with a state and a place in the kernel next to it. nil: neither.
func psBare(lines []paste.Line) []string {
	first := fields(lines[0].Text)
	if _, ok := psHeader(lines[0].Text); ok || len(first) == 0 {
		return nil
	}
	if auxRow(first) {
		return psAux
	}
	if efRow(first) {
		return psEf
	}
	at := bareState(first)
	if at < 0 {
		return nil
	}
	names := make([]string, 0, at+3)
	for _, c := range first[:at] {
		_, number := whole(c)
		switch {
		case number && len(names) == 0:
			names = append(names, "PID")
		case number:
			names = append(names, "LWP")
		default:
			names = append(names, "USER")
		}
	}
	names = append(names, "S", "WCHAN")
	if len(first) > at+2 {
		names = append(names, "COMMAND")
	} else if at > 0 && names[at-1] == "USER" {
		names[at-1] = "COMMAND"
	}
	rows, placed := 0, false
	for _, l := range lines[:min(len(lines), 16)] {
		f := fields(l.Text)
		if l.Command != "" || len(f) < len(names) || bareState(f) != at || !psRow(names, f) {
			break
		}
		rows++
		placed = placed || strings.Contains(f[at+1], "_")
	}
	if rows < 3 || !placed {
		return nil
	}
	return names
}

// psEf are the columns of ps -ef.
var psEf = []string{"UID", "PID", "PPID", "C", "STIME", "TTY", "TIME", "CMD"}

var psTime = pattern.New(`^(?:\d+-)?\d\d:\d\d:\d\d$`)

func efRow(f []string) bool {
	if len(f) < len(psEf) || !psTime.MatchString(f[6]) {
		return false
	}
	for _, c := range f[1:4] {
		if _, ok := whole(c); !ok {
			return false
		}
	}
	return f[5] == "?" || strings.HasPrefix(f[5], "pts/") || strings.HasPrefix(f[5], "tty")
}

// bareState is where in a row the state stands that a place in the kernel follows; -1: nowhere.
func bareState(f []string) int {
	for i := 0; i < min(len(f)-1, 6); i++ {
		if psState.MatchString(f[i]) && psKernelPlace.MatchString(f[i+1]) {
			if i+2 < len(f) && strings.HasPrefix(f[i+2], ":") {
				return -1 // a log: numbers, its level, who writes and what
			}
			return i
		}
		if _, ok := whole(f[i]); !ok && i == 0 {
			return -1 // a name in front may be anything's
		}
	}
	return -1
}

// psNumber is what tells one of several alike threads of the kernel from the next: [nfsd/3].
var psNumber = pattern.New(`/\d+(?::\d+)?(\]?)$`)

// unnumbered is the name that such threads share.
func unnumbered(name string) string {
	return psNumber.ReplaceAllString(name, "$1")
}

// psReclaimer says where the kernel's own reclaim sleeps: while it does, nobody else frees memory
// in the background.
func psReclaimer(v *verdict, all []process) {
	for _, one := range all {
		if strings.HasPrefix(one.name, "kswapd") && strings.HasPrefix(one.state, "D") &&
			one.wchan != "" && one.wchan != "-" {
			text := fmt.Sprintf("%s is in D itself, in %s: it frees no memory meanwhile", one.name, one.wchan)
			v.figure("%s", text)
			v.proves("direct-reclaim", text)
			return
		}
	}
}
