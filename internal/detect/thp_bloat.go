package detect

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

const (
	rssStream  = "/process/rss:bytes"
	hugeStream = "/process/anon-huge:bytes"
)

var _ = register(&Detector{
	Name:  "thp-bloat",
	Title: "Huge pages fill memory that the runtime has given back",
	Needs: []string{rssStream, hugeStream}, // either
	Go:    true,
	// A tenth of the resident memory; and see bloatLeast.
	Floor: Floor{Share: 0.10},
	Doc: `What happens
  The runtime returns unused 4 KiB pages to the kernel. Where transparent huge pages are on, the
  kernel's khugepaged later merges what is left of each 2 MiB with fresh empty pages into one huge
  page: what was returned is resident again, and the runtime does not know. The process holds far
  more memory than its heap, idle heap and stacks. In the worst case 29 MB became 622 within 5 s
  [Go 1.21, khugepaged sped up]; two nodes of one database held 4.8 and 2.4 GB.

Evidence
  Resident memory, without mapped files, against how much memory the runtime thinks it holds (Sys
  - HeapReleased of runtime.MemStats): the gap decides. AnonHugePages of the process
  (smaps_rollup, read at most once, and not of a large process), the cgroup's anon_thp, huge pages
  that khugepaged made meanwhile, and the settings of transparent huge pages, which alone prove
  nothing.

Not to be taken for
  MADV_FREE: Go 1.12 to 1.15 return memory in such a way that the kernel takes it only when it
  needs it. Resident memory stays high as well, without any huge page (LazyFree in smaps), and
  harms nobody. Memory that is not Go's: C libraries, mapped files. A large heap: the runtime
  knows of it. Huge pages under the live heap: they help.

Remedy
  For the whole host: echo 0 > /sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none; a
  huge page is then made only of memory in use. Or madvise instead of always in ../enabled. For
  the process: prctl PR_SET_THP_DISABLE in what starts it; Go 1.21.6 and later:
  GODEBUG=disablethp=1. It costs the speed that huge pages bring to a large live heap.

Verify
  Resident memory falls to what the runtime holds: run whystall diagnose again after the process
  has been restarted, since the setting does not split huge pages that exist.

Sources
  Arthur Mao, Gopher China 2020; golang/go#8832, #55328, #61718, #64332;
  Documentation/admin-guide/mm/transhuge.rst; the Go GC guide, go.dev/doc/gc-guide.`,
	Look: lookTHPBloat,
	Tell: tellTHPBloat,
})

// bloatLeast is worth a person's attention. The runtime's own figures differ by some MiB from what
// is resident.
const bloatLeast = 64 << 20

// hugePage is that of x86 and of arm64 with small pages of 4 KiB.
const hugePage = 2 << 20

// memory is the ledger's, or from readings alone where there is no ledger. It is nil where the
// target's memory was not read.
func (p *Pass) memory() *account.Memory {
	if p.Ledger != nil && p.Ledger.Memory != nil {
		return p.Ledger.Memory
	}
	return p.Facts.Memory
}

func lookTHPBloat(p *Pass) {
	m := p.memory()
	if m == nil {
		lookSmapsAlone(p)
		return
	}
	held := m.Held()
	if held == 0 {
		p.Blind("how much memory the Go runtime thinks it holds: needs runtime.MemStats (/debug/pprof/heap?debug=1, /debug/vars, or go_memstats_* of /metrics)")
		return
	}
	gap := max(0, m.RSS-m.Files-held) // beyond the runtime's view
	if gap < bloatLeast || ratio(gap, m.RSS) < p.det.Floor.Share {
		p.Bound(0, ratio(gap, m.RSS), finding.OfMemory)
		p.Clear("%s resident, %s more than the runtime and mapped files account for (looked into from %s and %s up)",
			finding.Bytes(m.RSS), finding.Bytes(gap), finding.Bytes(bloatLeast), percent(p.det.Floor.Share))
		return
	}
	if m.AnonHuge >= 0 {
		if m.Huge < bloatLeast {
			p.Bound(0, ratio(m.Huge, m.RSS), finding.OfMemory)
			p.Clear("%s resident beyond what the runtime holds, and huge pages can explain %s of it%s", finding.Bytes(gap), finding.Bytes(m.Huge), lazyText(m))
			return
		}
		p.ClaimBytes("huge pages beyond the runtime's view", m.Huge, m.Huge, m.RSS)
		return
	}
	// Without smaps the cgroup's own count is a bound from above: others may be in it.
	huge, ok := latest(p, "/cgroup/memory/anon-huge:bytes")
	released, _ := latest(p, "/go/memory/heap/released:bytes")
	part := min(int64(huge), gap, int64(released))
	switch {
	case ok && part < bloatLeast:
		p.Bound(0, ratio(part, m.RSS), finding.OfMemory)
		p.Clear("%s resident beyond what the runtime holds, and its memory cgroup has %s in huge pages", finding.Bytes(gap), finding.Bytes(int64(huge)))
	case lazyGo(p.Facts.GoVersion):
		p.Blind(fmt.Sprintf("%s resident beyond what the runtime holds; %s returns memory by MADV_FREE, which looks the same: only smaps shows the difference, and it is not read for so large a process (grep -E 'LazyFree|AnonHuge' /proc/PID/smaps_rollup, once)",
			finding.Bytes(gap), p.Facts.GoVersion))
	case !ok:
		p.Blind(fmt.Sprintf("%s resident beyond what the runtime holds, but not whether in huge pages: that needs smaps_rollup, which is not read for so large a process, or memory.stat of the memory cgroup", finding.Bytes(gap)))
	default:
		p.ClaimBytes("unexplained", min(part, m.Unexplained), m.Unexplained, m.RSS)
		p.Cap("huge pages are counted by the memory cgroup, which may hold other processes")
		if p.Facts.GoVersion == "" {
			p.Doubt("the Go version is not known: 1.12 to 1.15 return memory by MADV_FREE, which looks the same")
		}
	}
}

// lookSmapsAlone looks at a smaps that somebody attached: it shows huge pages in Go's heap, and not
// what the runtime holds there.
func lookSmapsAlone(p *Pass) {
	arena, okArena := latest(p, "/process/smaps/go-arena:bytes")
	huge, okHuge := latest(p, "/process/smaps/go-arena/anon-huge:bytes")
	switch {
	case !okArena && !p.Set.Has(hugeStream):
		p.Blind("resident memory: it needs a recording of the process (--pid), or its smaps")
	case !okArena || !okHuge:
		p.Blind("how much of the resident memory is Go's heap: that needs runtime.MemStats (/debug/pprof/heap?debug=1, /debug/vars, or go_memstats_* of /metrics), or a whole smaps")
	case int64(huge) < bloatLeast || huge/arena < p.det.Floor.Share:
		p.Bound(0, huge/max(1, arena), finding.OfMemory)
		p.Clear("%s of the %s resident in Go's heap are huge pages", finding.Bytes(int64(huge)),
			finding.Bytes(int64(arena)))
	default:
		p.ClaimBytes("huge pages in Go's heap", int64(huge), int64(arena), int64(arena))
		p.Doubt("it is not known what the runtime holds, and huge pages under live memory help; compare with Sys - HeapReleased of runtime.MemStats, or with smaps of a node that has huge pages off")
	}
}

// lazyGo reports whether a version of Go uses MADV_FREE by default.
func lazyGo(version string) bool {
	for _, v := range []string{"go1.12", "go1.13", "go1.14", "go1.15"} {
		if version == v || strings.HasPrefix(version, v+".") {
			return true
		}
	}
	return false
}

func lazyText(m *account.Memory) string {
	if m.LazyFree < bloatLeast {
		return ""
	}
	return fmt.Sprintf("; %s were returned by MADV_FREE (LazyFree): the kernel takes them when it needs memory", finding.Bytes(m.LazyFree))
}

func tellTHPBloat(p *Pass, f *finding.Finding) {
	m := p.memory()
	if m == nil {
		f.Summary = fmt.Sprintf("%s of Go's resident heap are huge pages", finding.Bytes(p.pooled()))
		p.Proof("smaps", "AnonHugePages %s in the mappings at 0xc000000000", finding.Bytes(p.pooled()))
	} else {
		f.Summary = fmt.Sprintf("%s of %s resident are huge pages that fill memory which the Go runtime has returned", finding.Bytes(p.pooled()), finding.Bytes(m.RSS))
		released, _ := latest(p, "/go/memory/heap/released:bytes")
		p.Proof("memory ledger",
			"resident %s, mapped files %s, the runtime holds %s (Sys - HeapReleased; it has released %s)",
			finding.Bytes(m.RSS), finding.Bytes(m.Files), finding.Bytes(m.Held()), finding.Bytes(int64(released)))
		if m.AnonHuge >= 0 {
			p.Proof("smaps_rollup", "AnonHugePages %s, LazyFree %s", finding.Bytes(m.AnonHuge),
				finding.Bytes(m.LazyFree))
			// The difference cannot lie under what the runtime holds, even if all of that were huge
			// pages.
			if 2*max(0, m.AnonHuge-m.Held()) < p.pooled() {
				p.Doubt("most of the huge pages may lie under what the runtime holds, and other memory beyond it")
			}
		}
		if huge, ok := latest(p, "/cgroup/memory/anon-huge:bytes"); ok {
			p.Proof("memory.stat", "anonymous memory of the cgroup in huge pages: %s", finding.Bytes(int64(huge)))
		}
		if m.End > m.Begin+bloatLeast {
			p.Proof("/proc/PID/stat", "resident memory grew from %s to %s meanwhile",
				finding.Bytes(m.Begin), finding.Bytes(m.End))
		}
	}
	// Only merging fills what was returned. Memory of C is huge pages from its first touch, which
	// is counted apart.
	if n, ok := latest(p, "/host/vmstat/thp/collapse:pages"); ok && int64(n)*hugePage < p.pooled()/2 {
		p.Doubt("khugepaged has made %.0f huge pages since the host started, too few for this: memory of C libraries in huge pages looks the same", n)
	}
	if n, _, ok := p.Set.Delta("/host/vmstat/thp/collapse:pages"); ok && n > 0 {
		p.Proof("/proc/vmstat", "khugepaged made %.0f huge pages meanwhile (all processes)", n)
	}
	if r, ok := p.Set.Fact("/host/thp/enabled:text"); ok {
		text := "transparent_hugepage/enabled is " + r.Text
		if none, ok := p.Set.Fact("/host/thp/khugepaged/max-ptes-none:pages"); ok {
			text += fmt.Sprintf(", khugepaged/max_ptes_none %.0f of 511", none.Value)
		}
		p.Proof("settings", "%s", text)
	}
	f.Remedy = append(f.Remedy,
		"echo 0 > /sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none: huge pages are then made only of memory in use",
		"or echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; both apply to the whole host until it reboots; restart the process to get rid of the existing ones")
	if !lazyGo(p.Facts.GoVersion) {
		f.Remedy = append(f.Remedy, "or, for this process alone: GODEBUG=disablethp=1 (Go 1.21.6 and later)")
	}
	f.Verify = p.verify("resident memory has fallen to what the runtime holds")
}
