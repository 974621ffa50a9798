package capacity

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
)

// Others is how many CPUs other processes and the hypervisor took on average: what all CPUs were
// busy with, by /proc/stat, less the target's own time. ok is false where one of them was not read.
// What the recorder itself took counts as others': it does on both sides of a comparison.
func Others(set *evidence.Set, k *account.Kernel) (cpus float64, ok bool) {
	if set == nil {
		return 0, false
	}
	user, wall, ok := set.Delta("/host/cpu/user:ns")
	if !ok || wall <= 0 {
		return 0, false
	}
	system, _, ok := set.Delta("/host/cpu/system:ns")
	if !ok {
		return 0, false
	}
	steal, _, _ := set.Delta("/host/steal:ns")
	own, over, ok := set.Delta("/process/cpu:ns")
	if k != nil && k.End > k.Begin {
		own, over, ok = float64(k.OnNS), k.End-k.Begin, true
	}
	if !ok || over <= 0 {
		return 0, false
	}
	return max(0, (user+system+steal)/float64(wall)-own/float64(over)), true
}
