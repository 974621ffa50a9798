package request

import "testing"

// A worker's rounds are no requests beside a server whose requests are all under way, too slow to end in the trace.
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
		f.groups = []Group{{Entry: "main.worker", Kind: "loop", Count: 440, entry: worker}, {Entry: "net/http.(*conn).serve", Kind: "net/http", entry: server}}
		f.groups[1].LeftOut[OpenBegin] = c.open
		f.list()
		if got := f.groups[0].Listed; got != c.want {
			t.Errorf("%s: the worker is listed: %v", c.name, got)
		}
	}
}
