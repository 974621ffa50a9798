package unit

import (
	"testing"

	"github.com/whystall/whystall/internal/request"
)

// A worker makes a thread for each unit and joins it. The unit is the thread's life, with the waits
// for the C library's lock to make it and to give its stack back. The maker's join of the thread
// before and its other waits are not part of it.
func TestThreadMaking(t *testing.T) {
	s := newScript()
	s.line("stack id=20 __lll_lock_wait_private@/usr/lib/libc.so.6+0x1;pthread_create@@GLIBC_2.34@/usr/lib/libc.so.6+0x2;spawn@/app+0x3;start_thread@/usr/lib/libc.so.6+0x4")
	s.line("stack id=21 __lll_lock_wait_private@/usr/lib/libc.so.6+0x1;__nptl_deallocate_stack@/usr/lib/libc.so.6+0x2;spawn@/app+0x3;start_thread@/usr/lib/libc.so.6+0x4")
	s.line("stack id=22 __futex_abstimed_wait_common@/usr/lib/libc.so.6+0x1;__pthread_clockjoin_ex@/usr/lib/libc.so.6+0x2;spawn@/app+0x3;start_thread@/usr/lib/libc.so.6+0x4")
	s.thread(11, "app")
	s.thread(12, "app")
	wait := func(from, to, user int, addr uint64) {
		s.on(11, from, to, futex(addr))
		s.line("waitstack t=%d cpu=11 tid=11 user=%d", to, user)
	}
	at := 1_000_000
	for i := range 6 {
		tid := 20 + i
		s.thread(tid, "app")
		wait(at, at+10_000, 20, 0x100) // for the lock, to make it
		s.wokenBy(11, at+100_000, 12)
		s.comes(11, at+110_000)
		s.born(tid, at+120_000, 11)
		s.blocks(11, at+130_000, futex(uint64(0x9000+64*i)))
		s.line("waitstack t=%d cpu=11 tid=11 user=22", at+130_000) // joins
		s.comes(tid, at+200_000)
		s.line("exit t=%d tid=%d flags=target", at+600_000, tid)
		s.line("waking t=%d tid=11 other=%d flags=target,othertarget kernel=%d args=0,61,0", at+600_500, tid, stWake)
		s.line("switch t=%d cpu=%d tid=%d flags=target args=128,0,0", at+601_000, tid, tid)
		wait(at+610_000, at+620_000, 21, 0x100) // for the lock, to give its stack back
		s.wokenBy(11, at+900_000, 12)
		s.comes(11, at+910_000)
		s.blocks(11, at+920_000, read(9))
		s.wokenByNet(11, at+950_000)
		at += 1_000_000
	}
	f := s.find(t)
	kept := 0
	for _, u := range f.Units {
		if u.LeftOut != request.Kept || u.TID < 20 {
			continue
		}
		kept++
		i := int(u.TID) - 20
		begin := int64(1_000_000 + i*1_000_000)
		if u.Begin != begin+10_000 || u.End != begin+900_000 || u.Joiner != 11 {
			t.Errorf("unit %+v, want %d to %d joined by 11", u, begin+10_000, begin+900_000)
		}
	}
	if kept != 6 {
		t.Errorf("%d units\n%s", kept, groupsOf(f))
	}
}
