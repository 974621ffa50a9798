package systool

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var top = &attach.Kind{
	Name: "top",
	Rows: true,
	Hints: []string{"top - ", "Tasks", "Threads", "Processes", "Aufgaben", "任务", "Cpu", "CPU", "Mem",
		"Spch", "Swap", "PID", " R ", " S ", " D ", " I "},
	Yields: []string{"htop"}, // whose rows are the same, below other names
	Claim:  claimTop,
	Read:   readTop,
	When:   whenUp,
	Apart:  func(first paste.Line) bool { return topFirst.MatchString(strings.TrimSpace(first.Text)) },
}

var (
	topFirst = pattern.New(`^top - \d+[:h]\d+`)
	topTasks = pattern.New(`^(?:Tasks|Threads|Processes|Aufgaben|Tâches|Tareas)\s*:\s*(\d+)\s+(?:total|gesamt)|^\pL+\s?: *(\d+) \pL+(?:, +\d+ \pL+\.?(?: \pL+\.?)?){4}$`)
	topCPU   = pattern.New(`^%?Cpu(?:\(s\)|\d+)? *:|^%CPU(?:\(s\)|\d+)? *:`)
	topMem   = pattern.New(`^(?:(?:[KMGTPE]iB|[КМГТПЭ][иі]Б) )?(?:Mem|Swap|Spch|Échan)\s*:\s*[\d.,]+|^(?:[KMGTPE]iB|[КМГТПЭ][иі]Б) \pL+\.?\s?: *\d[\d.,]* \pL+, `)
	topLoad  = pattern.New(`load average: *([\d.,]+), +([\d.,]+), +([\d.,]+)`)
	topTight = pattern.New(`load average: *(\d+\.\d+), ?(\d+\.\d+), ?(\d+\.\d+)`)
	// topGraph is the line of CPUs as a bar: user and system before it, both together within.
	topGraph = pattern.New(`: *([\d.,]+)/([\d.,]+) +(\d+)\[`)
)

// topNames are columns of which a line of names has at least three: with them in it, a table of
// processes is top's and not ps's.
var topNames = []string{"PR", "NI", "VIRT", "RES", "SHR", "TIME+", "ZEIT+"}

// topHeader gives the columns of processes.
func topHeader(text string) ([]string, bool) {
	f := fields(text)
	if len(f) < 6 || figures(f) {
		return nil, false
	}
	known := 0
	for _, n := range topNames {
		if slices.Contains(f, n) {
			known++
		}
	}
	if f[0][0] >= utf8.RuneSelf && slices.Contains(f, "PR") && slices.Contains(f, "NI") {
		return chineseNames(f), true
	}
	return f, known >= 3 && slices.Contains(f, "PID") && !slices.Contains(f, "S-STATE")
}

// chineseNames gives the columns in Chinese, which translates some names, and has none for S.
func chineseNames(f []string) []string {
	for i, n := range []string{"PID", "", "", "", "VIRT", "RES", "SHR"} {
		if i < len(f) && f[i][0] >= utf8.RuneSelf {
			f[i] = cmp.Or(n, f[i])
		}
	}
	if at := slices.Index(f, "SHR"); at > 0 && !slices.Contains(f, "S") {
		f = slices.Insert(f, at+1, "S")
	}
	return f
}

// topRow reports whether a line fits below these names.
func topRow(names []string, f []string) bool {
	if len(f) == 0 {
		return false
	}
	if len(names) > manyColumns {
		// With all fields shown, some are empty, and nothing says which.
		_, ok := whole(f[0])
		return ok && len(f) >= len(names)/2
	}
	if len(f) < len(names)-1 {
		return false
	}
	for i, n := range names {
		if i >= len(f) {
			break
		}
		switch n {
		case "PID", "PPID":
			if _, ok := whole(f[i]); !ok {
				return false
			}
		case "VIRT", "RES", "SHR":
			if _, ok := size(f[i], 1); !ok {
				return false
			}
		case "%CPU", "%MEM":
			if _, ok := number(f[i]); !ok {
				return false
			}
		case "S":
			if len(f[i]) != 1 || !strings.Contains("RSDIZTtXW", f[i]) {
				return false
			}
		}
	}
	return true
}

// manyColumns is more than top shows until somebody asks for them.
const manyColumns = 20

// topDefault are the columns where a paste starts below the line of names.
var topDefault = []string{"PID", "USER", "PR", "NI", "VIRT", "RES", "SHR", "S", "%CPU", "%MEM", "TIME+", "COMMAND"}

func topSummary(text string) bool {
	if text == "" || text[0] < utf8.RuneSelf && strings.IndexByte("tTPAKMGSEC%", text[0]) < 0 {
		return false // most lines, without asking four patterns
	}
	return topFirst.MatchString(text) || topTasks.MatchString(text) || topMem.MatchString(text) ||
		topCPU.MatchString(text) && (len(topPair.FindAllString(text, 8)) >= 3 || topGraph.MatchString(text))
}

// topWhole reports whether a line is complete, below these names of columns.
func topWhole(names []string, text string) bool {
	text = strings.TrimSpace(text)
	if topFirst.MatchString(text) {
		return len(loads(text)) == 3
	}
	if _, ok := topHeader(text); ok {
		return true
	}
	f := fields(text)
	if topSummary(text) {
		_, figure := number(f[len(f)-1])
		return !figure && !strings.HasSuffix(text, ",") && !strings.HasSuffix(text, ":")
	}
	return topRow(names, f) && (len(f) >= len(names) || len(names) > manyColumns)
}

// topBroken says how lines look that a mail broke, below names that change.
func topBroken(names *[]string) broken {
	return broken{
		whole: func(text string) bool { return topWhole(*names, text) },
		starts: func(text string) bool {
			_, header := topHeader(text)
			return header || topSummary(strings.TrimSpace(text)) || topRow(*names, fields(text))
		},
	}
}

func claimTop(lines []paste.Line) int {
	names, look := topDefault, ""
	return claimLogical(lines, topBroken(&names), func(at int, text string) bool {
		if commandTail(names, lines, at) || unreadSummary(lines, at) {
			return true
		}
		text = strings.TrimSpace(text)
		if topFirst.MatchString(text) {
			if otherLook(look, text) {
				return false
			}
			look = text
		}
		if topSummary(text) {
			// Memory alone might be of /proc/meminfo or free.
			return at > 0 || !topMem.MatchString(text) || strings.Contains(text, "total")
		}
		if n, ok := topHeader(text); ok {
			names = n
			return true
		}
		return topRow(names, fields(text)) || wrappedTop(text) && at > 0
	})
}

// unreadSummary reports whether a line stands where the line of CPUs does, and is none: somebody
// marked it, or it is damaged.
func unreadSummary(lines []paste.Line, at int) bool {
	if at == 0 || at+1 >= len(lines) || lines[at+1].Command != "" || blank(lines[at]) {
		return false
	}
	text := strings.TrimSpace(lines[at].Text)
	return topTasks.MatchString(strings.TrimSpace(lines[at-1].Text)) && !topSummary(text) &&
		strings.Contains(text, ":") && topMem.MatchString(strings.TrimSpace(lines[at+1].Text))
}

// mailWidth is the least width at which mails wrap lines.
const mailWidth = 72

// commandTail reports whether a line is the end of the command of the row above it: that row was
// full, and the next line is a row again.
func commandTail(names []string, lines []paste.Line, at int) bool {
	if at == 0 || at+1 >= len(lines) || !piece(lines[at]) || !piece(lines[at-1]) || len(lines[at].Text) > 40 {
		return false
	}
	above, f := lines[at-1].Text, fields(lines[at].Text)
	return len(f) > 0 && len(f) < 4 && len(above) <= 80 && len(above)+1+len(f[0]) >= mailWidth &&
		!topRow(names, f) && topRow(names, fields(above)) && topRow(names, fields(lines[at+1].Text))
}

// wrappedTop is the second half of a line of memory that a narrow terminal or a web page broke.
func wrappedTop(text string) bool {
	return strings.HasSuffix(text, "avail Mem") && len(text) < 40 ||
		strings.HasSuffix(text, "buff/cache") && len(text) < 40
}

// screen is what one refresh of top shows.
type screen struct {
	load    []float64
	total   int  // tasks
	threads bool // its rows are threads, whose memory is their process'
	running int
	zombies int
	cpu     []cpuUse // one, or one for each CPU
	cpus    int      // 0: not known
	named   int      // CPUs that are named, those whose shares are cut off included
	numbers []int    // of the CPUs in cpu; -1: of all
	torn    float64  // the sum of shares in a line of CPUs that was left out, since it is above 100
	unread  bool     // its line of CPUs is there, and could not be read
	mem     memory
	names   []string
	rows    []row
	busiest string  // atop: the process that used most CPU time
	most    float64 // its use in percent of a CPU
}

func parseTop(p *attach.Part) (all []screen) {
	var s *screen
	open := func() {
		all = append(all, screen{names: topDefault})
		s = &all[len(all)-1]
	}
	names := topDefault
	at := 0
	for next, text := range logical(p.Lines, topBroken(&names)) {
		text = strings.TrimSpace(text)
		tail := s != nil && len(s.rows) > 0 && commandTail(names, p.Lines, at)
		if at = next; tail {
			last := &s.rows[len(s.rows)-1]
			last.cells = append(last.cells, fields(text)...)
			continue
		}
		if s == nil || topFirst.MatchString(text) || topTasks.MatchString(text) && s.total > 0 {
			open()
		}
		switch {
		case topFirst.MatchString(text):
			s.load = loads(text)
		case topTasks.MatchString(text):
			s.tasks(text)
		case topCPU.MatchString(text):
			s.shares(text)
		case topMem.MatchString(text):
			s.memory(text)
		default:
			if n, ok := topHeader(text); ok {
				s.names, names = n, n
			} else if f := fields(text); topRow(s.names, f) {
				f, _ = untree(s.names, f)
				s.rows = append(s.rows, row{cells: f})
			} else if wrappedTop(text) {
				s.memory("Swap:" + text)
			} else if text != "" && s.total > 0 && s.mem.total == 0 {
				s.unread = true
			}
		}
	}
	return all
}

// loads are the load averages of 1, 5 and 15 minutes.
func loads(text string) (out []float64) {
	m := topTight.FindStringSubmatch(text)
	if m == nil {
		m = topLoad.FindStringSubmatch(text)
	}
	if m == nil {
		m = loadColon.FindStringSubmatch(text)
	}
	if m == nil && topFirst.MatchString(text) {
		m = topLoadLast.FindStringSubmatch(text)
	}
	for _, s := range m[min(1, len(m)):] {
		f, ok := number(strings.TrimRight(s, ",."))
		if !ok {
			return nil
		}
		out = append(out, f)
	}
	return out
}

// loadColon also knows macOS' "load averages: 1.1 1.2 1.3" and busybox' lines.
var loadColon = pattern.New(`(?i)load averages?: *([\d.,]+),? +([\d.,]+),? +([\d.,]+)`)
