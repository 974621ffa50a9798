package attach

import (
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/format/paste"
)

// memory is a kind whose reading has the process' memory, and major faults as a counter.
func memory(scattered bool) *Kind {
	k := &Kind{Name: "mem", Scattered: scattered, Claim: func(lines []paste.Line) int {
		return ClaimIf(strings.HasPrefix(lines[0].Text, "rss "), 1)
	}}
	k.Read = func(p *Part) Reading {
		f := strings.Fields(p.Lines[0].Text)
		r := Reading{Title: "mem", State: Healthy, Facts: []Fact{{Name: ProcessRSS, Value: amount(f[1]) * (1 << 30)},
			{Name: "/process/switches/voluntary:switches", Value: amount(f[2])}}}
		if len(f) > 3 {
			r.Who.Name = f[3]
		}
		return r
	}
	return k
}

// What was read twice says once what changed: with rates only where the readings are before and
// after.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		name, in  string
		scattered bool
		want      []string
	}{
		{"prompts, and a sleep between", "$ free\nrss 1 100\n$ sleep 10\n$ free\nrss 3 400\n", false,
			[]string{"mem: lines 2-2 and then lines 5-5, 10.0 s apart: resident memory from 1.00 GiB to 3.00 GiB; voluntary switches grew by 300, 30 a second"}},
		{"no time", "# free\nrss 1 100\n# free\nrss 3 400\n", false,
			[]string{"mem: lines 2-2 and then lines 4-4: resident memory from 1.00 GiB to 3.00 GiB; voluntary switches grew by 300"}},
		{"three", "# free\nrss 1 100\n# free\nrss 3 100\n# free\nrss 2 100\n", false,
			[]string{"mem: lines 2-2 to lines 6-6, 3 readings in order: resident memory 1.00 GiB, 3.00 GiB, 2.00 GiB"}},
		{"nothing changed", "# free\nrss 2 100\n# free\nrss 2 100\n", false,
			[]string{"mem: lines 2-2 and then lines 4-4: resident memory stays at 2.00 GiB"}},
		{"a counter fell", "# free\nrss 1 400\n# free\nrss 3 100\n", false,
			[]string{"mem: lines 2-2 and then lines 4-4 are no before and after, as a counter fell (voluntary switches from 400 to 100): another place, or started again in between, so no rate is made of them: resident memory 1.00 GiB and 3.00 GiB"}},
		{"two hosts", "root@a:~# free\nrss 1 100\nroot@b:~# free\nrss 3 400\n", false,
			[]string{"mem: lines 2-2 and lines 4-4 are two places (hosts a and b): side by side, without rates: resident memory 1.00 GiB and 3.00 GiB"}},
		{"quoted again", "# free\nrss 1 100\nrss 3 400\n# free\nrss 1 100\nrss 3 400\n", false, nil},
		{"two programs", "# free\nrss 1 100 shop\n# free\nrss 3 400 cart\n", false,
			[]string{"mem: lines 2-2 and lines 4-4 are two places (shop and cart): side by side, without rates: resident memory 1.00 GiB and 3.00 GiB"}},
		{"two containers", "# docker exec a free\nrss 1 100\n# docker exec b free\nrss 3 400\n", false,
			[]string{"mem: nothing tells whether lines 2-2 and lines 4-4 are one place before and after, so no rate is made of them: resident memory 1.00 GiB and 3.00 GiB"}},
		{"a person shows the later one first", "after:\n```\nrss 1 100\n```\nbefore:\n```\nrss 3 400\n```\n", false,
			[]string{"mem: nothing tells whether lines 3-3 and lines 7-7 are one place before and after, so no rate is made of them: resident memory 1.00 GiB and 3.00 GiB"}},
		{"a counter fell, and nothing tells the order", "one:\n```\nrss 1 400\n```\ntwo:\n```\nrss 3 100\n```\n", false,
			[]string{"mem: lines 3-3 and lines 7-7 are no before and after in this order, as a counter fell (voluntary switches from 400 to 100), so no rate is made of them: resident memory 1.00 GiB and 3.00 GiB"}},
		{"a host with and without its domain", "root@a:~# free\nrss 1 100\nroot@a.example.org:~# free\nrss 3 400\n", false,
			[]string{"mem: lines 2-2 and then lines 4-4: resident memory from 1.00 GiB to 3.00 GiB; voluntary switches grew by 300"}},
		{"two hosts in turn", "root@a:~# free\nrss 1 100\nroot@b:~# free\nrss 3 400\nroot@a:~# free\nrss 2 200\n", false,
			[]string{"mem: lines 2-2 and lines 4-4 are two places (hosts a and b): side by side, without rates: resident memory 1.00 GiB and 3.00 GiB",
				"mem: lines 2-2 and then lines 6-6: resident memory from 1.00 GiB to 2.00 GiB; voluntary switches grew by 100"}},
		{"lines of two logs", "```\nrss 1 100\n```\n```\nrss 3 400\n```\n", true,
			[]string{"mem: lines 2-2 and lines 5-5, side by side and without rates: resident memory 1.00 GiB and 3.00 GiB"}},
	} {
		kinds := NewKinds([]*Kind{memory(c.scattered)})
		parts, _ := Cut("", paste.Lines([]byte(c.in)), kinds)
		if a := Explain(parts, nil); !slices.Equal(a.Notes, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, a.Notes, c.want)
		}
	}
}

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"cat /proc/vmstat", "sleep 10; cat /proc/vmstat", true},
		{"cat /proc/vmstat", "grep allocstall /proc/vmstat", true},
		{"vmstat 1 5", "vmstat 1 10", true},
		{"free -m", "free -h", true},
		{"", "free", true},
		{"sudo cat /x", "cat /x", true},
		{"docker exec a cat /x", "docker exec b cat /x", false},
		{"docker exec a cat /x", "cat /x", false},
		{"sar -u", "sar -u -f /var/log/sa/sa12", false},
		{"cat /proc/vmstat", "grep -E 'allocstall|compact_stall' /proc/vmstat", true},
		{"watch -n 1 cat /x", "cat /x", true},
		{"redis-cli -h db1 info", "redis-cli -h db2 info", false},
		{"jstat -gcutil 1234 1000", "jstat -gcutil 1299 1000", false},
		{"perf report -i a.data", "perf report -i b.data", false},
	} {
		if got := alike(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: got %v", c.a, c.b, got)
		}
	}
}

// A risk that rests on a counter goes where a second reading shows that the counter stands still.
func TestCounterStands(t *testing.T) {
	k := memory(false)
	read := k.Read
	k.Read = func(p *Part) Reading {
		r := read(p)
		r.Signs = []Sign{{Cause: "page-fault", Grade: Risk, Counter: "/process/switches/voluntary:switches", Proof: []string{"once"}}}
		return r
	}
	for in, want := range map[string]int{
		"# free\nrss 1 100\n":                                                1,
		"# free\nrss 1 100\n# free\nrss 3 400\n":                             1,
		"# free\nrss 1 100\n# free\nrss 3 100\n":                             0,
		"# docker exec a free\nrss 1 100\n# docker exec b free\nrss 3 100\n": 1, // two places
	} {
		parts, _ := Cut("", paste.Lines([]byte(in)), NewKinds([]*Kind{k}))
		if a := Explain(parts, nil); len(a.Causes) != want {
			t.Errorf("%q: %d causes, want %d", in, len(a.Causes), want)
		}
	}
}
