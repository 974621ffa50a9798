package unit

import "testing"

// Four threads have a client each, and share two connections to another server, one thread after
// another. Their requests are their own clients'. Of three threads that wait for datagrams at one
// socket, all at once, and ask at a connection of their own, nobody can say.
func TestHands(t *testing.T) {
	pooled := newScript()
	for tid := 11; tid <= 14; tid++ {
		pooled.thread(tid, "req")
		for i := range 12 {
			at := 10_000_000 + i*40_000_000 + (tid-11)*10_000_000
			pooled.on(tid, at, at+200_000, recv(uint64(7+i%2)))
			pooled.wokenByNet(tid, at+5_000_000)
			pooled.on(tid, at+5_010_000, at+5_300_000, recv(uint64(20+tid)))
			pooled.wokenByNet(tid, at+39_990_000)
		}
	}
	if f := pooled.find(t); len(f.Groups) != 1 || f.Groups[0].Count != 4*11 {
		t.Errorf("connections that are shared: %swant one group of 44", groupsOf(f))
	} else {
		for _, u := range f.Units {
			if ns := u.End - u.Begin; u.LeftOut == 0 && (ns < 5_290_000 || ns > 5_320_000) {
				t.Errorf("a unit takes %d ns", ns)
			}
		}
	}

	queue := newScript()
	for tid := 11; tid <= 13; tid++ {
		queue.thread(tid, "req")
		for i := range 12 {
			at := 10_000_000 + i*40_000_000 + (tid-11)*10_000_000
			queue.on(tid, at, at+200_000, recv(uint64(20+tid)))
			queue.wokenByNet(tid, at+5_000_000)
			queue.on(tid, at+5_010_000, at+5_300_000, recv(9))
			queue.wokenByNet(tid, at+39_990_000)
		}
	}
	if f := queue.find(t); len(f.Units) != 0 {
		t.Errorf("a socket that is a queue: %swant nothing", groupsOf(f))
	}
}
