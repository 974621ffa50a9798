package kernelfile

import (
	"path"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// claimSession divides the output of prompts' "cat FILES" by the files that they name. Prompts that
// follow one another are one part, with "date" and "sleep 10" among them: so a quota stands beside
// what it did, and a second reading beside the first. It wants a file that only its name tells, or
// two files.
func claimSession(lines []paste.Line) (files []file, n int) {
	single := false
	s := session{lines: lines}
	for s.at < len(lines) && lines[s.at].Command != "" {
		if at := promptFolder(lines[s.at].Text); at != "" {
			s.folder = at
		}
		more, ok := s.prompt(lines[s.at].Command)
		if !ok {
			break
		}
		for _, f := range more {
			single = single || scalars(f.base()) || isSettingPath(f.path) || oneValue(f.path)
		}
		files = append(files, more...)
		if len(more) > 0 {
			n = s.at
		}
		for s.at < len(lines) && lines[s.at].Command == "" && strings.TrimSpace(lines[s.at].Text) == "" {
			s.at++
		}
	}
	if !single && len(files) < 2 {
		return nil, 0
	}
	return files, n
}

// session is where the walk over prompts stands.
type session struct {
	lines []paste.Line
	at    int
	when  []paste.Line // the time that date printed, until a file follows
	slept float64      // seconds of all its sleeps so far
	// folder is the group's, where a prompt or a cd says it: names without one are below it.
	folder string
}

// promptFolder is the folder of a cgroup that a prompt shows; "": none.
func promptFolder(prompt string) string {
	_, rest, ok := strings.Cut(prompt, groupRoot)
	if end := strings.IndexAny(rest, " ]#$>%)"); ok && end >= 0 && (rest[0] == '/' || end == 0) &&
		!strings.ContainsAny(rest[:end], ";|&'\"") {
		if before, _, _ := strings.Cut(prompt, groupRoot); !strings.ContainsAny(before, "$#%>") {
			return groupRoot + strings.TrimRight(rest[:end], "/")
		}
	}
	return ""
}

// groupRoot is where cgroups are mounted.
const groupRoot = "/sys/fs/cgroup"

// prompt reads the output of one prompt's line, and reports whether all of it is known.
func (s *session) prompt(command string) (files []file, ok bool) {
	from := s.at
	s.at++
	for _, part := range strings.FieldsFunc(command, func(r rune) bool { return r == ';' || r == '&' }) {
		words := strings.Fields(part)
		if len(words) > 0 && words[0] == "sudo" {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		switch path.Base(words[0]) {
		case "date":
			if s.at < len(s.lines) && isTime(s.lines[s.at].Text) {
				s.when = s.lines[s.at : s.at+1]
				s.at++
			}
		case "cd":
			s.folder = ""
			if len(words) > 1 && strings.HasPrefix(words[1], groupRoot) {
				s.folder = strings.TrimRight(words[1], "/")
			}
		case "sleep":
			s.slept += attach.Slept(part)
		case "sync", "clear":
		case "cat", "head", "tail", "more":
			more, ok := s.cat(words[1:])
			if files = append(files, more...); !ok {
				s.at = from
				return nil, false
			}
		default:
			s.at = from
			return nil, false
		}
	}
	return files, true
}

// cat takes the content of the files that words name.
func (s *session) cat(words []string) (files []file, ok bool) {
	for _, w := range words {
		p := strings.Trim(w, `"'`)
		if strings.HasPrefix(w, "-") || isDigits(w) {
			continue
		}
		if strings.ContainsAny(p, "*?[{|><`$") || !knownPath(p) {
			return nil, false
		}
		m := contentOf(p, s.lines[min(s.at, len(s.lines)):])
		if m == 0 || strings.HasPrefix(strings.TrimSpace(s.lines[s.at].Text), "cat: ") {
			return files, len(files) > 0
		}
		f := file{path: p, lines: s.lines[s.at : s.at+m], slept: s.slept}
		if s.folder != "" && !path.IsAbs(p) {
			f.path = path.Join(s.folder, p)
		}
		if s.when != nil {
			f.lines = append(s.when[:1:1], f.lines...)
			s.when = nil
		}
		files = append(files, f)
		s.at += m
	}
	return files, len(files) > 0
}
