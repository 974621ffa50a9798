package paste

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

func cutRune(s string) (rune, int) { return utf8.DecodeRuneInString(s) }

// Prompts of shells and of tools that have one of their own. The groups are host and command.
var prompts = []*pattern.Regexp{
	pattern.New(`^\[?(?:\([\w.-]+\) ?)?[\w.-]+@(?P<host>[\w.-]+)(?:[: ]+[^\s$#%>][^$#%>]{0,80}?| *)\]? ?[$#%>❯]\s+(?P<cmd>\S.*)$`),
	pattern.New(`^\[?(?:\([\w.-]+\) ?)?[\w.-]+@(?P<host>[\w.-]+)[: ][^$#%>]{0,80}\]?[$#%>](?P<cmd>[a-z/].*)$`),
	pattern.New(`^(?:[➜❯λ▶»]|╰─+[$#>➤]?)\s+(?:[~\w./-]+ )?(?:git:\([^)]*\) ?)?(?:[✗±] ?)?(?P<cmd>\S.*)$`),
	pattern.New(`^\([\w.-]+\) ?[~/][\w./~-]* ?[#$%>]\s+(?P<cmd>\S.*)$`),
	pattern.New(`^(?:bash|sh|ash|zsh|dash)-[\d.]+[$#]\s*(?P<cmd>\S.*)$`),
	pattern.New(`^(?:mysql|MySQL|MariaDB|TiDB|tidb|sql|sqlite|SQL)(?: ?[\[(][^\])]{0,60}[\])]+)?>\s+(?P<cmd>\S.*)$`),
	pattern.New(`^(?:MySQL|TiDB|tidb) [^>]{0,60}>\s+(?P<cmd>\S.*)$`),
	pattern.New(`^(?:redis |valkey )?(?P<host>[\w.-]+|\[[0-9a-f:]+\]):\d{2,5}(?:\[\d+\])?(?:\(\w+\))?>\s+(?P<cmd>\S.*)$`),
	pattern.New(`^(?:redis|valkey|127\.0\.0\.1)(?:\[\d+\])?>\s+(?P<cmd>\S.*)$`),
	pattern.New(`^[\w-]+[=*!-][#>]\s+(?P<cmd>[A-Za-z\\].*)$`),                                                                                                                                                 // psql
	pattern.New(`^[A-Za-z][\w-]*[#>] (?P<cmd>(?:\\[a-z]|(?i:select|explain|analyze|prepare|execute|set|show|insert|update|delete|create|drop|alter|begin|commit|vacuum)(?: .*)?;$|(?i:select|explain) ).*)$`), // psql's, where it shows no "="
	pattern.New(`^\((?:gdb|pprof|dlv|lldb)\)\s+(?P<cmd>\S.*)$`),
	pattern.New(`^PS [A-Z]:\\[^>]*>\s*(?P<cmd>\S.*)$`),
	pattern.New(`^[A-Z]:\\[^>]*>\s*(?P<cmd>\S.*)$`),
	pattern.New(`^\[\d\d:\d\d(?::\d\d)?\] ?[$#%] (?P<cmd>[\w./].*)$`),
	watching,
	pattern.New(`^==> (?P<cmd>/?[^ ]+) <==$`), // tail and head of several files
}

// watching is what watch writes above the output of its command.
var watching = pattern.New(`^(?:Every|Alle) \d{1,6}[.,]\d+s: (?P<cmd>\S.*?)(?:\s{2,}(?:(?P<host>[\w.-]+): )?\S.*)?$`)

// Prompts that are so short that only a known command tells them from output.
var shortPrompt = pattern.New(`^(?P<host>(?:[A-Za-z][\w.-]*)?)(?:(?::?[~/][\w./~-]*) ?)?(?:[$%]|[#>]|→) ?(?P<cmd>\S.*)$`)

// dollar is a prompt by itself: few outputs start a line with it.
var dollar = pattern.New(`^[$] (?P<cmd>[\w./~(][^=:]*(?:\s.*)?|[A-Z_]+=\S+ .*)$`)

// idlePrompt is a prompt at which nobody typed, or a key that ended a tool.
var idlePrompt = pattern.New(`^(?:\[?(?:\([\w.-]+\) ?)?[\w.-]+@[\w.-]+(?:[: ]+[^\s$#%>][^$#%>]{0,80}?|:? *)\]? ?[$#%>❯]` +
	`|(?:bash|sh|ash|zsh|dash)-[\d.]+[$#]|(?:mysql|MySQL|MariaDB|TiDB|tidb)(?: ?[\[(][^\])]{0,60}[\])]+)?>|\((?:gdb|pprof|dlv|lldb)\)` +
	`|\[[^\s\]]*[\w.-]+@[\w.-]+(?: [^\]]*)?\] ?[$#]|[a-z][\w-]*=[#>*!]|(?:redis )?[\w.-]+:\d{2,5}(?:\[\d+\])?>|[$#]|(?:\^[CDZ\\])+)$`)

// idle empties a line that is a prompt and nothing more.
func (l *Line) idle() {
	text := strings.TrimSpace(l.Text)
	if len(text) < 128 && text != "" && strings.IndexByte("$#%>)CDZ\\", text[len(text)-1]) >= 0 ||
		strings.HasSuffix(text, "❯") {
		if idlePrompt.MatchString(text) {
			l.Text = ""
		}
	}
}

// prompt tells a prompt and its command from output.
func (l *Line) prompt() {
	text := strings.TrimLeft(l.Text, " \t")
	// A command without its prompt: told by a variable before it, which no output has.
	if name, _, ok := strings.Cut(text, "="); ok && len(text) < 1024 && name != "" &&
		strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" && commandAfter(text) {
		l.command(text, "")
		return
	}
	if text == "" || len(text) > 4096 || !strings.ContainsAny(text[:min(len(text), 160)], "$#>%❯➜λ▶»→)╰") &&
		!strings.HasPrefix(text, "Every ") && !strings.HasPrefix(text, "Alle ") {
		return
	}
	for _, re := range prompts {
		if m := re.FindStringSubmatch(text); m != nil {
			l.command(named(re, m, "cmd"), named(re, m, "host"))
			if re == prompts[len(prompts)-1] {
				l.Command = "cat " + l.Command
			}
			return
		}
	}
	if m := shortPrompt.FindStringSubmatch(text); m != nil && commandAfter(named(shortPrompt, m, "cmd")) {
		l.command(named(shortPrompt, m, "cmd"), named(shortPrompt, m, "host"))
		return
	}
	if m := dollar.FindStringSubmatch(text); m != nil {
		l.command(named(dollar, m, "cmd"), "")
	}
}

func (l *Line) command(cmd, host string) {
	l.Command = strings.TrimSpace(cmd)
	switch host {
	case "", "localhost", "127.0.0.1":
	default:
		l.Host = host
	}
}

func named(re *pattern.Regexp, m []string, name string) string {
	if i := re.SubexpIndex(name); i >= 0 {
		return m[i]
	}
	return ""
}

// IsCommand reports whether a line reads like a command that was typed, without its prompt.
func IsCommand(text string) bool { return len(text) < 200 && commandAfter(text) }

// commandAfter reports whether text is a command that a person would run to see something.
func commandAfter(text string) bool {
	text = strings.TrimSpace(text)
	for {
		word, rest, _ := strings.Cut(text, " ")
		name, _, assigned := strings.Cut(word, "=")
		if word == "sudo" || word == "time" || word == "nohup" || assigned &&
			strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" && name != "" {
			if rest == "" {
				return false
			}
			text = strings.TrimSpace(rest)
			continue
		}
		if word == "sleep" { // it says how much time lies between two outputs
			return rest != "" && rest[0] >= '0' && rest[0] <= '9'
		}
		if name := path.Base(strings.TrimSuffix(word, ";")); !commands[strings.TrimSuffix(name,
			".py")] && !commands[strings.TrimSuffix(strings.TrimSuffix(name, "-bpfcc"), ".bt")] {
			return false
		}
		// "top - 10:00:00 up" and "free  shared" are no commands.
		return rest == "" || !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "- ") &&
			!strings.HasPrefix(rest, "= ") && !strings.HasPrefix(rest, ": ") &&
			!strings.Contains(rest, " : ")
	}
}

// commands are those whose output people paste, and those that lead to them.
var commands = words(`
	awk bash biolatency bpftrace cat cd cpudist crictl curl date dmesg docker echo eu-stack export free funclatency
	gcore gdb go grep egrep head hostname htop iostat ip jcmd journalctl jstack jstat kill kubectl less ls lsof ltrace mount
	mpstat mysql mysqladmin netstat nsenter numactl numastat offcputime perf pidof pgrep pidstat podman pprof ps psql pstack
	py-spy redis-cli runqlat runqslower sar sed slabtop softirqs sort ss ssh strace stress stress-ng sysctl systemctl tail
	timeout top tree uname uptime vmstat watch wc whystall xargs zcat zgrep etcdctl oc nerdctl dstat atop iotop lscpu taskset
	chrt nproc pmap lsblk df du id whoami ifstat nstat drsnoop wakeuptime cachestat tcpretrans biosnoop softirqs hardirqs
	runqlen profile offwaketime ext4slower execsnoop opensnoop syscount llcstat memleak schbench wrk hey ab sysbench fio
	argdist biolatpcts biopattern biotop bitesize btrfsdist btrfsslower cachetop capable compactsnoop cpuunclaimed criticalstat dbslower
	dbstat dcsnoop dcstat deadlock execsnoop exitsnoop ext4dist f2fsslower filelife fileslower filetop funccount funcgraph funcslower
	functrace gethostlatency iolatency iosnoop javagc killsnoop klockstat kvmexit mdflush mysqld_qslower netqtop nfsdist nfsslower
	numasched offwaketime oomkill readahead reset-ftrace slabratetop softirqslower solisten stackcount statsnoop swapin syncsnoop tcpaccept
	tcpconnect tcpconnlat tcpdrop tcplife tcprtt tcpstates tcpsubnet tcpsynbl tcptop tcptracer threadsnoop tpoint ttysnoop uprobe kprobe vfscount
	vfsstat virtiostat wqlat xfsdist xfsslower zfsdist zfsslower nfsiostat zpool sar blktrace blkparse turbostat`)

func words(text string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(text) {
		m[w] = true
	}
	return m
}
