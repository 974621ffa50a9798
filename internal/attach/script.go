package attach

import (
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// scripted finds the command of a script, further up in the paste, that ran more than once and
// printed parts of a kind: it names the file or the tool that the kind is called by. Nothing else
// may stand between two runs but sleep and date for their distance to be known. "": no script does.
func scripted(kind *Kind, unknown []Range) (command string, every float64) {
	word, _, _ := strings.Cut(path.Base(kind.Name), " ")
	if word == "" {
		return "", 0
	}
	for i := len(unknown) - 1; i >= max(0, len(unknown)-mostScripts); i-- {
		lines := unknown[i].Lines
		lines = lines[:min(len(lines), mostScriptLines)]
		if !slices.ContainsFunc(lines, func(l paste.Line) bool { return l.Raw == "" && strings.Contains(l.Text, word) }) {
			continue // most ranges of a log end here
		}
		commands := commandsOf(lines)
		for at, c := range commands {
			if !names(c, word) || !paste.IsCommand(c) {
				continue
			}
			if next := slices.Index(commands[at+1:], c); next >= 0 {
				return c, onlySlept(commands[at+1 : at+1+next])
			}
			if slept := loopOf(commands, at); slept > 0 {
				return c, slept
			}
		}
	}
	return "", 0
}

// mostScripts bounds how far up a script may stand, in ranges that nothing knows.
const mostScripts = 4

// commandsOf are the commands of a script, each as it stands; what is piped stays together.
func commandsOf(lines []paste.Line) (out []string) {
	for _, l := range lines {
		text := strings.ReplaceAll(strings.ReplaceAll(l.Text, "&&", ";"), "; do ", "; do; ")
		for _, c := range unquoted(text, ';') {
			if c = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(c), "$ ")); c != "" {
				out = append(out, c)
			}
		}
	}
	return out
}

// names reports whether a word stands in a command as a whole, behind the tool's name or as it.
func names(command, word string) bool {
	for from := 0; ; {
		i := strings.Index(command[from:], word)
		if i < 0 {
			return false
		}
		at, end := from+i, from+i+len(word)
		if (at == 0 || !wordly(command[at-1])) && (end == len(command) || !wordly(command[end])) {
			return true
		}
		from = end
	}
}

func wordly(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

// onlySlept is how long commands sleep that do nothing else; 0: they do.
func onlySlept(commands []string) (seconds float64) {
	for _, c := range commands {
		tool, _, _ := strings.Cut(c, " ")
		s := Slept(c)
		if s == 0 && tool != "date" && tool != "echo" {
			return 0
		}
		seconds += s
	}
	return seconds
}

// loopOf is how long a loop sleeps that runs one of the commands again and again; 0: none does, or
// each round looks at something else.
func loopOf(commands []string, at int) float64 {
	start := -1
	for i := at; i >= 0 && start < 0; i-- {
		switch tool, _, _ := strings.Cut(commands[i], " "); tool {
		case "while", "until", "for":
			start = i
		case "done":
			return 0
		}
	}
	end := slices.IndexFunc(commands[at:], func(c string) bool { return c == "done" || strings.HasPrefix(c, "done ") })
	if start < 0 || end < 0 {
		return 0
	}
	head := strings.Fields(commands[start])
	if head[0] == "for" && len(head) > 1 && varies(commands[at], head[1]) {
		return 0
	}
	if i := slices.Index(head, "read"); i >= 0 && slices.ContainsFunc(head[i+1:], func(v string) bool { return varies(commands[at], v) }) {
		return 0
	}
	for _, c := range commands[start : at+end] {
		if s := Slept(c); s > 0 {
			return s
		}
	}
	return 0
}

// varies reports whether a command has a variable in it.
func varies(command, name string) bool {
	return strings.Contains(command, "$"+name) || strings.Contains(command, "${"+name)
}
