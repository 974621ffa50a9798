package unit

import (
	"testing"

	"github.com/whystall/whystall/internal/request"
)

// A loop that has much to do comes to its wait every 30 ms only, and answers a request each 0.3 ms
// in between. One of these takes 20 ms.
func loopRounds(turns bool) *script {
	s := newScript()
	s.thread(11, "node")
	for i, at := 0, 10_000_000; i < 8; i, at = i+1, at+60_000_000 {
		s.comes(11, at)
		for n := 1; n < 100 && turns; n++ {
			if n < 30 || n > 95 {
				s.line("turn t=%d tid=11 flags=target", at+n*300_000)
			}
		}
		s.blocks(11, at+30_000_000, epoll(5))
		s.wokenByNet(11, at+59_990_000)
	}
	return s
}

func TestTurnsOfALoop(t *testing.T) {
	for _, c := range []struct {
		turns   bool
		count   int64
		longest int64
	}{
		// The round under way when the recording starts is cut too; its first turn is left out.
		{true, 8*34 - 1, 20_100_000},
		{false, 7, 30_000_000},
	} {
		f := loopRounds(c.turns).find(t)
		if len(f.Groups) != 1 || f.Groups[0].Count != c.count {
			t.Errorf("turns %t: %s, want %d", c.turns, groupsOf(f), c.count)
		}
		var longest, end int64
		for _, u := range f.Units {
			if u.Begin < end {
				t.Errorf("turns %t: the unit at %d starts before the one before it ended, at %d", c.turns, u.Begin, end)
			}
			end = u.End
			if u.LeftOut == request.Kept {
				longest = max(longest, u.End-u.Begin)
			}
		}
		if longest != c.longest+10_000 && longest != c.longest { // the first turn waits for its CPU too
			t.Errorf("turns %t: the longest unit takes %d, want %d", c.turns, longest, c.longest)
		}
	}
}

// A thread that serves one connection, and reads from another socket meanwhile, is at one request.
func TestTurnsOfAConnection(t *testing.T) {
	s := newScript()
	s.thread(11, "worker")
	for i, at := 0, 10_000_000; i < 8; i, at = i+1, at+10_000_000 {
		s.comes(11, at)
		s.line("turn t=%d tid=11 flags=target", at+500_000)
		s.blocks(11, at+1_000_000, recv(7))
		s.wokenByNet(11, at+9_990_000)
	}
	if f := s.find(t); len(f.Groups) != 1 || f.Groups[0].Count != 7 {
		t.Errorf("got %swant 7 units", groupsOf(f))
	}
}

// A request in ten makes the thread sleep for 12 ms. It then finds two other sockets with data.
func TestLoopHeldUp(t *testing.T) {
	for _, c := range []struct {
		name    string
		threads []int
		want    Loop
	}{
		{"one thread", []int{11}, Loop{TID: 11, Held: 6, Behind: 6}},
		{"two threads", []int{11, 12}, Loop{}},
	} {
		s := newScript()
		for _, tid := range c.threads {
			s.thread(tid, "worker")
		}
		for i, at := 0, 10_000_000; i < 60; i, at = i+1, at+20_000_000 {
			for _, tid := range c.threads {
				s.comes(tid, at)
				end := at + 300_000
				if i%10 == 5 {
					s.blocks(tid, at+100_000, wait{230, 0, stTimer})
					s.wokenByTimer(tid, at+12_000_000)
					s.comes(tid, at+12_010_000)
					s.line("turn t=%d tid=%d flags=target", at+12_300_000, tid)
					end = at + 12_600_000
				}
				s.blocks(tid, end, epoll(5))
				s.wokenByNet(tid, at+19_990_000)
			}
		}
		if f := s.find(t); f.Loop != c.want {
			t.Errorf("%s: got %+v of %swant %+v", c.name, f.Loop, groupsOf(f), c.want)
		}
	}
}

// A request in ten computes for 5 ms. Data of another socket came meanwhile, in one case.
func TestLoopBusy(t *testing.T) {
	for _, c := range []struct {
		name   string
		others bool
		want   Loop
	}{
		{"others wait", true, Loop{TID: 11, Busy: 6, BusyBehind: 6, Long: 6, LongNS: 30_000_000}},
		{"nobody waits", false, Loop{TID: 11, Busy: 6, Long: 6, LongNS: 30_000_000}},
	} {
		s := newScript()
		s.thread(11, "worker")
		for i, at := 0, 10_000_000; i < 60; i, at = i+1, at+20_000_000 {
			s.comes(11, at)
			end := at + 300_000
			if i%10 == 5 {
				end = at + 5_000_000
				if c.others {
					s.line("turn t=%d tid=%d flags=target", end, 11)
					end += 300_000
				}
			}
			s.blocks(11, end, epoll(5))
			s.wokenByNet(11, at+19_990_000)
		}
		if f := s.find(t); f.Loop != c.want {
			t.Errorf("%s: got %+v of %swant %+v", c.name, f.Loop, groupsOf(f), c.want)
		}
	}
}

// A timer computes for 12 ms each 200 ms. Data of a socket came 2 ms after it had started, and that
// unit starts when its data came. Data that came as the thread slept starts none earlier.
func TestLoopUnread(t *testing.T) {
	s := newScript()
	s.thread(11, "worker")
	for i, at := 0, 100_000_000; i < 60; i, at = i+1, at+20_000_000 {
		s.comes(11, at)
		end := at + 300_000
		if i%10 == 5 {
			end = at + 13_000_000
			s.line("socketready t=%d tid=11 other=11 flags=target args=10000000,3,%d", at+2_000_000, at-30_000_000)
		} else {
			s.line("socketready t=%d tid=11 other=11 flags=target args=300000,4,%d", at-200_000, at-20_000_000)
		}
		s.blocks(11, end, epoll(5))
		if i%10 == 4 {
			s.wokenByTimer(11, at+19_990_000)
		} else {
			s.wokenByNet(11, at+19_990_000)
		}
	}
	f := s.find(t)
	if want := (Loop{TID: 11, Long: 6, LongNS: 72_000_000, Timed: 6}); f.Loop != want {
		t.Errorf("got %+v of %swant %+v", f.Loop, groupsOf(f), want)
	}
	late := 0
	for _, u := range f.Of(11) {
		if u.Begin == u.Taken {
			continue
		}
		late++
		if u.Taken-u.Begin != 10_000_000 || u.End-u.Taken != 1_000_000 {
			t.Errorf("unit %+v: it lay %d ns and took %d", u, u.Taken-u.Begin, u.End-u.Taken)
		}
		if long, until := f.InLong(11, u.Begin); !long || until != u.Taken {
			t.Errorf("at %d the thread is in a long turn: %v, until %d", u.Begin, long, until)
		}
	}
	if late != 6 {
		t.Errorf("%d units lay unread, want 6", late)
	}
}

// A thread serves one connection of the Unix family. As the client reads the answer, it wakes the
// thread, which finds nothing and waits on: that is no request.
func TestWokenByAReader(t *testing.T) {
	s := newScript()
	s.thread(11, "worker")
	for i, at := 0, 10_000_000; i < 10; i, at = i+1, at+10_000_000 {
		s.on(11, at, at+1_000_000, recv(7))
		s.line("waking t=%d tid=11 other=900 flags=target,reads", at+1_050_000)
		s.on(11, at+1_060_000, at+1_064_000, recv(7))
		s.line("waking t=%d tid=11 other=900 flags=target", at+9_990_000)
	}
	f := s.find(t)
	if len(f.Groups) != 1 || f.Groups[0].Count != 9 {
		t.Fatalf("got %swant 9 units", groupsOf(f))
	}
	for _, u := range f.Units {
		if ns := u.End - u.Begin; ns < 1_000_000 && u.LeftOut == 0 {
			t.Errorf("a unit of %d ns", ns)
		}
	}
}
