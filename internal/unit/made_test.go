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
