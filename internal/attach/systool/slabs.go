package systool

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// slabLarge is what one cache seldom holds on a host that is well, unless it can be given back.
const slabLarge = 1 << 30

// reclaimable knows the large caches that the kernel makes with SLAB_RECLAIM_ACCOUNT.
func reclaimable(cache string) bool {
	switch cache {
	case "dentry", "buffer_head", "radix_tree_node", "ext4_extent_status":
		return true
	}
	return strings.HasSuffix(cache, "_inode_cache") || cache == "inode_cache" ||
		strings.HasSuffix(cache, "_inode") || strings.HasPrefix(cache, "kmalloc-rcl-")
}

// slabs says what the kernel's caches hold.
func slabs(v *verdict, name []string, bytesOf []float64) {
	order := make([]int, len(name))
	total := 0.0
	for i := range name {
		order[i] = i
		total += bytesOf[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bytesOf[b], bytesOf[a]) })
	if len(v.Figures) == 0 { // otherwise the sum of all is there, which counts what is in use
		v.figure("%s in the caches listed", bytes(total))
	}
	for _, i := range order[:min(2, len(order))] {
		v.figure("%s: %s (%s %% of those listed)", name[i], bytes(bytesOf[i]), plain(100*bytesOf[i]/max(1, total)))
	}
	v.unsure = false
	back := 0.0
	for i := range name {
		if reclaimable(name[i]) {
			back += bytesOf[i]
		}
	}
	if len(order) > 0 {
		if top := order[0]; !reclaimable(name[top]) && bytesOf[top] >= slabLarge && bytesOf[top] >= total/2 {
			v.unsure = true
			v.means("most of it is in %s; nothing here says that such memory can be given back, and a leak of the kernel looks like this", name[top])
			v.not("that memory is short, nor that it leaks: that the cache grows would show it")
			v.next("grep -E 'Slab|SReclaimable|SUnreclaim' /proc/meminfo; sleep 60; grep -E 'Slab|SReclaimable|SUnreclaim' /proc/meminfo", "how much of it can be given back, and whether it grows")
			return
		}
	}
	if back >= total/2 {
		v.means("it says what the kernel keeps objects in: memory there is no lost time, and much of it can be given back")
		v.not("a large dentry or inode cache is use of free memory, and no leak by itself")
		return
	}
	v.means("it says what the kernel keeps objects in; how much of it can be given back is not in it")
	v.not("that memory in these caches is lost time")
}

func readVmstatSlabs(v *verdict, rows [][]string) {
	var names []string
	var sizes []float64
	for _, f := range rows {
		total, _ := number(f[2])
		size, _ := number(f[3])
		names, sizes = append(names, f[0]), append(sizes, total*size)
	}
	slabs(v, names, sizes)
}

func slabtopRow(f []string) bool {
	return len(f) >= 8 && numeric(f[:2]) && strings.HasSuffix(f[2], "%") && strings.HasSuffix(f[3], "K") &&
		numeric(f[4:6]) && (strings.HasSuffix(f[6], "K") || numeric(f[6:7]))
}

// slabtopTotal is how much all caches have, of which slabtop lists the first.
var slabTotal = pattern.New(`^Active / Total Size \(% used\) +: ([\d.]+)K / ([\d.]+)K`)

func slabtopTotal(v *verdict, text string) {
	if m := slabTotal.FindStringSubmatch(text); m != nil {
		kb, _ := number(m[2])
		v.figure("%s in all caches of the kernel", bytes(kb*1024))
	}
}

// Several kmalloc caches of the same number of objects are one thing of the kernel that takes a
// piece of each.
const (
	alikeLeast = 100_000 // objects
	alikePart  = 0.02
)

func kmallocAlike(v *verdict, rows [][]string) bool {
	var best []string
	var count float64
	for _, f := range rows {
		n, _ := number(f[1])
		var alike []string
		for _, o := range rows {
			if m, _ := number(o[1]); strings.HasPrefix(o[7], "kmalloc-") && n >= alikeLeast &&
				math.Abs(m-n) <= alikePart*n {
				alike = append(alike, o[7])
			}
		}
		if strings.HasPrefix(f[7], "kmalloc-") && len(alike) > len(best) {
			best, count = alike, n
		}
	}
	if len(best) < 3 {
		return false
	}
	v.figure("%s have about %s objects each", strings.Join(best[:min(5, len(best))], ", "), plain(count))
	v.means("several caches of kmalloc have the same number of objects: one kind of thing that the kernel or a driver makes and has not given back; a leak of the kernel looks like this")
	v.not("that it grows: a second reading would show it, and which driver makes them is not in it")
	v.next("grep SUnreclaim /proc/meminfo; sleep 60; grep SUnreclaim /proc/meminfo", "whether it grows")
	return true
}

func readSlabtop(v *verdict, rows [][]string) {
	alike := kmallocAlike(v, rows)
	var names []string
	var sizes []float64
	for _, f := range rows {
		s, _ := size(f[6], 1024)
		names, sizes = append(names, strings.Join(f[7:], " ")), append(sizes, s)
	}
	slabs(v, names, sizes)
	v.unsure = v.unsure || alike
}
