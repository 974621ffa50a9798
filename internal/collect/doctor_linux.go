package collect

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Capabilities that let more be seen, by their bits (linux/capability.h).
const (
	capPtrace  = 19
	capAdmin   = 21
	capPerfmon = 38
	capBPF     = 39
)

// standIn is a process to ask about where none was named: our parent, mostly a shell of the same user.
func standIn() (pid, nspid int) { return os.Getppid(), os.Getppid() }

func line(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func number(name string) (int, bool) {
	n, err := strconv.Atoi(line(name))
	return n, err == nil
}

// hasCapability reads the effective ones of /proc/PID/status.
func hasCapability(status []byte, bit int) bool {
	caps, _ := strconv.ParseUint(statusField(status, "CapEff"), 16, 64)
	return caps>>bit&1 == 1
}

// machine tells what the kernel's configuration and the user's rights permit, whichever process it is.
func machine() (as []Ability) {
	status, _ := readSome("/proc/self/status")
	has := func(bit int) bool { return hasCapability(status, bit) }
	privileged := has(capPerfmon) || has(capAdmin)

	user := "user " + strconv.Itoa(os.Geteuid())
	if os.Geteuid() == 0 {
		user = "root"
	}
	var lack []string
	for _, c := range []struct {
		name string
		ok   bool
	}{{"CAP_SYS_PTRACE", has(capPtrace)}, {"CAP_PERFMON", privileged}, {"CAP_BPF", has(capBPF) || has(capAdmin)}} {
		if !c.ok {
			lack = append(lack, c.name)
		}
	}
	say, more := user+", with CAP_SYS_PTRACE, CAP_PERFMON and CAP_BPF", ""
	if len(lack) > 0 {
		say, more = user+", without "+strings.Join(lack, ", ")+": processes of other users, and what the kernel tells only the privileged, are not seen", "sudo whystall doctor"
		if os.Geteuid() == 0 {
			more = "in a container: docker run --privileged --pid=host, or kubectl debug --profile=sysadmin"
		}
	}
	as = append(as, ability("system", "user", len(lack) == 0, say, more))

	if n, ok := number("/proc/sys/kernel/perf_event_paranoid"); ok {
		as = append(as, paranoid(n, privileged))
	} else {
		as = append(as, ability("perf_event", "perf_event_paranoid", false, "this kernel has no perf_event", ""))
	}

	_, err := os.Stat("/sys/kernel/btf/vmlinux")
	as = append(as, ability("eBPF", "BTF", err == nil, map[bool]string{true: "the kernel describes its types in /sys/kernel/btf/vmlinux", false: "no /sys/kernel/btf/vmlinux: a kernel built with CONFIG_DEBUG_INFO_BTF is needed"}[err == nil], ""))
	if l := line("/sys/kernel/security/lockdown"); strings.Contains(l, "[confidentiality]") {
		as = append(as, ability("eBPF", "lockdown", false, "the kernel is locked down (confidentiality): reading its memory is refused, to root too", ""))
	}
	rel := release()
	a := ability("eBPF", "throttling", true, "Linux "+rel+" marks each thread that is throttled", "")
	if !atLeast(rel, 6, 18) {
		a.Part, a.Say = true, "Linux "+rel+" tells that a group is throttled, not which of its threads (6.18 does): supported, never proven"
	}
	as = append(as, a)
	if shown, err := symbolsShown(); err != nil || !shown {
		// An ordinary user is shown them where both are low, root with kptr_restrict up to 1.
		more := "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
		if os.Geteuid() == 0 {
			more = "sudo sysctl kernel.kptr_restrict=1"
		}
		as = append(as, Ability{Tier: "eBPF", Name: "kernel symbols", Say: "the kernel shows this user no addresses of its functions (/proc/kallsyms has zeros): it does not name them when it is asked either", More: more})
	}

	if n, ok := number("/proc/sys/kernel/task_delayacct"); ok && n == 1 {
		as = append(as, ability("system", "delay accounting", true, "on", ""))
	} else if ok {
		as = append(as, Ability{Tier: "system", Name: "delay accounting", Ready: true, Part: true, Say: "off: waits for blocks, swap and reclaim are not counted by thread", More: "sudo sysctl kernel.task_delayacct=1"})
	} else {
		as = append(as, ability("system", "delay accounting", false, "this kernel does not have it, or cannot switch it on while it runs (5.14 and later can)", ""))
	}
	psi := line("/proc/pressure/cpu") != ""
	as = append(as, ability("system", "PSI", psi, map[bool]string{true: "/proc/pressure tells how long work stood still", false: "no /proc/pressure: boot with psi=1 where the kernel has it"}[psi], ""))
	as = append(as, cgroups())
	if t := chosen(line("/sys/kernel/mm/transparent_hugepage/enabled")); t != "" {
		as = append(as, ability("system", "transparent huge pages", true, t, ""))
	}
	if c := line("/sys/devices/system/clocksource/clocksource0/current_clocksource"); c != "" {
		as = append(as, ability("system", "clock source", c == "tsc" || c == "kvm-clock" || c == "arch_sys_counter" || c == "hyperv_clocksource_tsc_page", c+map[bool]string{true: ": reading the time is slow, here and in the service"}[c == "hpet" || c == "acpi_pm"], ""))
	}
	return as
}

// chosen is the word in brackets.
func chosen(s string) string {
	_, s, ok := strings.Cut(s, "[")
	s, _, ok2 := strings.Cut(s, "]")
	if !ok || !ok2 {
		return ""
	}
	return s
}

func cgroups() Ability {
	b, _ := readSome("/proc/self/mountinfo")
	var v1, v2 bool
	for l := range strings.Lines(string(b)) {
		// After the separator: file system, source, options.
		_, rest, _ := strings.Cut(l, " - ")
		f := strings.Fields(rest)
		switch {
		case len(f) == 3 && f[0] == "cgroup2":
			v2 = true
		case len(f) == 3 && f[0] == "cgroup" && strings.Contains(","+f[2]+",", ",cpu,"):
			v1 = true
		}
	}
	name := map[[2]bool]string{{true, false}: "version 1", {false, true}: "version 2", {true, true}: "versions 1 and 2 mounted"}[[2]bool{v1, v2}]
	if name == "" {
		return ability("system", "cgroups", false, "no cgroup file system is mounted here: quota and memory limit are not seen", "")
	}
	return ability("system", "cgroups", true, name, "")
}

// atLeast compares a release: "6.18.44-cloud-amd64".
func atLeast(release string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

// symbolsShown tells whether kernel addresses are shown to us. The first symbols are none to go by: on x86 before Linux 6.15 per-CPU
// variables are counted from address zero.
func symbolsShown() (bool, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return false, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		// "ffffffff81000000 T _text"
		w := strings.Fields(s.Text())
		if len(w) >= 3 && (w[1] == "T" || w[1] == "t") {
			return strings.Trim(w[0], "0") != "", nil
		}
	}
	return false, nil
}
