package unit

import "testing"

// Two threads have a client each, and ask another server at connections of their own, as does a
// thread that serves nobody. Requests begin at the clients' connections. A thread that gets its
// work at the only connection there is, which it made, keeps it.
func TestThreadsThatAsk(t *testing.T) {
	const made = "file t=900 tid=11 flags=target args=%d,3"
	ask := func(s *script, tid int, name string, fd uint64) {
		s.thread(tid, name)
		s.line(made, fd)
		for i := range 20 {
			at := 1_000_000 + i*3_000_000
			s.on(tid, at, at+100_000, recv(fd))
			s.wokenByNet(tid, at+2_990_000)
		}
	}
	s := newScript()
	for tid := 11; tid <= 12; tid++ {
		s.thread(tid, "conn")
		s.line(made, 20+tid)
		for i := range 12 {
			at := 10_000_000 + i*20_000_000
			s.on(tid, at, at+200_000, recv(uint64(20+tid)))
			s.wokenByNet(tid, at+5_000_000)
			s.on(tid, at+5_010_000, at+5_300_000, recv(uint64(tid)))
			s.wokenByNet(tid, at+19_990_000)
		}
	}
	ask(s, 13, "asks", 40)
	f := s.find(t)
	for _, g := range f.Groups {
		if g.Listed != (g.Entry == "conn") || g.Entry == "conn" && g.Count != 2*11 {
			t.Errorf("%swant 22 of conn, and no other", groupsOf(f))
			break
		}
	}
	for _, u := range f.Units {
		if ns := u.End - u.Begin; f.Groups[u.Group].Listed && u.LeftOut == 0 && (ns < 5_290_000 || ns > 5_320_000) {
			t.Errorf("a request takes %d ns", ns)
		}
	}

	s = newScript()
	ask(s, 11, "consumer", 7)
	if f := s.find(t); len(f.Groups) != 1 || !f.Groups[0].Listed {
		t.Errorf("a program whose work comes from a connection that it made: %s", groupsOf(f))
	}
}

// Threads of a pool take their work from a queue, which a loop around many sockets fills, and ask
// another server at connections of their own. A request begins at the queue.
func TestPoolThatAsks(t *testing.T) {
	const queue = 0x7000
	s := newScript()
	s.thread(10, "loop")
	for tid := 11; tid <= 12; tid++ {
		s.thread(tid, "pool")
		s.line("file t=900 tid=%d flags=target args=%d,3", tid, tid)
	}
	for i := range 12 {
		for tid := 11; tid <= 12; tid++ {
			at := 10_000_000 + i*40_000_000 + (tid-11)*20_000_000
			s.on(10, at, at+50_000, epoll(3))
			s.wokenByNet(10, at+19_990_000)
			s.wokenBy(tid, at+40_000, 10)
			s.on(tid, at+60_000, at+200_000, recv(uint64(tid)))
			s.wokenByNet(tid, at+5_000_000)
			s.on(tid, at+5_010_000, at+5_060_000, futex(queue))
		}
	}
	f := s.find(t)
	for _, g := range f.Groups {
		if g.Listed != (g.Entry == "pool") || g.Entry == "pool" && g.Count != 2*12-2 {
			t.Errorf("%swant 22 of the pool, and no other", groupsOf(f))
			break
		}
	}
}
