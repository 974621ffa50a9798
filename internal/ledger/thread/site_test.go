package thread

import (
	"testing"

	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/sched/schedtest"
)

// TestMaking checks which waits are part of making a thread: the new thread's for its first CPU,
// and its maker's behind it. The maker's next wait, after 1 ms of work, is not. The new thread's
// last madvise is of its stack, since the thread ends after it. An earlier one is not.
func TestMaking(t *testing.T) {
	k := schedtest.Timeline(t, `
header cpus=0 pertask alltasks
thread tid=10 pid=10 comm=app target
thread tid=11 pid=10 comm=app target
thread tid=50 pid=50 comm=hog
stack id=1 madvise@/usr/lib/libc.so.6+0x1
stack id=2 mprotect@/usr/lib/libc.so.6+0x1;pthread_create@/usr/lib/libc.so.6+0x2;std::thread::_M_start_thread@/usr/lib/libstdc++.so.6+0x3;serve@/app+0x4
switch t=0 cpu=0 tid=0 other=10 flags=othertarget
clone t=1000000 cpu=0 tid=11 other=10
wakeup t=1001000 cpu=0 tid=11 flags=target,new
switch t=1005000 cpu=0 tid=10 other=50 flags=target,preempted
switch t=3000000 cpu=0 tid=50 other=11 flags=othertarget
switch t=4000000 cpu=0 tid=11 other=10 flags=target,othertarget args=2,29,0
waitstack t=4000000 cpu=0 tid=11 user=1
switch t=5000000 cpu=0 tid=10 other=50 flags=target,preempted
waking t=6000000 cpu=0 tid=11 other=50 flags=target
switch t=6000000 cpu=0 tid=50 other=11 flags=othertarget
switch t=7000000 cpu=0 tid=11 other=10 flags=target,othertarget args=2,29,0
waitstack t=7000000 cpu=0 tid=11 user=1
switch t=7500000 cpu=0 tid=10 other=0 flags=target args=2,11,0
waitstack t=7500000 cpu=0 tid=10 user=2
waking t=8000000 cpu=0 tid=11 other=0 flags=target,interrupt
switch t=8000000 cpu=0 tid=0 other=11 flags=othertarget
exit t=8010000 cpu=0 tid=11
switch t=8020000 cpu=0 tid=11 other=0 flags=target args=128
`)
	p := &pass{sites: map[placeKey]*site{}, k: k, walk: NewWalk(k)}
	lives := p.walk.lives()
	var making int64
	sites := map[int64]string{}
	k.Each(0, 9e6, func(tid uint32, s *sched.Stretch) {
		if lives.Making(tid, s) {
			making += s.End - s.Begin
		}
		if s.Doing == sched.Blocked {
			sites[s.Begin] = p.siteOf(tid, s).name
		}
	})
	if want := int64(1_999_000 + 2_995_000); making != want {
		t.Errorf("making took %d ns, want %d", making, want)
	}
	want := map[int64]string{4000000: "madvise",
		7000000: "madvise of its stack, as the thread ends", 7500000: "pthread_create, called by serve"}
	for at, name := range want {
		if sites[at] != name {
			t.Errorf("at %d: waits in %q, want %q", at, sites[at], name)
		}
	}
}
