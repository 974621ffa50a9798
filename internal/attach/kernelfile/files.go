package kernelfile

import (
	"cmp"
	"path"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// Many of the kernel's files hold one value, which only the name tells. People paste them in four
// ways: "grep . FILES" puts the path before each line, "head FILES" a line "==> PATH <==" above,
// the prompt has "cat FILES", or somebody wrote the path as a title.

// file is one file of a part, by its path.
type file struct {
	path  string
	lines []paste.Line
	slept float64 // seconds that the prompts of its session slept before it
}

func (f file) base() string { return path.Base(f.path) }

func (f file) text() string {
	var out []string
	for _, l := range f.lines {
		out = append(out, strings.TrimSpace(l.Text))
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// scalars reports whether a file of a cgroup has one line, which only its name tells.
func scalars(base string) bool {
	controller, rest, ok := strings.Cut(base, ".")
	return ok && rest != "" && groupController(controller) && !groupFiles(base) && !sourceFile(path.Ext(base)) &&
		strings.Trim(rest, "abcdefghijklmnopqrstuvwxyzMKGB0123456789_.") == ""
}

var groupController = oneOf("cpu cpuacct memory pids cpuset io cgroup hugetlb blkio misc rdma freezer")

// limitFiles are the files of a group that people list with their values, a blank between.
var limitFiles = oneOf("cpu.max cpu.weight cpu.shares cpu.cfs_quota_us cpu.cfs_period_us cpuset.cpus cpuset.cpus.effective pids.max pids.current pids.peak " +
	"memory.max memory.high memory.low memory.min memory.current memory.peak memory.swap.max memory.swap.current memory.swap.high " +
	"memory.limit_in_bytes memory.usage_in_bytes memory.max_usage_in_bytes memory.failcnt memory.soft_limit_in_bytes memory.memsw.limit_in_bytes memory.memsw.usage_in_bytes")

// sourceFile knows names such as memory.go, which are no file of a cgroup.
var sourceFile = oneOf(".go .c .h .cc .cpp .py .rs .js .ts .java .rb .sh .md .txt .log .out .json .yaml .yml .html .service .slice .scope .dev .com .org .net")

// groupFiles are files of several lines of a cgroup.
var groupFiles = oneOf("cpu.stat cpu.stat.local memory.stat memory.events memory.events.local memory.swap.events pids.events io.stat cgroup.stat cgroup.events " +
	"cpuacct.stat memory.oom_control memory.numa_stat cpu.pressure memory.pressure io.pressure irq.pressure")

// isSettingPath knows the paths of settings: sysctls, huge pages, the clock.
func isSettingPath(p string) bool {
	return strings.HasPrefix(p, "/proc/sys/") || strings.Contains(p, "/transparent_hugepage/") ||
		strings.Contains(p, "/clocksource/") ||
		strings.HasPrefix(p, "/sys/devices/system/") && !nodeTable(path.Base(p)) ||
		strings.HasPrefix(p, "/sys/kernel/mm/") || strings.HasPrefix(p, "/sys/module/") ||
		strings.HasPrefix(p, "/sys/block/")
}

// nodeTable are files of a NUMA node that hold counters, and no setting.
var nodeTable = oneOf("numastat vmstat meminfo distance")

// known reports whether a path is one of a file that this kind reads by name.
func knownPath(p string) bool {
	b := path.Base(p)
	return p != "" && !strings.ContainsAny(p, " \t") &&
		(scalars(b) || groupFiles(b) || isSettingPath(p) || strings.HasPrefix(p, "/proc/pressure/") || oneValue(p))
}

// oneValue knows files of a process or a thread whose one line says nothing without its name.
func oneValue(p string) bool {
	switch path.Base(p) {
	case "schedstat":
		return strings.HasPrefix(p, "/proc/") && p != "/proc/schedstat"
	case "wchan", "oom_score", "oom_score_adj", "comm":
		return strings.HasPrefix(p, "/proc/")
	}
	return false
}

// longestPath is Linux's PATH_MAX.
const longestPath = 4096

// prefixed reads a line "PATH:CONTENT", as grep writes it, or "cpu.max: 50000 100000".
func prefixed(l paste.Line) (p, content string, ok bool) {
	if l.Path != "" {
		return l.Path, strings.TrimSpace(l.Text), knownPath(l.Path)
	}
	text := strings.TrimSpace(l.Text)
	for i := 0; i < min(len(text), longestPath); i++ {
		switch text[i] {
		case ' ', '\t':
			content := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(text[i:]), "=:"))
			return text[:i], content, limitFiles(path.Base(text[:i])) &&
				!strings.HasPrefix(text, "=") && isValue(content, false)
		case ':', '=':
			content := strings.TrimSpace(text[i+1:])
			if knownPath(text[:i]) && (strings.Contains(text[:i], "/") && text[i] == ':' ||
				isValue(content, text[i] == ':')) {
				return text[:i], content, true
			}
		}
	}
	return "", "", false
}

// isValue reports whether text is what such files hold: numbers, and names before them where
// several is set. A file without a folder in its name could be anybody's.
func isValue(text string, several bool) bool {
	f := strings.Fields(text)
	if len(f) == 0 || len(f) > 5 {
		return false
	}
	if c := f[0][0]; c >= '0' && c <= '9' || f[0] == "max" || f[0] == "-1" {
		return true
	}
	if !several {
		return false
	}
	_, _, ok := pair(text)
	return ok || f[0] == "some" || f[0] == "full"
}

// titled reads a line that is the path of a file and nothing else, or what scripts put around one:
// "--- cpu.stat ---", "__cpu.stat__".
func titled(text string) (string, bool) {
	if rest, ok := strings.CutPrefix(text, "==> "); ok {
		p, end := strings.CutSuffix(rest, " <==")
		return p, end && knownPath(p)
	}
	p := strings.Trim(strings.TrimSuffix(text, ":"), " =-_#*<>[]`")
	return p, knownPath(p) && (strings.ContainsAny(p, "/") || p != text || strings.Contains(p, "."))
}

var namedFiles = &attach.Kind{
	Name: "kernel files", Prompted: true,
	Claim:  func(lines []paste.Line) int { _, n := claimFiles(lines); return n },
	Yields: []string{"PSI", "wchan list"},
	Read:   func(p *attach.Part) attach.Reading { return readFiles(filesOf(p)) },
}

// filesOf divides a part as claimFiles did. The prompt's line is put back in front.
func filesOf(p *attach.Part) []file {
	if p.Command != "" {
		lines := append([]paste.Line{{N: p.First(), Text: cmp.Or(p.Prompt, p.Command), Command: p.Command}}, p.Lines...)
		if files, n := claimFiles(lines); n == len(lines) {
			return files
		}
	}
	files, _ := claimFiles(p.Lines)
	return files
}

// claimFiles divides lines into files and says how many of the lines they are.
func claimFiles(lines []paste.Line) (files []file, n int) {
	if lines[0].Command != "" {
		return claimSession(lines)
	}
	values := 0
	for n < len(lines) && lines[n].Command == "" {
		text := strings.TrimSpace(lines[n].Text)
		if p, content, ok := prefixed(lines[n]); ok {
			l := lines[n]
			l.Text = content
			if last := len(files) - 1; last >= 0 && files[last].path == p {
				files[last].lines = append(files[last].lines, l)
			} else {
				files = append(files, file{path: p, lines: []paste.Line{l}})
			}
			n++
			values++
			continue
		}
		p, ok := titled(text)
		if !ok {
			if text == "" && n+1 < len(lines) && len(files) > 0 && lines[n+1].Command == "" && startsFile(lines[n+1]) {
				n++
				continue
			}
			break
		}
		m := contentOf(p, lines[n+1:])
		if m > 0 && scalars(path.Base(p)) && !strings.HasPrefix(text, "==>") && !isValue(strings.TrimSpace(lines[n+1].Text), false) {
			m = 0 // a sentence below a name
		}
		if m == 0 && !strings.HasPrefix(text, "==>") {
			break
		}
		files = append(files, file{path: p, lines: lines[n+1 : n+1+m]})
		n += 1 + m
		values += m
	}
	if values == 0 {
		return nil, 0
	}
	return files, n
}

func startsFile(l paste.Line) bool {
	_, _, ok := prefixed(l)
	if !ok {
		_, ok = titled(strings.TrimSpace(l.Text))
	}
	return ok
}

func startsFileText(text string) bool { return startsFile(paste.Line{Text: text}) }

// contentOf says how many of these lines are the content of a file of this name.
func contentOf(p string, lines []paste.Line) int {
	if len(lines) == 0 || lines[0].Command != "" {
		return 0
	}
	first := strings.TrimSpace(lines[0].Text)
	b := path.Base(p)
	switch {
	case first == "" || startsFile(lines[0]):
		return 0
	case b == "io.max" || b == "io.stat":
		return run(lines, func(t string) bool {
			dev, _, _ := strings.Cut(t, " ")
			return strings.Contains(dev, ":") && !startsFileText(t)
		})
	case b == "memory.numa_stat":
		return run(lines, func(t string) bool { return strings.Contains(t, "N0=") && !startsFileText(t) })
	case strings.HasPrefix(b, "blkio."):
		return run(lines, func(t string) bool {
			f := strings.Fields(t)
			return len(f) > 0 && len(f) <= 3 && isDigits(f[len(f)-1]) && !startsFileText(t)
		})
	case b == "cgroup.procs" || b == "cgroup.threads":
		return run(lines, isDigits)
	case scalars(b) || isSettingPath(p):
		return 1
	}
	for _, k := range contentKinds() {
		if k.Claim(lines) > 0 {
			return oneSample(k, lines)
		}
	}
	if groupFiles(b) {
		return run(lines, func(t string) bool { _, _, ok := pair(t); return ok && !startsFileText(t) })
	}
	return 1
}

// oneSample is how much of these lines is the kind's, up to where another file starts.
func oneSample(k *attach.Kind, lines []paste.Line) int {
	for i := range lines {
		if i > 0 && startsFile(lines[i]) {
			lines = lines[:i]
			break
		}
	}
	return k.Claim(lines)
}
