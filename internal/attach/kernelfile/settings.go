package kernelfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// Facts of settings. A mode of huge pages is in Of: always, madvise or never.
const (
	FactMinFree       attach.FactName = "/host/sysctl/vm.min_free_kbytes:bytes"
	FactZoneReclaim   attach.FactName = "/host/sysctl/vm.zone_reclaim_mode:mode"
	FactNUMABalancing attach.FactName = "/host/sysctl/kernel.numa_balancing:bool"
	FactTHPEnabled    attach.FactName = "/host/thp/enabled:text"
	FactTHPDefrag     attach.FactName = "/host/thp/defrag:text"
)

// setting is a name as sysctl writes it, or "transparent_hugepage/enabled", and its value.
type setting struct{ name, value string }

var sysctl = &attach.Kind{
	Name: "sysctl", Hints: []string{"=", "sysctl:"},
	Claim: func(lines []paste.Line) int {
		if _, ok := parseSysctl(strings.TrimSpace(lines[0].Text)); !ok {
			return 0
		}
		sure := false // the other roots are names in programs as well
		n := run(lines, func(text string) bool {
			s, ok := parseSysctl(text)
			root, _, _ := strings.Cut(s.name, ".")
			sure = sure || ok && (root == "vm" || root == "kernel" || root == "net" || root == "fs")
			return ok || strings.HasPrefix(text, "sysctl: ") || strings.HasPrefix(text, "#") && len(text) < 120
		})
		if _, v, _ := strings.Cut(lines[0].Text, "="); !sure || n < 3 && strings.ContainsAny(v, "(){};\"") {
			return 0
		}
		return n
	},
	Read: func(p *attach.Part) attach.Reading {
		var all []setting
		for _, l := range p.Lines {
			if s, ok := parseSysctl(strings.TrimSpace(l.Text)); ok {
				all = append(all, s)
			}
		}
		return readSettings(all)
	},
}

var sysctlRoots = oneOf("abi crypto debug dev fs fscache kernel net sunrpc user vm xen")

// parseSysctl reads "vm.swappiness = 60".
func parseSysctl(text string) (s setting, ok bool) {
	name, v, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	root, rest, dotted := strings.Cut(name, ".")
	if !ok || !dotted || rest == "" || !sysctlRoots(root) ||
		strings.ContainsAny(name, " \t\"'(){}[]:,+&|") || rest[0] >= 'A' && rest[0] <= 'Z' {
		return s, false
	}
	return setting{name, strings.Join(strings.Fields(v), " ")}, true
}

// choice is a line such as "always [madvise] never": the kernel's way to write a choice, of which
// only huge pages' are known by content.
var choice = &attach.Kind{
	Name: "transparent_hugepage", Hints: []string{"["},
	Claim: func(lines []paste.Line) int {
		return run(lines, func(text string) bool { _, ok := parseChoice(text); return ok })
	},
	Read: func(p *attach.Part) attach.Reading {
		var all []setting
		for _, l := range p.Lines {
			if s, ok := parseChoice(strings.TrimSpace(l.Text)); ok {
				all = append(all, s)
			}
		}
		return readSettings(all)
	},
}

// parseChoice tells the settings by what there is to choose from: defrag has defer.
func parseChoice(text string) (s setting, ok bool) {
	name := "transparent_hugepage/enabled"
	for _, w := range strings.Fields(text) {
		bare := strings.Trim(w, "[]")
		switch bare {
		case "always", "madvise", "never", "inherit":
		case "defer", "defer+madvise":
			name = "transparent_hugepage/defrag"
		default:
			return s, false
		}
		if w != bare {
			s.value = bare
		}
	}
	s.name = name
	return s, s.value != ""
}

// chosen returns what is in brackets, or the whole of a value.
func chosen(v string) string {
	if _, after, ok := strings.Cut(v, "["); ok {
		v, _, _ = strings.Cut(after, "]")
	}
	return v
}

// bites says which cause a setting is known for, "" if none, and what it does.
func bites(s setting) (cause, why string) {
	v := chosen(s.value)
	switch s.name {
	case "vm.zone_reclaim_mode":
		if v != "0" {
			return "direct-reclaim", "a NUMA node frees its own memory before it uses another's"
		}
	case "vm.dirty_ratio":
		if n, ok := value(v); ok && n > 40 {
			return "disk-wait",
				"that part of available memory may be dirty before writers have to wait, and then they wait long"
		}
	case "transparent_hugepage/enabled":
		if v == "always" {
			return "thp-bloat", "khugepaged may fill memory that a runtime has given back"
		}
	case "transparent_hugepage/defrag":
		if v == "always" {
			return "direct-reclaim", "every fault that wants a huge page may free and compact memory itself"
		}
	}
	return "", ""
}

// shown are the settings that matter for latency, the first ones most.
var shown = []string{"transparent_hugepage/enabled", "transparent_hugepage/defrag",
	"vm.min_free_kbytes", "vm.zone_reclaim_mode", "kernel.numa_balancing", "vm.swappiness",
	"vm.watermark_scale_factor", "vm.dirty_ratio",
	"vm.dirty_background_ratio", "vm.dirty_bytes", "net.core.somaxconn",
	"net.ipv4.tcp_max_syn_backlog", "kernel.sched_cfs_bandwidth_slice_us", "vm.overcommit_memory",
	"kernel.pid_max", "kernel.threads-max"}

func readSettings(all []setting) attach.Reading {
	r := attach.Reading{Title: plural(len(all), "setting of the kernel", "settings of the kernel"),
		State: attach.Context, Means: "None of them is one that is known to bite."}
	values := map[string]string{}
	var risks []string
	for _, s := range all {
		values[s.name] = s.value
		r.Facts = append(r.Facts, settingFacts(s)...)
		cause, why := bites(s)
		if cause == "" {
			continue
		}
		text := fmt.Sprintf("%s is %s: %s", s.name, printed(chosen(s.value)), why)
		risks = append(risks, text)
		r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Risk, Proof: []string{text}})
	}
	for _, name := range shown {
		if v, ok := values[name]; ok {
			r.Figures = append(r.Figures, name+" = "+printed(chosen(v)))
		}
	}
	for _, s := range all {
		if len(r.Figures) < 3 && !slices.Contains(shown, s.name) {
			r.Figures = append(r.Figures, printed(s.name)+" = "+
				printed(strings.Join(strings.Fields(chosen(s.value)), " "))+inPages(s))
		}
	}
	if chosen(values["transparent_hugepage/defrag"]) == "madvise" ||
		values["transparent_hugepage/defrag"] == "" && chosen(values["transparent_hugepage/enabled"]) == "madvise" {
		r.Means += " A program that asks for huge pages (MADV_HUGEPAGE) does free and compact memory itself when it touches them; others do not."
	}
	r.Not = "that a setting costs anybody time: what it does shows in counters and recordings"
	if len(risks) > 0 {
		r.State = attach.CannotTell
		r.Means = "The setting " + risks[0] + "."
		r.Next = []attach.Next{{Command: "whystall diagnose --pid PID", Why: "whether it costs the service anything"}}
	}
	for _, s := range attach.AtLimit(r.Facts) {
		r.State = attach.CannotTell
		r.Signs = append(r.Signs, s)
		r.Figures = append(slices.Clone(s.Proof), r.Figures...)
		if len(risks) == 0 {
			r.Means = "A table of the host is full: the kernel drops packets or closes connections then, and no thread of the service shows it."
		}
	}
	return r
}

// inPages says in bytes what a setting counts in pages.
func inPages(s setting) string {
	pages := strings.Fields(s.value)
	if (s.name == "net.ipv4.tcp_mem" || s.name == "net.ipv4.udp_mem") && len(pages) == 3 {
		return fmt.Sprintf(" pages: at most %s for all such sockets", mem(float(pages[2])*pageSize))
	}
	return ""
}

func settingFacts(s setting) []attach.Fact {
	v, isNumber := value(s.value)
	switch s.name {
	case "vm.min_free_kbytes":
		if isNumber {
			return []attach.Fact{{Name: FactMinFree, Value: v * 1024}}
		}
	case "net.ipv4.tcp_max_orphans":
		return []attach.Fact{{Name: FactOrphansMax, Value: v}}
	case "net.netfilter.nf_conntrack_max", "net.nf_conntrack_max":
		return []attach.Fact{{Name: FactConntrackMax, Value: v}}
	case "net.netfilter.nf_conntrack_count":
		return []attach.Fact{{Name: FactConntrack, Value: v}}
	case "vm.zone_reclaim_mode":
		return []attach.Fact{{Name: FactZoneReclaim, Value: v}}
	case "kernel.numa_balancing":
		return []attach.Fact{{Name: FactNUMABalancing, Value: v}}
	case "transparent_hugepage/enabled":
		return []attach.Fact{{Name: FactTHPEnabled, Value: 1, Of: chosen(s.value)}}
	case "transparent_hugepage/defrag":
		return []attach.Fact{{Name: FactTHPDefrag, Value: 1, Of: chosen(s.value)}}
	}
	return nil
}
