package attach

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

// says makes a part of a kind of its own that says this.
func says1(kind string, r Reading) *Part {
	return &Part{Kind: &Kind{Name: kind, Read: func(*Part) Reading { return r }}, File: kind,
		Lines: []paste.Line{{N: 1, Text: "x"}}}
}

func found(cause string, sure finding.Confidence) Reading {
	return Reading{State: Ill, Signs: []Sign{{Cause: cause, Grade: Found, Sure: sure}}}
}

func sign(cause string, g Grade) Reading {
	return Reading{State: CannotTell, Signs: []Sign{{Cause: cause, Grade: g}}}
}

func facts(all ...any) (r Reading) {
	r.State = CannotTell
	for i := 0; i+1 < len(all); i += 2 {
		r.Facts = append(r.Facts, Fact{Name: all[i].(FactName), Value: all[i+1].(float64)})
	}
	return r
}

// stretched is a gctrace whose cycles are long by the clock.
func stretched() Reading {
	r := facts(GCStretched, 4.0, GOMAXPROCS, 76.0)
	for _, c := range []string{"cpu-throttled", "cpu-contention", "gomaxprocs-over-quota"} {
		r.Signs = append(r.Signs, Sign{Cause: c, Grade: Candidate})
	}
	return r
}

// queued is vmstat with so many runnable threads and CPUs that are never idle.
func queued(threads float64) Reading {
	r := facts(Runnable, threads, IdleShare, 0.01)
	for _, c := range []string{"cpu-contention", "runqueue-saturation"} {
		r.Signs = append(r.Signs, Sign{Cause: c, Grade: Candidate})
	}
	return r
}

func locks() (dump, profile Reading) {
	dump = Reading{State: CannotTell, Facts: []Fact{{LockSite, 40, "shop.(*Cache).Get"}},
		Signs: []Sign{{Cause: "lock-contention", Grade: Candidate}}}
	profile = Reading{State: CannotTell, Facts: []Fact{{MutexDelay, 5e9, "shop.(*Cache).Put"}}}
	return dump, profile
}

func TestJudge(t *testing.T) {
	dump, profile := locks()
	against := Reading{State: Healthy, Signs: []Sign{{Cause: "frequent-gc", Grade: Against}}}
	byPID := func(r Reading, pid int) Reading { r.Who.PID = pid; return r }
	smaps := func(rss, huge float64, pid int) Reading {
		return byPID(facts(ProcessRSS, rss*(1<<30), ProcessAnonHuge, huge*(1<<30)), pid)
	}
	waits := Reading{State: CannotTell, Signs: []Sign{{Cause: "cpu-contention", Grade: Candidate},
		{Cause: "runqueue-saturation", Grade: Candidate}, {Cause: "cpu-throttled", Grade: Candidate}}}
	zone := facts(BuddyFree, 4e9, BuddyHuge, 1e7)
	for i := range zone.Facts {
		zone.Facts[i].Of = "Normal"
	}
	for _, c := range []struct {
		name  string
		parts []Reading
		state State
		want  string
	}{
		{"healthy", []Reading{{State: Healthy}}, Healthy, ""},
		{"one", []Reading{found("frequent-gc", finding.Proven)}, Ill, "found frequent-gc supported"},
		{"two kinds agree", []Reading{found("disk-wait", finding.Possible),
			found("disk-wait", finding.Possible)}, Ill, "found disk-wait supported"},
		{"another part bounds it", []Reading{found("frequent-gc", finding.Supported), against}, Ill,
			"candidate frequent-gc"},
		{"of another process", []Reading{byPID(found("frequent-gc", finding.Supported), 1),
			byPID(against, 2)}, Ill, "found frequent-gc supported"},
		{"a risk is no finding", []Reading{sign("thp-bloat", Risk)}, CannotTell, "risk thp-bloat"},
		{"a candidate that another finds",
			[]Reading{sign("disk-wait", Candidate), found("disk-wait", finding.Possible)}, Ill,
			"found disk-wait possible"},
		{"found of one process, fits another", []Reading{byPID(sign("disk-wait", Candidate), 1),
			byPID(found("disk-wait", finding.Possible), 2)}, Ill, "found disk-wait possible"},
		{"stretched alone", []Reading{stretched()}, CannotTell,
			"candidate cpu-throttled, candidate cpu-contention, candidate gomaxprocs-over-quota"},
		{"stretched by the quota", []Reading{stretched(), facts(ThrottledShare, 0.9)}, Ill,
			"found cpu-throttled supported, candidate gomaxprocs-over-quota"},
		{"stretched by the quota, with GOMAXPROCS above it",
			[]Reading{stretched(), facts(ThrottledShare, 0.9, Quota, 2.0)}, Ill,
			"found gomaxprocs-over-quota supported, found cpu-throttled supported < gomaxprocs-over-quota"},
		{"stretched, and not by the quota", []Reading{stretched(), facts(ThrottledShare, 0.001)},
			CannotTell, "candidate cpu-contention"},
		{"stretched by neighbours", []Reading{stretched(), facts(ThrottledShare, 0.001),
			facts(IdleShare, 0.01, StealShare, 0.0)}, Ill, "found cpu-contention possible"},
		{"stretched under steal", []Reading{stretched(), facts(ThrottledShare, 0.001),
			facts(IdleShare, 0.01, StealShare, 0.3)}, CannotTell, "candidate cpu-contention"},
		{"threads queue", []Reading{queued(15), facts(HostCPUs, 2.0)}, Ill, "found cpu-contention possible"},
		{"threads queue, many times the CPUs", []Reading{queued(40), facts(HostCPUs, 2.0)}, Ill,
			"found cpu-contention possible, candidate runqueue-saturation"},
		{"as many threads as CPUs", []Reading{queued(15), facts(HostCPUs, 16.0)}, CannotTell, ""},
		{"threads, and nobody says how many CPUs", []Reading{queued(15)}, CannotTell,
			"candidate cpu-contention, candidate runqueue-saturation"},
		{"waits for a CPU while the quota stops them",
			[]Reading{found("cpu-throttled", finding.Possible), waits}, Ill, "found cpu-throttled possible"},
		{"the same on a host that is full", []Reading{found("cpu-throttled", finding.Possible),
			waits, facts(IdleShare, 0.02)}, Ill,
			"found cpu-throttled possible, candidate cpu-contention, candidate runqueue-saturation"},
		{"waits for a CPU below a quota", []Reading{waits, facts(Quota, 2.0)}, CannotTell, "candidate cpu-throttled"},
		{"the quota is used up", []Reading{waits, facts(Quota, 2.0, HostCPUs, 16.0),
			facts(ProcessCPU, 1.98)}, Ill, "found cpu-throttled possible"},
		{"a quota of more CPUs than there are", []Reading{waits, facts(Quota, 64.0, HostCPUs, 16.0)}, CannotTell,
			"candidate cpu-contention, candidate runqueue-saturation, candidate cpu-throttled"},
		{"a quota that stops nobody",
			[]Reading{waits, facts(Quota, 2.0),
				{State: Healthy, Signs: []Sign{{Cause: "cpu-throttled", Grade: Against}}}}, CannotTell,
			"candidate cpu-contention, candidate runqueue-saturation"},
		{"a quota and no wait", []Reading{facts(Quota, 2.0), facts(ProcessCPU, 2.0)}, CannotTell, ""},
		{"a queue that is found below a quota",
			[]Reading{waits, facts(Quota, 2.0), found("cpu-contention", finding.Possible)}, Ill,
			"found cpu-contention possible, candidate cpu-throttled"},
		{"orphans at their limit", []Reading{facts(Orphans, 8188.0), facts(OrphansMax, 8192.0)},
			CannotTell, "outside "},
		{"connections below theirs",
			[]Reading{facts(Conntrack, 200000.0), facts(ConntrackMax, 262144.0)}, CannotTell, ""},
		{"a lock in dump and profile", []Reading{dump, profile}, Ill, "found lock-contention supported"},
		{"a lock in the dump alone", []Reading{dump}, CannotTell, "candidate lock-contention"},
		{"memory in pieces", []Reading{facts(LostMS, 1249.0), facts(CompactStallRate, 40.0), zone},
			Ill, "found direct-reclaim supported"},
		{"nothing stalls", []Reading{facts(LostMS, 1249.0), facts(CompactStallRate, 0.0), zone}, CannotTell, ""},
		{"two places", []Reading{smaps(4.55, 1.9, 1), smaps(2.28, 0, 2)}, Ill, "found thp-bloat supported"},
		{"two places, other memory", []Reading{smaps(4.55, 0.1, 1), smaps(2.28, 0, 2)}, CannotTell, ""},
	} {
		var parts []*Part
		same := &Kind{Name: "smaps"}
		for i, r := range c.parts {
			p := says1(fmt.Sprint(i), r)
			if len(r.Facts) > 0 && r.Facts[0].Name == ProcessRSS {
				p.Kind = &Kind{Name: "smaps", Read: func(p *Part) Reading { return c.parts[p.Lines[0].N-1] }}
				if i > 0 {
					p.Kind = same
				}
				same, p.Lines = p.Kind, []paste.Line{{N: i + 1, Text: "x"}}
			}
			parts = append(parts, p)
		}
		a := Explain(parts, nil)
		var got []string
		for _, v := range a.Causes {
			s := fmt.Sprintf("%s %s", v.Grade, v.Cause)
			if v.Grade == Found {
				s += " " + string(v.Sure)
			}
			if v.BecauseOf != "" {
				s += " < " + v.BecauseOf
			}
			got = append(got, s)
		}
		if s := strings.Join(got, ", "); s != c.want || a.State != c.state {
			t.Errorf("%s:\n got %s: %s\nwant %s: %s", c.name, a.State, s, c.state, c.want)
		}
	}
}

// A reader that panics costs its part.
// A cause that is found in one place and a candidate in another is one verdict, and rests on the
// place where it is found.
func TestOneLineForOneCause(t *testing.T) {
	for _, order := range [][2]Reading{{found("disk-wait", finding.Possible),
		sign("disk-wait", Candidate)}, {sign("disk-wait", Candidate), found("disk-wait", finding.Possible)}} {
		var parts []*Part
		for i, r := range order {
			p := says1("iostat", r)
			p.Kind.Name, p.Host, p.File = "iostat", []string{"db1", "db2"}[i], []string{"a", "b"}[i]
			parts = append(parts, p)
		}
		a := Explain(parts, nil)
		if len(a.Causes) != 1 || a.Causes[0].Grade != Found || len(a.Causes[0].From) != 1 ||
			len(a.Causes[0].Proof) != 1 {
			t.Errorf("got %+v", a.Causes)
			continue
		}
		if from := a.Causes[0].From[0]; from.State != Ill {
			t.Errorf("it rests on %s", from.Part.File)
		}
	}
}

// Two settings of a host, each shown by a command of its own, are counted against one figure; two
// samples of one setting, and a setting of each of two folders, stay apart.
func TestSettingsOfOneHost(t *testing.T) {
	for _, c := range []struct {
		first, second string
		want          State
	}{
		{"/proc/sys/net/ipv4/tcp_mem", "/proc/sys/net/ipv4/tcp_max_orphans", CannotTell},
		{"/proc/sys/net/core/somaxconn", "/proc/sys/net/ipv4/tcp_max_orphans", CannotTell},
		{"/proc/sys/net/ipv4/tcp_max_orphans", "/proc/sys/net/ipv4/tcp_max_orphans", Healthy},
		{"/sys/fs/cgroup/a/cpu.max", "/sys/fs/cgroup/b/memory.max", Healthy},
	} {
		used, limit := facts(Orphans, 9000.0), facts(OrphansMax, 8192.0)
		used.State, limit.State = Healthy, Healthy
		parts := []*Part{says1("file", Reading{State: Healthy}), says1("sockets", used), says1("file", limit)}
		other := *parts[0].Kind
		parts[0].Path, parts[2].Path = c.first, c.second
		other.Read = func(p *Part) Reading {
			if p.Path == c.first && p == parts[0] {
				return Reading{State: Healthy}
			}
			return limit
		}
		parts[0].Kind, parts[2].Kind = &other, &other
		if a := Explain(parts, nil); a.State != c.want {
			t.Errorf("%s and %s: got %s, want %s: %+v", c.first, c.second, a.State, c.want, a.Causes)
		}
	}
}

func TestReaderPanics(t *testing.T) {
	p := says1("x", Reading{})
	p.Kind.Read = func(*Part) Reading { panic("no") }
	if a := Explain([]*Part{p, says1("y", found("disk-wait", finding.Possible))},
		nil); a.State != Ill || len(a.Told[0].Flaws) != 1 {
		t.Errorf("got %+v", a)
	}
}

func TestSeries(t *testing.T) {
	joins := []*Kind{{Name: "n", Joins: true, Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && strings.HasPrefix(lines[n].Text, "n ") {
			n++
		}
		return n
	}, Read: func(p *Part) Reading { return Reading{Title: fmt.Sprint(len(p.Lines)), State: Healthy} }}}
	for _, c := range []struct {
		name, in string
		want     []string
		notes    int
	}{
		{"prompts of one host", "root@a:~# cat /x\nn 1\nroot@a:~# cat /x\nn 2\n", []string{"2"}, 0},
		{"two hosts", "root@a:~# cat /x\nn 1\nroot@b:~# cat /x\nn 2\n", []string{"1", "1"}, 1},
		{"two pids", "# cat /proc/1/x\nn 1\n# cat /proc/2/x\nn 2\n", []string{"1", "1"}, 1},
		{"nothing tells", "```\nn 1\n```\n```\nn 2\n```\n", []string{"1", "1"}, 1},
		{"a person tells", "before:\n```\nn 1\n```\nafter:\n```\nn 2\n```\n", []string{"2"}, 0},
		{"times", "2026-11-22T22:28:49Z n 1\nx\n2026-11-22T22:28:59Z n 2\n", []string{"2"}, 0},
	} {
		parts, _ := Cut("", paste.Lines([]byte(c.in)), NewKinds(joins))
		a := Explain(parts, nil)
		var got []string
		for _, p := range a.Told {
			got = append(got, p.Title)
		}
		if !slices.Equal(got, c.want) || len(a.Notes) != c.notes {
			t.Errorf("%s: got %q %q, want %q and %d notes", c.name, got, a.Notes, c.want, c.notes)
		}
	}
}

func TestFilled(t *testing.T) {
	w := Who{PID: 77, Cgroup: "/kube/a"}
	if got, want := filled("cat /proc/PID/x /sys/fs/cgroup/CGROUP/cpu.stat", w),
		"cat /proc/77/x /sys/fs/cgroup/kube/a/cpu.stat"; got != want {
		t.Errorf("got %q", got)
	}
	if got := filled("cat CGROUP", Who{Cgroup: "a;rm -rf $HOME"}); got != "cat CGROUP" {
		t.Errorf("got %q", got)
	}
}

// What is added to the proof of a verdict does not write into the figures that the proof came from.
func TestProofOfFigures(t *testing.T) {
	figures := []string{"a", "b", "c"}
	one := Reading{State: Ill, Figures: figures, Signs: []Sign{{Cause: "disk-wait", Grade: Found, Proof: figures[:1]}}}
	two := Reading{State: Ill, Signs: []Sign{{Cause: "disk-wait", Grade: Candidate, Proof: []string{"x"}}}}
	a := Explain([]*Part{says1("1", one), says1("2", two)}, nil)
	if figures[1] != "b" || len(a.Causes) != 1 || len(a.Causes[0].Proof) != 2 {
		t.Errorf("figures %q, causes %+v", figures, a.Causes)
	}
}

// Two commands that were run once each are compared; two looks at one command are not.
func TestTwoRuns(t *testing.T) {
	run := func(command string, cpu, took float64) *Part {
		return says1("perf stat",
			Reading{State: CannotTell, Facts: []Fact{{Name: RunCPU, Value: cpu, Of: command},
				{Name: RunElapsed, Value: took, Of: command}}})
	}
	a := Explain([]*Part{run("./shop c", 1e6, 2e6), run("./shop go", 3e6, 5e6)}, nil)
	if !slices.ContainsFunc(a.Notes,
		func(n string) bool { return strings.Contains(n, "3 times as much CPU time, and 2.5 times as long") }) {
		t.Errorf("notes: %q", a.Notes)
	}
	a = Explain([]*Part{run("./shop c", 1e6, 2e6), run("./shop c", 3e6, 5e6)}, nil)
	if slices.ContainsFunc(a.Notes, func(n string) bool { return strings.Contains(n, "times as long") }) {
		t.Errorf("one command is compared with itself: %q", a.Notes)
	}
}

// What two parts show needs no command; what one shows does.
func TestNextOfDecided(t *testing.T) {
	asks := func(command string) Reading {
		r := found("disk-wait", finding.Supported)
		r.Next = []Next{{Command: command}}
		return r
	}
	if a := Explain([]*Part{says1("iostat", asks("pidstat -d 1"))}, nil); len(a.Next) != 1 {
		t.Errorf("one part: got %d commands, want 1", len(a.Next))
	}
	if a := Explain([]*Part{says1("iostat", asks("pidstat -d 1")),
		says1("vmstat", asks("iostat -x 1"))}, nil); len(a.Next) != 0 {
		t.Errorf("two parts: got %v, want none", a.Next)
	}
}
