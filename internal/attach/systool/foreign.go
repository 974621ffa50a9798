package systool

import (
	"regexp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// foreignTools are tools of other systems, each known by its own names of columns.
func foreignTools() (out []*attach.Kind) {
	for _, f := range []struct {
		name, of, run string
		hints         []string
		head, row     *regexp.Regexp
	}{
		{"vmstat (BSD, AIX, Solaris)", "vmstat of a BSD, AIX or Solaris", "vmstat 1 10", []string{" avm ", " swap ", "kthr", " page "}, foreignVmstat, foreignCells},
		{"top (BSD) rows", "the table of top of a BSD", "top -b -n 3", []string{"WCPU", "USERNAME"}, foreignTopHead, foreignTopRow},
		{"ps (macOS, BSD)", "ps of macOS or a BSD", "ps -eLo pid,tid,stat,wchan:32,pcpu,comm", []string{"STARTED", "USER"}, foreignPsHead, foreignPsRow},
		{"vm_stat (macOS)", "vm_stat of macOS", "vmstat 1 10; free -m", []string{"Mach Virtual Memory", "Pages free:"}, macMemory, macPages},
		{"prstat (Solaris)", "prstat of Solaris", "top -b -n 3", []string{"PID USERNAME  SIZE", "NLWP"}, prstatHead, prstatRow},
		{"systat (BSD)", "systat of a BSD", "vmstat 1 10", []string{"users    Load", "Load  "}, systatHead, systatRow},
	} {
		out = append(out, &attach.Kind{Name: f.name, Hints: f.hints, Claim: claimForeign(f.head, f.row),
			Refused: "It is " + f.of + ". whystall explains services on Linux: run " + f.run + " there."})
	}
	return out
}

var (
	foreignVmstat = regexp.MustCompile(`^(?:procs +memory +page(?: +disks?)?(?: +faults| +traps)?.*cpu|kthr +memory +page.*|r +b +(?:[wp] +)?(?:avm +free?|swap +free) .*|System configuration: lcpu=.*)$`)
	foreignCells  = regexp.MustCompile(`^(?:-?[\d.]+[KMG]?(?: +-?[\d.]+[KMG]?){8,}|-{3,}(?: -{3,})+)$`)

	foreignTopHead = regexp.MustCompile(`^PID +(?:JID +)?USERNAME +(?:THR +)?PRI +NICE +SIZE +RES .*COMMAND$`)
	foreignTopRow  = regexp.MustCompile(`^\d+ +(?:\d+ +)?\S+ +(?:\d+ +)?\S+ +-?\w+ +[\d.]+[KMGB]? +[\d.]+[KMGB]? +.*[\d.]+% +\S`)

	foreignPsHead = regexp.MustCompile(`^USER +PID +%CPU +%MEM +VSZ +RSS +TT +STAT +STARTED +TIME +COMMAND$`)
	foreignPsRow  = regexp.MustCompile(`^\S+ +\d+ +[\d.,]+ +[\d.,]+ +\d+ +\d+ +(?:\?\?|-|\w+) +[DILRSTUWZ][\w+<>]* +\S+ +\d+:\d\d[.,]\d\d +\S`)

	macMemory = regexp.MustCompile(`^Mach Virtual Memory Statistics: \(`)
	macPages  = regexp.MustCompile(`^(?:"?[A-Z][\w -]*"?: +\d+\.?)$`)

	prstatHead = regexp.MustCompile(`^PID +USERNAME +(?:SIZE +RSS +STATE +PRI|USR +SYS +TRP) .*PROCESS/(?:NLWP|LWPID)$`)
	prstatRow  = regexp.MustCompile(`^(?:\d+ +\S+ .*\S/\d+|NPROC +USERNAME .*|\d+ +\S+ +\S+ +\S+ +\S+% +\S+ +\S+%|Total: \d+ processes, .*)$`)

	systatHead = regexp.MustCompile(`^\d+ users +Load +[\d.]+ +[\d.]+ +[\d.]+ `)
	systatRow  = regexp.MustCompile(`^(?:Mem|Proc:|KB:|Tot|Act|All|Disks|Namei|.*VN PAGER|.*SWAP PAGER|.*Interrupts)`)
)

// claimForeign claims a head of a table with what stands below it.
func claimForeign(head, row *regexp.Regexp) func([]paste.Line) int {
	return func(lines []paste.Line) int {
		if !head.MatchString(strings.TrimSpace(lines[0].Text)) {
			return 0
		}
		rows := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			text = strings.TrimSpace(text)
			if head.MatchString(text) {
				return true
			}
			if row.MatchString(text) {
				rows++
				return true
			}
			return false
		})
		return attach.ClaimIf(rows > 0, n)
	}
}
