package format

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// The memory of the host or of one NUMA node, and what free(1) prints of the former.
const (
	KindMeminfo Kind = "/proc/meminfo"
	KindFree    Kind = "output of free"
)

var _ = registerFile(&row{
	kind: KindMeminfo, name: "meminfo",
	looks: starts("MemTotal:"), at: base("meminfo"), file: (*kernelFiles).meminfo,
	streams: []evidence.Stream{
		{Name: "/host/memory/total:bytes", Doc: "Sample."},
		{Name: "/host/memory/free:bytes", Doc: "Sample."},
		{Name: "/host/memory/available:bytes",
			Doc: "Sample. What could be had without swapping, by the kernel's estimate."},
		{Name: "/host/memory/cached:bytes", Doc: "Sample. Page cache and buffers."},
		{Name: "/host/memory/dirty:bytes", Doc: "Sample. Page cache not yet written."},
		{Name: "/host/memory/anon:bytes", Doc: "Sample."},
		{Name: "/host/memory/anon-huge:bytes", Doc: "Sample. Anonymous memory in huge pages."},
		{Name: "/host/memory/hugetlb:bytes", Doc: "Sample. Set aside as huge pages of hugetlbfs."},
		{Name: "/host/memory/swap:bytes", Doc: "Sample. Swap space."},
		{Name: "/host/memory/swap-free:bytes", Doc: "Sample."},
		{Name: "/host/numa/free:bytes", Doc: "Sample a node, its number in Text."},
		{Name: "/host/numa/total:bytes", Doc: "Sample a node, its number in Text."},
	},
})

var _ = registerFile(&row{
	kind: KindFree, name: "free",
	looks: looksFree, at: base("free"), file: (*kernelFiles).free,
	also: []string{"/host/memory/total:bytes", "/host/memory/free:bytes",
		"/host/memory/cached:bytes", "/host/memory/available:bytes"},
})

func looksFree(h head) bool {
	line, rest, _ := strings.Cut(h.start, "\n")
	f := strings.Fields(line)
	return len(f) >= 3 && f[0] == "total" && f[1] == "used" && f[2] == "free" &&
		strings.HasPrefix(strings.TrimSpace(rest), "Mem:")
}

var meminfoSamples = map[string]string{
	"MemTotal": "total", "MemFree": "free", "MemAvailable": "available", "Cached": "cached",
	"Buffers": "cached", "Dirty": "dirty", "AnonPages": "anon",
	"AnonHugePages": "anon-huge", "Hugetlb": "hugetlb", "SwapTotal": "swap", "SwapFree": "swap-free",
}

// meminfo reads the host's, or one NUMA node's, whose lines start with "Node 0 ".
func (s *kernelFiles) meminfo(r reading) error {
	if node, ok := strings.CutPrefix(path.Base(path.Dir(r.path)), "node"); ok && isNumber(node) {
		return pairs(strings.ReplaceAll(r.text, "Node "+node+" ", ""), ":", func(name string, v float64) {
			switch name {
			case "MemTotal":
				s.addFor("/host/numa/total:bytes", evidence.Sample, r.time, v, node)
			case "MemFree":
				s.addFor("/host/numa/free:bytes", evidence.Sample, r.time, v, node)
			}
		})
	}
	return sums(r.text, ":", meminfoSamples, func(stream string, v float64) {
		s.add("/host/memory/"+stream+":bytes", evidence.Sample, r.time, v)
	})
}

// free reads the table of free(1), in KiB or, with -h, with a unit at each number. The first line
// names the columns.
func (s *kernelFiles) free(r reading) error {
	lines := strings.Split(strings.TrimSpace(r.text), "\n")
	names := strings.Fields(lines[0])
	streams := map[string]string{"total": "total", "free": "free", "buff/cache": "cached", "available": "available"}
	for _, line := range lines[1:] {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "Mem:" {
			continue
		}
		for i, name := range names {
			if i+1 >= len(f) {
				break
			}
			v, err := humanSize(f[i+1])
			if err != nil {
				return err
			}
			if stream := streams[name]; stream != "" {
				s.add("/host/memory/"+stream+":bytes", evidence.Sample, r.time, v)
			}
		}
	}
	return nil
}

// humanSize reads what free prints: "768G", "1.5Gi", "17712" of KiB.
func humanSize(text string) (float64, error) {
	number := strings.TrimRight(text, "BKMGTPi")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v != v || v < 0 || v > 1e15 {
		return 0, fmt.Errorf("want a size, got %.40q", text)
	}
	unit := text[len(number):]
	if unit == "" {
		return v * 1024, nil
	}
	i := strings.IndexByte("BKMGTP", unit[0])
	for ; i > 0; i-- {
		v *= 1024
	}
	return v, nil
}
