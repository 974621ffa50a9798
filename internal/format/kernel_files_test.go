package format

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/evidence"
)

func TestEnv(t *testing.T) {
	set := &evidence.Set{}
	for _, r := range Env(map[string]string{"GOMAXPROCS": "76", "GOGC": "off", "GOMEMLIMIT": "2GiB",
		"GODEBUG": "gctrace=1", "GLIBC_TUNABLES": "glibc.malloc.arena_max=2",
		"MALLOC_ARENA_MAX": "4", "PASSWORD": "x"}) {
		set.Add(r)
	}
	golden(t, "env", dump(set))
}

// These figures were read from the published files by people before us.
func TestPublished(t *testing.T) {
	set, _, _ := gather(t, "buddyinfo/host.txt")
	for _, r := range set.All("/host/buddy/free:bytes") {
		if r.Text == "node 0 Normal" && int(r.Value/(1<<20)) != 3844 {
			t.Errorf("%v MiB free in zone Normal, want 3844", r.Value/(1<<20))
		}
	}
	for _, r := range set.All("/host/buddy/huge:bytes") {
		if r.Text == "node 0 Normal" && r.Value != 10<<20 {
			t.Errorf("%v MiB in large blocks of zone Normal, want 10", r.Value/(1<<20))
		}
	}
	on, _, _ := gather(t, "smaps/thp-on.txt")
	if v := on.All("/process/anon-huge:bytes")[0].Value; v != 1980416<<10 {
		t.Errorf("AnonHugePages %v", v)
	}
	free, _, _ := gather(t, "free/human.txt")
	if v := free.All("/host/memory/total:bytes")[0].Value; v != 768<<30 {
		t.Errorf("total %v", v)
	}
}

// A file whose content says too little is known by its name, or its error asks for one.
func TestByName(t *testing.T) {
	give := func(name, text string) (*evidence.Set, error) {
		set, _, problems := Gather([]Item{{Name: name, Data: []byte(text)}})
		return set, problems[0]
	}
	set, err := give("pod/cpu.max", "50000 100000\n")
	if q, ok := set.Fact("/cgroup/cpu/quota:cpus"); err != nil || !ok || q.Value != 0.5 {
		t.Errorf("cpu.max: %v, %v", q, err)
	}
	set, err = give("cpu.max", "max 100000\n")
	if q, ok := set.Fact("/cgroup/cpu/quota:cpus"); err != nil || !ok || q.Value != 0 || q.Text != "no quota" {
		t.Errorf("cpu.max: %v, %v", q, err)
	}
	if _, err := give("x.txt", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"); err == nil ||
		!strings.Contains(err.Error(), "cpu.pressure") {
		t.Errorf("pressure of a name that tells nothing: %v", err)
	}
	set, err = give("memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n")
	if r := set.All("/cgroup/psi/memory/some:ns"); err != nil || len(r) != 1 || r[0].Value != 5000 {
		t.Errorf("memory.pressure: %v, %v", r, err)
	}
	if _, err := give("x.txt", "50000\n"); err == nil {
		t.Error("a bare number was taken for something")
	}
	quota, _, _ := Gather([]Item{{Name: "cpu.cfs_quota_us", Data: []byte("150000\n")},
		{Name: "cpu.cfs_period_us", Data: []byte("100000\n")}})
	if q, ok := quota.Fact("/cgroup/cpu/quota:cpus"); !ok || q.Value != 1.5 {
		t.Errorf("quota and period apart: %v", q)
	}
}

// Off is a gap, never 0.
func TestOff(t *testing.T) {
	text := string(testdata(t, "readings/process.txt"))
	text = strings.Replace(text, "/task_delayacct\n1\n", "/task_delayacct\n0\n", 1)
	text += "=== 3 /proc/pressure/cpu unread \"not counted\"\n"
	set, _, _ := Gather([]Item{{Name: "a", Data: []byte(text)}})
	for _, s := range []string{"/process/delay/blkio:ns", "/process/delay/reclaim:stalls",
		"/host/psi/cpu/some:ns", "/process/anon-huge:bytes"} {
		if set.Has(s) || len(set.All(s)) != 1 {
			t.Errorf("%s: %v", s, set.All(s))
		}
	}
	if !set.Has("/process/delay/cpu:ns") {
		t.Error("what is counted always is missing")
	}
}

// A line of a file that looks like the start of a reading does not become one.
func TestReadingsQuote(t *testing.T) {
	b := AppendReadingsHead(nil, 4096, 100)
	b = AppendReading(b, 5, "/a b", []byte("=== 1 /proc/vmstat\nx\n=== 2 /y"))
	b = AppendReading(b, 6, "/c", nil)
	var got []string
	err := eachReading(b, func(int64, int64) {},
		func(r reading) error { got = append(got, r.path+"|"+r.text); return nil })
	if want := "/a b| === 1 /proc/vmstat\nx\n === 2 /y\n;/c|"; err != nil || strings.Join(got, ";") != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// FuzzReadings checks that no member, whatever it holds, causes a panic, and that its records can
// be kept.
func FuzzReadings(f *testing.F) {
	for _, name := range []string{"readings/v1.txt", "readings/v2.txt", "readings/host.txt", "readings/process.txt"} {
		f.Add(testdata(f, name))
	}
	paths := []string{"/proc/1/smaps", "/proc/1/status", "/proc/1/limits", "/proc/1/io",
		"/c/cpu.stat", "/c/memory.stat", "/c/memory.events", "/proc/vmstat", "taskstats", "/proc/buddyinfo",
		"/proc/zoneinfo", "/proc/meminfo", "/x/free", "/proc/interrupts", "/proc/softirqs",
		"/proc/stat", "/proc/1/stat", "/proc/1/cgroup", "/proc/1/mountinfo", "/proc/pressure/cpu",
		"/c/cpu.max", "/c/memory.max",
		"groups", "/proc/1/task/*/stat", "/proc/1/task/*/schedstat",
		"/sys/kernel/mm/transparent_hugepage/khugepaged/full_scans", "/proc/sys/kernel/osrelease",
		"/sys/devices/system/cpu/online"}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 6000 {
			return
		}
		all := AppendReadingsHead(nil, 4096, 100)
		for _, p := range paths {
			all = AppendReading(all, 1, p, data)
		}
		for _, b := range [][]byte{data, all} {
			set, _, _ := Gather([]Item{{Name: "a.txt", Data: b, Time: 1}})
			for _, stream := range set.Names() {
				for _, r := range set.All(stream) {
					if again, err := evidence.ParseRecord(r.String()); err != nil || again.String() != r.String() {
						t.Fatalf("%s is not a record that can be kept: %v", r, err)
					}
				}
				set.Delta(stream)
			}
		}
	})
}
