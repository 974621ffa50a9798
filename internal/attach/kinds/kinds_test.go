package kinds

import (
	"fmt"
	"hash/crc32"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/database"
	"github.com/whystall/whystall/internal/attach/goruntime"
	"github.com/whystall/whystall/internal/attach/kernelfile"
	"github.com/whystall/whystall/internal/attach/systool"
	"github.com/whystall/whystall/internal/format/paste"
)

// Rules read the facts that the rooms write.
func TestFactNames(t *testing.T) {
	for rule, room := range map[attach.FactName]attach.FactName{
		attach.GCStretched: goruntime.FactGCStretched, attach.GOMAXPROCS: goruntime.FactGOMAXPROCS, attach.GCPause: goruntime.FactGCPause,
		attach.ProcessRSS: kernelfile.FactRSS, attach.ProcessAnonHuge: kernelfile.FactAnonHuge,
		attach.LockSite: goruntime.FactLockSite, attach.MutexDelay: goruntime.FactMutexDelay, attach.LockWaiters: goruntime.FactLockWaiters,
		attach.ThrottledShare: kernelfile.FactThrottledShare, attach.Quota: kernelfile.FactQuota,
		attach.BuddyFree: kernelfile.FactBuddyFree, attach.BuddyHuge: kernelfile.FactBuddyHuge,
		attach.AllocstallRate: kernelfile.FactAllocstallRate, attach.CompactStallRate: kernelfile.FactCompactStallRate,
		attach.Orphans: kernelfile.FactOrphans, attach.OrphansMax: kernelfile.FactOrphansMax,
		attach.Conntrack: kernelfile.FactConntrack, attach.ConntrackMax: kernelfile.FactConntrackMax,
		attach.MinFree: kernelfile.FactMinFree, attach.MemoryTotal: kernelfile.FactMemTotal,
		attach.ProcessCPU: systool.ProcessCPU, attach.ContainerCPU: systool.ContainerCPU,
		attach.StealShare: systool.StealShare, attach.IdleShare: systool.IdleShare, attach.LostMS: database.FactLost,
	} {
		if rule != room {
			t.Errorf("a rule reads %q, and the room writes %q", rule, room)
		}
	}
	if systool.Quota != kernelfile.FactQuota || systool.Orphans != kernelfile.FactOrphans {
		t.Error("two rooms write a fact under two names")
	}
}

// A kind's name is unique, and what it needs is there.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, k := range All() {
		switch {
		case k.Name == "" || names[k.Name]:
			t.Errorf("kind %q: no name, or one that another has", k.Name)
		case k.Claim == nil || (k.Read == nil) == (k.Refused == ""):
			t.Errorf("kind %q: no Claim; or Read and Refused, or neither", k.Name)
		}
		names[k.Name] = true
		for _, m := range k.Marks {
			if len(m) < 4 {
				t.Errorf("kind %q: the mark %q has less than 4 bytes", k.Name, m)
			}
		}
		if k.Scattered && !slices.ContainsFunc(slices.Concat(k.Marks, k.Hints), func(s string) bool { return len(s) >= 4 }) {
			t.Errorf("kind %q: its lines stand in logs, and it has no mark of 4 bytes", k.Name)
		}
	}
	for _, k := range All() {
		for _, y := range k.Yields {
			if !names[y] {
				t.Errorf("kind %q yields to %q, which is none", k.Name, y)
			}
		}
	}
}

// sample is one paste of a room's samples.
type sample struct {
	name  string
	paste []byte
}

// hash is of the name: which samples a test takes does not change with others.
func (s sample) hash() uint64 { return uint64(crc32.ChecksumIEEE([]byte(s.name))) }

func samples(t testing.TB) (all []sample) {
	files, err := filepath.Glob("../*/testdata/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range txtar.Parse(data).Files {
			if strings.HasPrefix(f.Name, "paste") {
				all = append(all, sample{strings.TrimSuffix(filepath.Base(name), ".txtar") + "/" + f.Name, f.Data})
			}
		}
	}
	return all
}

func kindsOf(data []byte) (names []string) {
	parts, _ := attach.Cut("", paste.Lines(data), Table())
	for _, p := range parts {
		names = append(names, p.Kind.Name)
	}
	return names
}

// some is all samples, or with -short one in 16, which their names choose: the race detector
// takes ten times as long for each.
func some(all []sample) []sample {
	if !testing.Short() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s sample) bool { return s.hash()%16 != 0 })
}

// between is how people put two outputs below each other.
var between = map[string]func(a, b string) string{
	"a prompt":   func(a, b string) string { return a + "\n\nand then this:\n\nroot@web1:~# ./show-it\n" + b },
	"a sentence": func(a, b string) string { return a + "\n\nAnd this is what the other one says.\n\n" + b },
	"fences":     func(a, b string) string { return "## First\n\n```\n" + a + "```\n\n## Second\n\n```\n" + b + "```\n" },
}

// Two samples in one paste are what each is alone. Each sample has a partner for each of the ways
// to stand below each other, which the names choose: another sample changes few of them.
func TestTwoInOnePaste(t *testing.T) {
	all := samples(t)
	known := map[string][]string{} // by the sample's name
	alone := func(s sample) []string {
		if _, ok := known[s.name]; !ok {
			known[s.name] = kindsOf(s.paste)
		}
		return known[s.name]
	}
	wrong := 0
	for _, s := range some(all) {
		for way, join := range between {
			o := all[partner(all, s.name+way)]
			a, b := string(s.paste), string(o.paste)
			switch {
			case closed(s.paste) || closed(o.paste) || !strings.HasSuffix(a, "\n") || !strings.HasSuffix(b, "\n"):
				continue
			case way == "fences" && strings.Contains(a+b, "```"):
				continue
			case way == "a sentence" && slices.ContainsFunc(alone(s), func(k string) bool { return slices.Contains(alone(o), k) }):
				continue // it may be one log
			}
			if got, want := kindsOf([]byte(join(a, b))), slices.Concat(alone(s), alone(o)); !slices.Equal(got, want) {
				if wrong++; wrong <= 5 {
					t.Errorf("%s, then %s, with %s between:\n got %q\nwant %q", s.name, o.name, way, got, want)
				}
			}
		}
	}
	if wrong > 5 {
		t.Errorf("and %d more", wrong-5)
	}
}

// partner is the sample whose name goes best with a word.
func partner(all []sample, word string) (best int) {
	most := uint32(0)
	for i, s := range all {
		if sum := crc32.ChecksumIEEE([]byte(word + s.name)); sum >= most {
			best, most = i, sum
		}
	}
	return best
}

// Two samples of which one was lost once: another view of the paste fitted the other one better.
func TestNoPartLost(t *testing.T) {
	at := map[string][]byte{}
	for _, s := range samples(t) {
		at[s.name] = s.paste
	}
	for _, pair := range [][2]string{{"net-snmp-loss/paste", "postgres-activity-expanded/paste"}, {"mounts-container/paste", "uptime-nproc/paste"},
		{"pprof-prompt/paste", "net-snmp-loss/paste"}, {"bpftrace-profile/paste", "cgroup-v1-paths/paste"}, {"mongo-json-cut/paste", "vars/paste"}} {
		a, b := at[pair[0]], at[pair[1]]
		for way, join := range between {
			if got, want := kindsOf([]byte(join(string(a), string(b)))), slices.Concat(kindsOf(a), kindsOf(b)); !slices.Equal(got, want) {
				t.Errorf("%s, with %s between:\n got %q\nwant %q", pair, way, got, want)
			}
		}
	}
}

// closed reports whether a paste cannot have another behind it in one file: it has another
// encoding, or marks around all of its lines.
func closed(data []byte) bool {
	text := string(data)
	return strings.ContainsRune(text, 0) || strings.Contains(text, "```") && strings.Count(text, "```")%2 == 1
}

// What stands before each line of a paste does not keep it from being known. Each sample is tried
// with one prefix, which its name chooses: so another sample more changes nothing for the others.
func TestPrefixedPastes(t *testing.T) {
	prefixes := []func(i int) string{
		func(i int) string { return fmt.Sprintf("2026-11-22 10:00:%02d.123 ", i%60) },
		func(i int) string { return fmt.Sprintf("[2026-11-22 10:00:%02d] INFO ", i%60) },
		func(i int) string { return fmt.Sprintf("%4d %4d  ", i+10, i+12) },
		func(int) string { return "- " },
		func(int) string { return "| " },
	}
	wrong, tried := 0, 0
	for _, s := range some(samples(t)) {
		text := strings.TrimSuffix(string(s.paste), "\n")
		want := kindsOf(s.paste)
		if strings.ContainsAny(text, "\x00\r\x1b") || strings.Contains(text, "```") || len(want) != 1 || strings.Count(text, "\n") < 3 || len(text) > 3000 {
			continue
		}
		lines := strings.Split(text, "\n")
		tried++
		prefix := prefixes[crc32.ChecksumIEEE([]byte(s.name))%uint32(len(prefixes))]
		for i := range lines {
			lines[i] = prefix(i) + lines[i]
		}
		if got := kindsOf([]byte(strings.Join(lines, "\n"))); !slices.Contains(got, want[0]) {
			wrong++
			t.Logf("%s, with %q: got %q, want %q", s.name, lines[0], got, want)
		}
	}
	if wrong > tried/50 { // some samples are quoted or numbered already
		t.Errorf("%d of %d pastes are not known behind a prefix", wrong, tried)
	}
}

// The same sample as a chat, a wiki or a terminal bends it is of the same kinds.
func TestBentPastes(t *testing.T) {
	bends := map[string]func(string) string{
		"crlf":  func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"fence": func(s string) string { return "see below\n\n```\n" + s + "```\nthanks\n" },
		"indented": func(s string) string {
			return "see below:\n\n    " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n    ") + "\n"
		},
		"quoted": func(s string) string {
			return "> " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n> ") + "\n"
		},
		"blanks":   func(s string) string { return strings.ReplaceAll(s, "\n", "   \n") },
		"nbsp":     func(s string) string { return strings.ReplaceAll(s, "  ", "\u00a0 ") },
		"entities": html.EscapeString,
		"details": func(s string) string {
			return "<details><summary>output</summary>\n\n```\n" + s + "```\n\n</details>\n"
		},
		"coloured": func(s string) string { return "\x1b[0m" + strings.ReplaceAll(s, "\n", "\x1b[0m\n\x1b[1m") },
	}
	wrong := map[string]int{}
	for _, s := range some(samples(t)) {
		text := string(s.paste)
		if strings.ContainsAny(text, "\x00\r\x1b") || strings.Contains(text, "```") || strings.HasPrefix(text, ">") || strings.HasPrefix(text, " ") {
			continue
		}
		want := kindsOf(s.paste)
		for name, bend := range bends {
			if got := kindsOf([]byte(bend(text))); !slices.Equal(got, want) {
				if wrong[name]++; wrong[name] <= 3 {
					t.Errorf("%s, %s:\n got %q\nwant %q", s.name, name, got, want)
				}
			}
		}
	}
	if len(wrong) > 0 {
		t.Error(fmt.Sprint("wrong by way of bending: ", wrong))
	}
}
