package request

import "testing"

// A worker's rounds are no requests beside a server whose requests are all too slow to end in the
// trace.
func TestListCountsWhatIsUnderWay(t *testing.T) {
	for _, c := range []struct {
		name string
		open int64
		want bool
	}{{"none under way", 0, true}, {"as many under way", 450, false}} {
		f := NewFinder(nil, Options{})
		worker := f.entry("main.worker")
		f.sites = append(f.sites, site{entry: worker, net: 450})
		f.entries[worker].idleSite = uint32(len(f.sites) - 1)
		f.entries[worker].count = 440
		server := f.entry("net/http.(*conn).serve")
		f.groups = []Group{{Entry: "main.worker", Kind: "loop", Count: 440, entry: worker},
			{Entry: "net/http.(*conn).serve", Kind: "net/http", entry: server}}
		f.groups[1].LeftOut[OpenBegin] = c.open
		f.list()
		if got := f.groups[0].Listed; got != c.want {
			t.Errorf("%s: the worker is listed: %v", c.name, got)
		}
	}
}

// Where a reader only now and then gives others what leads to a write, such as a report, its own
// rounds are the requests.
func TestListSeldomHandedOn(t *testing.T) {
	for _, c := range []struct {
		handed int64
		want   string
	}{{3, "loop main.reader"}, {900, "handed on main.reader"}} {
		f := NewFinder(nil, Options{})
		reader := f.entry("main.reader")
		f.sites = append(f.sites, site{entry: reader, net: 1000})
		e := &f.entries[reader]
		e.idleSite, e.count, e.relayGroup = uint32(len(f.sites)-1), 1000, 1
		f.groups = []Group{{Entry: "main.reader", Kind: "loop", Count: 1000, entry: reader},
			{Entry: "main.reader", Kind: kindHandedOn, Count: c.handed, entry: reader}}
		f.list()
		if got := listed(f); got != c.want {
			t.Errorf("%d of 1000 handed on: listed %q, want %q", c.handed, got, c.want)
		}
	}
}
