package collect

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Capabilities that show more, by their bits (linux/capability.h).
const (
	capPtrace  = 19
	capAdmin   = 21
	capPerfmon = 38
	capBPF     = 39
)

// standIn is a process to probe with when none was named: our parent, mostly a shell of the same
// user.
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

// hasCapability reports whether /proc/PID/status lists a capability among the effective ones.
func hasCapability(status []byte, bit int) bool {
	caps, _ := strconv.ParseUint(statusField(status, "CapEff"), 16, 64)
	return caps>>bit&1 == 1
}

// machine says what the kernel's configuration and the user's rights permit, whichever process it
// is.
func machine() (as []Ability) {
	status, _ := readSome("/proc/self/status")
	has := func(bit int) bool { return hasCapability(status, bit) }
	privileged := has(capPerfmon) || has(capAdmin)
	as = append(as, rights([]right{
		{"CAP_SYS_PTRACE", has(capPtrace)}, {"CAP_PERFMON", privileged}, {"CAP_BPF", has(capBPF) || has(capAdmin)},
	}))

	if n, ok := number("/proc/sys/kernel/perf_event_paranoid"); ok {
		as = append(as, paranoid(n, privileged))
	} else {
		as = append(as, Ability{Tier: TierPerf, Name: "perf_event_paranoid", Say: "this kernel has no perf_event"})
	}

	as = append(as, kernelTypes())
	if l := line("/sys/kernel/security/lockdown"); strings.Contains(l, "[confidentiality]") {
		as = append(as, Ability{Tier: TierBPF, Name: "lockdown",
			Say: "the kernel is locked down (confidentiality): nobody may read its memory, not even root"})
	}
	as = append(as, throttling(release()))
	if shown, err := symbolsShown(); err != nil || !shown {
		// The kernel shows them to an ordinary user if both settings are low, to root with
		// kptr_restrict up to 1.
		more := "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
		if os.Geteuid() == 0 {
			more = "sudo sysctl kernel.kptr_restrict=1"
		}
		as = append(as, Ability{Tier: TierBPF, Name: "kernel symbols", More: more,
			Say: "the kernel hides the addresses of its functions from this user " +
				"(/proc/kallsyms has zeros), and does not name them on request either"})
	}

	as = append(as, delayAccounting(), pressure(), cgroups())
	if t := chosen(line("/sys/kernel/mm/transparent_hugepage/enabled")); t != "" {
		as = append(as, Ability{Tier: TierSystem, Name: "transparent huge pages", Ready: true, Say: t})
	}
	if c := line("/sys/devices/system/clocksource/clocksource0/current_clocksource"); c != "" {
		as = append(as, clockSource(c))
	}
	return as
}

// right is a capability, and whether this user has it.
type right struct {
	name string
	held bool
}

func rights(of []right) Ability {
	a := Ability{Tier: TierSystem, Name: "user", Say: "user " + strconv.Itoa(os.Geteuid())}
	if os.Geteuid() == 0 {
		a.Say = "root"
	}
	var lacking []string
	for _, r := range of {
		if !r.held {
			lacking = append(lacking, r.name)
		}
	}
	if a.Ready = len(lacking) == 0; a.Ready {
		a.Say += ", with CAP_SYS_PTRACE, CAP_PERFMON and CAP_BPF"
		return a
	}
	a.Say += ", without " + strings.Join(lacking, ", ") +
		": processes of other users are not seen, nor is what the kernel shows to privileged users only"
	a.More = "sudo whystall doctor"
	if os.Geteuid() == 0 {
		a.More = "in a container: docker run --privileged --pid=host, or kubectl debug --profile=sysadmin"
	}
	return a
}

func kernelTypes() Ability {
	a := Ability{Tier: TierBPF, Name: "BTF",
		Say: "no /sys/kernel/btf/vmlinux: a kernel built with CONFIG_DEBUG_INFO_BTF is needed"}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err == nil {
		a.Ready, a.Say = true, "the kernel describes its types in /sys/kernel/btf/vmlinux"
	}
	return a
}

func throttling(release string) Ability {
	a := Ability{Tier: TierBPF, Name: "throttling", Ready: true, Say: "Linux " + release +
		" marks each throttled thread"}
	if !atLeast(release, 6, 18) {
		a.Part = true
		a.Say = "Linux " + release +
			" shows that a cgroup is throttled, not which of its threads (6.18 does): such findings are supported, never proven"
	}
	return a
}

func delayAccounting() Ability {
	a := Ability{Tier: TierSystem, Name: "delay accounting"}
	switch n, ok := number("/proc/sys/kernel/task_delayacct"); {
	case ok && n == 1:
		a.Ready, a.Say = true, "on"
	case ok:
		a.Ready, a.Part, a.Say = true, true, "off: waits for block devices, swap and reclaim are not counted by thread"
		a.More = "sudo sysctl kernel.task_delayacct=1"
	default:
		a.Say = "this kernel does not have it, or cannot turn it on while running (5.14 and later can)"
	}
	return a
}

func pressure() Ability {
	a := Ability{Tier: TierSystem, Name: "PSI", Say: "no /proc/pressure: boot with psi=1 if the kernel supports it"}
	if line("/proc/pressure/cpu") != "" {
		a.Ready, a.Say = true, "/proc/pressure shows for how long work stood still"
	}
	return a
}

// clockSource judges how the kernel reads the time. A slow source costs the service as well.
func clockSource(name string) Ability {
	a := Ability{Tier: TierSystem, Name: "clock source", Say: name}
	switch name {
	case "tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page":
		a.Ready = true
	case "hpet", "acpi_pm":
		a.Say += ": reading the time is slow, here and in the service"
	}
	return a
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
	a := Ability{Tier: TierSystem, Name: "cgroups", Ready: true}
	switch {
	case v1 && v2:
		a.Say = "versions 1 and 2 mounted"
	case v1:
		a.Say = "version 1"
	case v2:
		a.Say = "version 2"
	default:
		a.Ready, a.Say = false, "no cgroup file system is mounted here: quota and memory limit are not seen"
	}
	return a
}

// atLeast reports whether a release, "6.18.44-cloud-amd64", is major.minor or later.
func atLeast(release string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

// symbolsShown reports whether the kernel shows us the addresses of its functions. The first
// symbols prove nothing: on x86 before Linux 6.15 per-CPU variables are counted from address zero.
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
