package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// The free lists of the page allocator, and the watermarks of its zones.
const (
	KindBuddyinfo Kind = "/proc/buddyinfo"
	KindZoneinfo  Kind = "/proc/zoneinfo"
)

var _ = registerFile(&row{
	kind: KindBuddyinfo, name: "buddyinfo",
	looks: looksBuddy, at: base("buddyinfo"), file: (*kernelFiles).buddyinfo,
	streams: []evidence.Stream{
		{Name: "/host/buddy/free:bytes",
			Doc: "Sample a zone, \"node 0 Normal\" in Text. Free memory in the allocator's lists."},
		{Name: "/host/buddy/huge:bytes",
			Doc: "Sample a zone. The part in blocks of 2 MiB or more: the rest cannot serve a huge page."},
		{Name: "/host/buddy/order3:bytes", Doc: "Sample a zone. The part in blocks of 32 KiB or more."},
	},
})

// buddyinfo starts with a zone as well, but has its numbers in the same line.
var _ = registerFile(&row{
	kind: KindZoneinfo, name: "zoneinfo",
	looks: starts("Node 0, zone"), yields: []Kind{KindBuddyinfo}, at: base("zoneinfo"), file: (*kernelFiles).zoneinfo,
	streams: []evidence.Stream{
		{Name: "/host/zone/free:bytes", Doc: "Sample a zone, \"node 0 Normal\" in Text."},
		{Name: "/host/zone/min:bytes", Doc: "Sample a zone. Below it, threads reclaim themselves."},
		{Name: "/host/zone/low:bytes", Doc: "Sample a zone. Below it, kswapd is woken."},
		{Name: "/host/zone/high:bytes", Doc: "Sample a zone. Above it, kswapd rests."},
		{Name: "/host/zone/managed:bytes", Doc: "Sample a zone. What the allocator manages of it."},
	},
})

func looksBuddy(h head) bool {
	line, _, _ := strings.Cut(h.start, "\n")
	f := strings.Fields(line)
	return len(f) >= 10 && f[0] == "Node" && f[2] == "zone"
}

// zoneName reads "Node 0, zone   Normal".
func zoneName(f []string) (string, bool) {
	if len(f) < 4 || f[0] != "Node" || f[2] != "zone" {
		return "", false
	}
	return "node " + strings.TrimSuffix(f[1], ",") + " " + f[3], true
}

// buddyinfo counts the free blocks of each order; a block has 2^order pages. The file does not
// state the size of a page. If no member does either, 4 KiB is assumed, which nearly every machine
// has; then the order of a huge page is 9.
func (s *kernelFiles) buddyinfo(r reading) error {
	page := float64(4096)
	if s.page > 0 {
		page = float64(s.page)
	}
	n := 0
	for line := range strings.Lines(r.text) {
		n++
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		zone, ok := zoneName(f)
		if !ok {
			return fmt.Errorf("line %d: want Node N, zone NAME ..., got %.40q", n, line)
		}
		var free, order3, huge float64
		for order, text := range f[4:] {
			blocks, err := strconv.ParseUint(text, 10, 48)
			if err != nil || order > 20 {
				return fmt.Errorf("line %d: want a number, got %.40q", n, text)
			}
			size := float64(blocks) * page * float64(int64(1)<<order)
			free += size
			if order >= 3 {
				order3 += size
			}
			if page*float64(int64(1)<<order) >= 2<<20 {
				huge += size
			}
		}
		s.addFor("/host/buddy/free:bytes", evidence.Sample, r.time, free, zone)
		s.addFor("/host/buddy/order3:bytes", evidence.Sample, r.time, order3, zone)
		s.addFor("/host/buddy/huge:bytes", evidence.Sample, r.time, huge, zone)
	}
	return nil
}

func (s *kernelFiles) zoneinfo(r reading) error {
	page := float64(4096)
	if s.page > 0 {
		page = float64(s.page)
	}
	zone := ""
	for line := range strings.Lines(r.text) {
		f := strings.Fields(line)
		if z, ok := zoneName(f); ok {
			zone = z
			continue
		}
		if len(f) == 3 && f[0] == "pages" {
			f = f[1:]
		}
		if len(f) != 2 || zone == "" {
			continue
		}
		switch f[0] {
		case "free", "min", "low", "high", "managed":
			v, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return fmt.Errorf("%s: want a number, got %.40q", f[0], f[1])
			}
			s.addFor("/host/zone/"+f[0]+":bytes", evidence.Sample, r.time, v*page, zone)
		}
	}
	return nil
}
