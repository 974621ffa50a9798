package capacity

import (
	"reflect"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/sched/schedtest"
)

// TestMmapLetGo: a wait for mmap_lock belongs to the fork that ended it by releasing the lock. A
// wait that a fault ended belongs to nobody, nor does one that an interrupt ended.
func TestMmapLetGo(t *testing.T) {
	k := schedtest.Timeline(t, `
header cpus=0 pertask alltasks
thread tid=10 pid=10 comm=app target
thread tid=11 pid=10 comm=app target
stack id=1 rwsem_down_read_slowpath;down_read_killable;lock_mm_and_find_vma;exc_page_fault
stack id=2 fork@/usr/lib/libc.so.6+0x1;snapshot@/app+0x2
switch t=0 cpu=0 tid=0 other=10 flags=othertarget
switch t=0 cpu=1 tid=0 other=11 flags=othertarget
switch t=1000000 cpu=0 tid=10 other=0 flags=target args=2,1,0 kernel=1
waking t=9000000 cpu=1 tid=10 other=11 flags=target,othertarget args=0,57,0 user=2
switch t=9001000 cpu=0 tid=0 other=10 flags=othertarget
switch t=10000000 cpu=0 tid=10 other=0 flags=target args=2,1,0 kernel=1
waking t=11000000 cpu=1 tid=10 other=11 flags=target,othertarget args=0,0,0
switch t=11001000 cpu=0 tid=0 other=10 flags=othertarget
switch t=12000000 cpu=0 tid=10 other=0 flags=target args=2,1,0 kernel=1
waking t=14000000 cpu=1 tid=10 other=11 flags=target,interrupt args=0,57,0
switch t=14001000 cpu=0 tid=0 other=10 flags=othertarget
switch t=15000000 cpu=0 tid=10 other=0 flags=target args=2,1,0
`)
	l := newReleases(k)
	k.Each(0, 15e6, func(_ uint32, s *sched.Stretch) {
		if s.Doing == sched.Blocked && s.Block == sched.BlockMmapLock && s.End == s.Whole.End {
			l.add(s)
		}
	})
	if want := map[account.LetGo]int64{{Who: "snapshot", Call: "fork"}: 8e6}; !reflect.DeepEqual(l.ns, want) {
		t.Errorf("released by %v, want %v", l.ns, want)
	}
}
