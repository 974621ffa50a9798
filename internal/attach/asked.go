package attach

import (
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// showing is which parts may show a file, by its name without folders.
type showing map[string][]*Told

// mostOfName bounds the parts that are looked at for one file.
const mostOfName = 64

func (a *Answer) shown() showing {
	out := showing{}
	add := func(name string, t *Told) {
		if l := out[path.Base(name)]; name != "" && len(l) < mostOfName && !slices.Contains(l, t) {
			out[path.Base(name)] = append(l, t)
		}
	}
	for _, t := range a.Told {
		add(t.Part.Kind.Name, t)
		add(t.Part.Path, t)
		for _, l := range t.Part.Lines[:min(len(t.Part.Lines), mostShown)] {
			add(l.Path, t)
		}
	}
	return out
}

// unasked is a command without what other parts show already: files that it would print. "": they
// show all of it. A command that reads a file twice wants what happens in between: one reading
// since boot, or one glance, is not that.
func (s showing) unasked(command string, by *Told) string {
	steps := unquoted(command, ';')
	twice := slices.ContainsFunc(steps, func(s string) bool { return Slept(s) > 0 })
	dir, prints, all := "", false, true
	var kept []string
	for _, step := range steps {
		step = strings.TrimSpace(step)
		words := strings.Fields(step)
		if len(words) == 0 {
			continue
		}
		held := func(word, pattern string) bool {
			if !strings.HasPrefix(word, "/") {
				word = path.Join(dir, word)
			}
			return s.held(word, pattern, twice, by)
		}
		switch words[0] {
		case "cd":
			dir = words[len(words)-1]
		case "date", "sleep":
		case "cat":
			left := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w != "cat" && held(w, "") })
			if all = all && len(left) == len(words); len(left) == 1 {
				continue
			}
			step, prints = strings.Join(left, " "), true
		case "grep":
			if pattern, file, ok := grepOf(step); ok && held(file, pattern) {
				all = false
				continue
			}
			prints = true
		default:
			prints = true
		}
		kept = append(kept, step)
	}
	switch {
	case all:
		return command
	case !prints:
		return ""
	}
	for len(kept) > 0 && Slept(kept[len(kept)-1]) > 0 {
		kept = kept[:len(kept)-1]
	}
	for len(kept) > 0 && Slept(kept[0]) > 0 {
		kept = kept[1:]
	}
	return strings.Join(kept, "; ")
}

// held reports whether another part shows a file, or those of its lines that a pattern asks for.
func (s showing) held(file, pattern string, twice bool, by *Told) bool {
	return slices.ContainsFunc(s[path.Base(file)], func(t *Told) bool {
		return t != by && t.Part.shows(file, pattern) && !(twice && (t.Boot || t.Glance)) && !otherProcess(t, by)
	})
}

// unquoted splits a command at a sign that stands in no quotes.
func unquoted(command string, at byte) (out []string) {
	var quote byte
	from := 0
	for i := range len(command) {
		switch c := command[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == at:
			out, from = append(out, command[from:i]), i+1
		}
	}
	return append(out, command[from:])
}

// grepOf takes "grep -E 'A|B' FILE" apart; false: it is none with one file.
func grepOf(step string) (pattern, file string, ok bool) {
	step = strings.TrimSpace(unquoted(step, '|')[0])
	at := strings.LastIndexByte(step, ' ')
	if at < 0 {
		return "", "", false
	}
	words := strings.Fields(step[:at])[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		words = words[1:]
	}
	return strings.Join(words, " "), step[at+1:], len(words) > 0
}

// mostShown bounds the lines of a part that are looked through.
const mostShown = 4096

// shows reports whether a part is a file: by its path, or by its kind where that is named for it.
// Of a pattern it has each alternative. Without one it must not be what grep left of the file.
func (p *Part) shows(file, pattern string) bool {
	lines := p.Lines[:min(len(p.Lines), mostShown)]
	if p.Kind.Name != file && p.Kind.Name != path.Base(file) && !sameFile(p.Path, file) &&
		!slices.ContainsFunc(lines, func(l paste.Line) bool { return sameFile(l.Path, file) }) {
		return false
	}
	if pattern == "" {
		return !strings.Contains(p.Command, "grep")
	}
	for word := range strings.SplitSeq(strings.Trim(pattern, `'"`), "|") {
		word = strings.Trim(word, "^$ ")
		if !slices.ContainsFunc(lines, func(l paste.Line) bool { return strings.Contains(l.Text, word) }) {
			return false
		}
	}
	return true
}

// sameFile reports whether a path is one that a command has placeholders in.
func sameFile(known, asked string) bool {
	if known == "" {
		return false
	}
	if root, name, ok := strings.Cut(asked, "CGROUP/"); ok {
		return strings.HasPrefix(known, root) && path.Base(known) == name
	}
	if name, ok := strings.CutPrefix(asked, "/proc/PID/"); ok {
		_, rest, _ := strings.Cut(strings.TrimPrefix(known, "/proc/"), "/")
		return pidOf(known) > 0 && rest == name
	}
	return known == asked
}
