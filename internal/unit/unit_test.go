package unit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// script writes what threads did as the text twin of a kernel stream. Times are ns. Each thread has
// a CPU of its own, so that none waits for one.
type script struct {
	b strings.Builder
}

// Numbers of the stacks in newScript: of waits, of wakings and of a maker.
const (
	stEpoll = iota + 1
	stRecv
	stFutex
	stNet
	stWake
	stTimer
	stSleep
	stMaker
)

func newScript() *script {
	s := &script{}
	s.line("header source=bpf kernel=6.18 pid=10 cpus=0 alltasks pertask")
	s.line("stack id=%d schedule;ep_poll;do_epoll_wait", stEpoll)
	s.line("stack id=%d schedule;wait_woken;sk_wait_data;tcp_recvmsg_locked;tcp_recvmsg", stRecv)
	s.line("stack id=%d schedule;futex_do_wait;__futex_wait;futex_wait;do_futex", stFutex)
	s.line("stack id=%d ep_poll_callback;sock_def_readable;tcp_rcv_established;net_rx_action", stNet)
	s.line("stack id=%d wake_up_q;futex_wake;do_futex", stWake)
	s.line("stack id=%d hrtimer_wakeup;__hrtimer_run_queues;hrtimer_interrupt", stTimer)
	s.line("stack id=%d schedule;do_nanosleep;hrtimer_nanosleep", stSleep)
	s.line("stack id=%d main;__libc_start_call_main", stMaker)
	return s
}

func (s *script) line(f string, a ...any) { fmt.Fprintf(&s.b, f+"\n", a...) }

func (s *script) thread(tid int, comm string) {
	s.line("thread tid=%d pid=10 comm=%s target", tid, comm)
}

// wait is a wait as the stream has it: the system call's number plus one, its first argument and
// the kernel stack.
type wait struct {
	call  int
	arg   uint64
	stack int
}

func epoll(fd uint64) wait   { return wait{233, fd, stEpoll} }
func recv(fd uint64) wait    { return wait{45, fd, stRecv} }
func read(fd uint64) wait    { return wait{1, fd, 0} } // of which no stack was taken
func futex(addr uint64) wait { return wait{203, addr, stFutex} }
func sleep() wait            { return wait{231, 0, stSleep} }

// on: tid runs on its CPU during [from,to), then waits.
func (s *script) on(tid, from, to int, w wait) {
	s.comes(tid, from)
	s.blocks(tid, to, w)
}

func (s *script) comes(tid, t int) {
	s.line("switch t=%d cpu=%d other=%d flags=othertarget", t, tid, tid)
}

func (s *script) blocks(tid, t int, w wait) {
	s.line("switch t=%d cpu=%d tid=%d flags=target args=1,%d,%d kernel=%d", t, tid, tid, w.call, w.arg, w.stack)
}

// wokenBy: a thread of the target wakes tid by a futex call.
func (s *script) wokenBy(tid, t, waker int) {
	s.line("waking t=%d tid=%d other=%d flags=target,othertarget kernel=%d args=0,203,0", t, tid, waker, stWake)
}

func (s *script) wokenByNet(tid, t int)   { s.wokenByInterrupt(tid, t, stNet) }
func (s *script) wokenByTimer(tid, t int) { s.wokenByInterrupt(tid, t, stTimer) }

func (s *script) wokenByInterrupt(tid, t, stack int) {
	s.line("waking t=%d tid=%d flags=target,interrupt kernel=%d", t, tid, stack)
}

// born: maker makes tid.
func (s *script) born(tid, t, maker int) {
	s.line("clone t=%d tid=%d other=%d flags=target,othertarget user=%d", t, tid, maker, stMaker)
	s.line("wakeup t=%d tid=%d flags=target,new args=%d,0,0", t+1, tid, tid)
}

// dies: tid runs during [from,to) and ends.
func (s *script) dies(tid, from, to int) {
	s.comes(tid, from)
	s.line("exit t=%d tid=%d flags=target", to-1, tid)
	s.line("switch t=%d cpu=%d tid=%d flags=target args=128,0,0", to, tid, tid)
}

func (s *script) find(t *testing.T) *Set {
	t.Helper()
	src, err := kernel.ParseText(s.b.String())
	if err != nil {
		t.Fatal(err)
	}
	k, err := sched.New(src)
	if err != nil {
		t.Fatal(err)
	}
	return Find(k, request.Options{})
}

// groupsOf writes the groups for comparison: name, kind, boundary, how many units, and what was
// left out why.
func groupsOf(f *Set) string {
	var b strings.Builder
	for i, g := range f.Groups {
		fmt.Fprintf(&b, "%d %s, %s, %s: %d listed=%v %s\n", i, g.Entry, g.Kind, g.Boundary, g.Count, g.Listed, g.Why)
		for why, n := range g.LeftOut {
			if n > 0 {
				fmt.Fprintf(&b, "  %s: %d\n", request.LeftOut(why), n)
			}
		}
	}
	if f.Cause != "" {
		fmt.Fprintf(&b, "none: %s\n", f.Cause)
	}
	return b.String()
}

func wantGroups(t *testing.T, f *Set, want string) {
	t.Helper()
	if got := groupsOf(f); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// An epoll server: from each wake-up by the network to the next wait is a unit. A wake-up by the
// timeout of epoll is none.
func TestThreadEpoll(t *testing.T) {
	s := newScript()
	s.thread(11, "srv")
	at := 1000
	for i := range 20 {
		s.on(11, at, at+500, epoll(5))
		if i%5 == 4 {
			s.wokenByTimer(11, at+900)
		} else {
			s.wokenByNet(11, at+900)
		}
		at += 1000
	}
	s.on(11, at, at+500, epoll(5))
	f := s.find(t)
	wantGroups(t, f, `
0 srv, thread loop, from the end of the wait in poll, select or epoll to the next: 16 listed=true boundaries were learned from where its threads wait
  open at the trace's begin: 1`)
	for _, u := range f.Units {
		if u.LeftOut == request.Kept && (u.End-u.Begin != 600 || u.TID != 11) {
			t.Errorf("unit %+v, want 600 ns: from the wake-up, with the wait for a CPU", u)
		}
	}
}

// Workers wait at a condition that the thread of the network signals. The mutex that they share is
// no wait for work.
func TestThreadPool(t *testing.T) {
	s := newScript()
	for _, tid := range []int{11, 12, 13} {
		s.thread(tid, "srv")
	}
	at := 1000
	for i := range 30 {
		w := 12 + i%2
		o := 25 - w
		s.on(11, at, at+100, epoll(5)) // hands on at +50
		s.wokenBy(w, at+50, 11)
		s.on(w, at+60, at+200, futex(0x7000)) // mutex
		s.wokenBy(w, at+300, o)
		s.on(w, at+310, at+800, futex(uint64(0x5000+4*(i/2%2)))) // condition
		s.wokenByNet(11, at+950)
		at += 1000
	}
	f := s.find(t)
	wantGroups(t, f, `
0 srv, thread loop, from the end of the wait in poll, select or epoll to the next: 29 listed=false hands its work on to srv
  open at the trace's begin: 1
1 srv, thread loop, from the end of the wait in futex 0x5000 to the next: 28 listed=true boundaries were learned from where its threads wait
  open at the trace's begin: 2`)
}

// Threads that are born, work and die: each life is a unit. Their maker has none.
func TestThreadLife(t *testing.T) {
	s := newScript()
	s.thread(11, "app")
	at := 1000
	for i := range 6 {
		tid := 20 + i
		s.thread(tid, "app")
		s.on(11, at, at+100, futex(uint64(0x9000+64*i))) // joins
		s.born(tid, at+50, 11)
		s.dies(tid, at+300, at+700)
		s.wokenBy(11, at+699, tid)
		at += 1000
	}
	s.on(11, at, at+100, futex(0x9999))
	f := s.find(t)
	wantGroups(t, f, `
0 app, thread, from the thread's creation to its end: 6 listed=true its threads are born and die`)
}

// A thread that never waits has no requests, and the cause says so.
func TestThreadBusy(t *testing.T) {
	s := newScript()
	s.thread(11, "busy")
	s.line("switch t=1000 cpu=11 other=11 flags=othertarget")
	for i := range 20 {
		s.line("switch t=%d cpu=11 tid=11 flags=target,preempted", 2000+1000*i)
		s.line("switch t=%d cpu=11 other=11 flags=othertarget", 2000+1000*i+10)
	}
	wantGroups(t, s.find(t), `
none: no wait for work was seen in busy: units of work that follow each other without one cannot be told apart`)
}

// Eight threads look for work every 200 us. Beside another that works for 3 ms and rests for 5, or
// beside lives that never wait, only the other's units are listed. Alone they are listed, since
// nothing else is known.
func TestThreadPollers(t *testing.T) {
	for _, listed := range []string{"work", "look", "once"} {
		s := newScript()
		for tid := 20; tid < 28; tid++ {
			s.thread(tid, "look")
			for at := 1_000_000; at < 90_000_000; at += 200_000 {
				s.on(tid, at, at+100_000, sleep())
				s.wokenByTimer(tid, at+190_000)
			}
		}
		for i := range 6 { // lives that never wait are no pollers
			if listed != "once" {
				break
			}
			s.thread(40+i, "once")
			s.born(40+i, 1_000_000*i+2_000_000, 30)
			s.dies(40+i, 1_000_000*i+2_100_000, 1_000_000*i+2_700_000)
		}
		if listed == "work" {
			s.thread(11, "work")
			for at := 1_000_000; at < 90_000_000; at += 8_000_000 {
				s.on(11, at, at+3_000_000, sleep())
				s.wokenByTimer(11, at+7_990_000)
			}
		}
		for _, g := range s.find(t).Groups {
			if want := g.Entry == listed; g.Listed != want {
				t.Errorf("with %s: %s listed=%v %s", listed, g.Entry, g.Listed, g.Why)
			}
		}
	}
}

// A thread for each connection that reads with read(2), of whose waits no stack was taken. Its
// requests are seen only if its descriptor is known to be a socket.
func TestThreadReadsSocket(t *testing.T) {
	for _, c := range []struct {
		file   string
		listed int
	}{{"", 0}, {"file t=900 tid=11 flags=target args=7,1", 1}, {"file t=900 tid=11 flags=target args=7,0", 0}} {
		s := newScript()
		s.thread(11, "srv")
		if c.file != "" {
			s.line("%s", c.file)
		}
		for at := 1000; at < 21000; at += 1000 {
			s.on(11, at, at+500, read(7))
			s.wokenByNet(11, at+900)
		}
		n := 0
		for _, g := range s.find(t).Groups {
			if g.Listed {
				n++
			}
		}
		if n != c.listed {
			t.Errorf("%q: %d groups are listed, want %d", c.file, n, c.listed)
		}
	}
}

// A thread for each connection that makes another thread for a step of each request and waits for
// its end: the connection has the requests.
func TestThreadStep(t *testing.T) {
	s := newScript()
	s.thread(11, "conn")
	at := 1000
	for i := range 12 {
		tid := 20 + i
		s.thread(tid, "conn")
		s.on(11, at, at+100, recv(5))
		s.wokenByNet(11, at+200)
		s.born(tid, at+250, 11)
		s.on(11, at+210, at+300, futex(uint64(0x9000+64*i))) // joins
		s.dies(tid, at+400, at+700)
		s.wokenBy(11, at+699, tid)
		at += 1000
	}
	s.on(11, at, at+100, recv(5))
	f := s.find(t)
	for _, g := range f.Groups {
		if g.Entry == "conn" && g.Kind == "thread loop" && g.Listed && g.Count >= 10 {
			return
		}
	}
	t.Errorf("the connection's requests are not listed:\n%s", groupsOf(f))
}
