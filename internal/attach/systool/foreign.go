package systool

import (
	"cmp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// foreignTools are tools of other systems, each known by its own names of columns.
func foreignTools() (out []*attach.Kind) {
	for _, f := range []struct {
		name, of, run string
		hints         []string
		head, row     *pattern.Regexp
	}{
		{"vmstat (BSD, AIX, Solaris)", "vmstat of a BSD, AIX or Solaris", "vmstat 1 10",
			[]string{" avm ", " swap ", "kthr", " page "}, foreignVmstat, foreignCells},
		{"top (BSD) rows", "the table of top of a BSD", "top -b -n 3", []string{"WCPU", "USERNAME"},
			foreignTopHead, foreignTopRow},
		{"ps (macOS, BSD)", "ps of macOS or a BSD", "ps -eLo pid,tid,stat,wchan:32,pcpu,comm",
			[]string{"STARTED", "USER"}, foreignPsHead, foreignPsRow},
		{"vm_stat (macOS)", "vm_stat of macOS", "vmstat 1 10; free -m",
			[]string{"Mach Virtual Memory", "Pages free:"}, macMemory, macPages},
		{"prstat (Solaris)", "prstat of Solaris", "top -b -n 3",
			[]string{"PID USERNAME  SIZE", "NLWP"}, prstatHead, prstatRow},
		{"sar (Solaris, AIX)", "sar of Solaris or AIX", "sar -u -q -B -d 1 10",
			[]string{"SunOS ", "AIX "}, unixSarHead, unixSarRow},
		{"systat (BSD)", "systat of a BSD", "vmstat 1 10", []string{"users    Load", "Load  "}, systatHead, systatRow},
	} {
		out = append(out, &attach.Kind{Name: f.name, Hints: f.hints, Claim: claimForeign(f.head, f.row),
			Refused: "It is " + f.of + ". whystall explains services on Linux: run " + f.run + " there."})
	}
	return out
}

var (
	foreignVmstat = pattern.New(`^(?:procs +memory +page(?: +disks?)?(?: +faults| +traps)?.*cpu|kthr +memory +page.*|r +b +(?:[wp] +)?(?:avm +free?|swap +free) .*|System configuration: lcpu=.*)$`)
	foreignCells  = pattern.New(`^(?:-?[\d.]+[KMG]?(?: +-?[\d.]+[KMG]?){8,}|-{3,}(?: -{3,})+)$`)

	foreignTopHead = pattern.New(`^PID +(?:JID +)?USERNAME +(?:THR +)?PRI +NICE +SIZE +RES .*COMMAND$`)
	foreignTopRow  = pattern.New(`^\d+ +(?:\d+ +)?\S+ +(?:\d+ +)?\S+ +-?\w+ +[\d.]+[KMGB]? +[\d.]+[KMGB]? +.*[\d.]+% +\S`)

	foreignPsHead = pattern.New(`^USER +PID +%CPU +%MEM +VSZ +RSS +TT +STAT +STARTED +TIME +COMMAND$`)
	foreignPsRow  = pattern.New(`^\S+ +\d+ +[\d.,]+ +[\d.,]+ +\d+ +\d+ +(?:\?\?|-|\w+) +[DILRSTUWZ][\w+<>]* +\S+ +\d+:\d\d[.,]\d\d +\S`)

	macMemory = pattern.New(`^Mach Virtual Memory Statistics: \(`)
	macPages  = pattern.New(`^(?:"?[A-Z][\w -]*"?: +\d+\.?)$`)

	prstatHead = pattern.New(`^PID +USERNAME +(?:SIZE +RSS +STATE +PRI|USR +SYS +TRP) .*PROCESS/(?:NLWP|LWPID)$`)
	prstatRow  = pattern.New(`^(?:\d+ +\S+ .*\S/\d+|NPROC +USERNAME .*|\d+ +\S+ +\S+ +\S+ +\S+% +\S+ +\S+%|Total: \d+ processes, .*)$`)

	unixSarHead = pattern.New(`^(?:SunOS|AIX) \S+ .*\d\d/\d\d/(?:\d\d){1,2}$`)
	unixSarRow  = pattern.New(`^(?:\d\d:\d\d:\d\d\b.*|Average\b.*|System configuration: .*)$`)

	systatHead = pattern.New(`^\d+ users +Load +[\d.]+ +[\d.]+ +[\d.]+ `)
	systatRow  = pattern.New(`^(?:Mem|Proc:|KB:|Tot|Act|All|Disks|Namei|.*VN PAGER|.*SWAP PAGER|.*Interrupts)`)
)

// claimForeign claims a head of a table with what stands below it.
func claimForeign(head, row *pattern.Regexp) func([]paste.Line) int {
	return func(lines []paste.Line) int {
		if !head.MatchString(strings.TrimSpace(lines[0].Text)) {
			return 0
		}
		rows := 0
		n := attach.ClaimWhile(lines, func(at int, text string) bool {
			// A time at the start of rows looks like a logger's.
			text = strings.TrimSpace(cmp.Or(lines[at].Raw, text))
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
