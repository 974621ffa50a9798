package kinds

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/attach"
)

// inLogs are samples of kinds that are not scattered, and of some that are.
var inLogs = []string{"dump-sigquit/paste", "dump-journal/paste", "innodb-semaphores/paste",
	"vmstat-swapping/paste", "loadavg/paste",
	"jstack-deadlock/paste", "top-three-screens/paste", "psi-io-prompt/paste",
	"dmesg-oom-cgroup/paste", "etcd-text-slow-apply/paste", "ps-aux/paste"}

// What stands in the middle and at the end of a long log is known as by itself.
func TestLongLogHolds(t *testing.T) {
	log := longLog(4<<20, 1<<30)
	log = log[bytes.IndexByte(log, '\n')+1:] // without its one GC cycle
	seen := 0
	for _, s := range samples(t) {
		if !slices.Contains(inLogs, s.name) {
			continue
		}
		seen++
		text := slices.Concat(log, log, []byte("\n"), s.paste, []byte("\n"), log, []byte("\n"), s.paste)
		parts, _, notes, err := attach.Stream("x", bytes.NewReader(text), Table())
		if err != nil || len(notes) != 1 {
			t.Errorf("%s: notes %q, error %v", s.name, notes, err)
		}
		var got []string
		lines := strings.Split(string(text), "\n")
		for _, p := range parts {
			got = append(got, p.Kind.Name)
			for _, l := range p.Lines {
				if !strings.Contains(lines[l.N-1], l.Text) {
					t.Fatalf("%s: line %d is %q, and not %q", s.name, l.N, lines[l.N-1], l.Text)
				}
			}
		}
		want := slices.Concat(kindsOf(s.paste), kindsOf(s.paste))
		if len(parts) > 0 && parts[0].Kind.Scattered {
			want = kindsOf(s.paste) // one part of both
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", s.name, got, want)
		}
	}
	if seen != len(inLogs) {
		t.Errorf("%d of %d samples are there", seen, len(inLogs))
	}
}

// A status whose end was cut off does not take the log behind it.
func TestCutShortInLog(t *testing.T) {
	log := longLog(9<<20, 500)
	var status []byte
	for _, s := range samples(t) {
		if s.name == "innodb-semaphores/paste" {
			status = s.paste
		}
	}
	status = status[:bytes.LastIndexByte(status[:len(status)*2/3], '\n')+1]
	parts, _, _, err := attach.Stream("x", bytes.NewReader(slices.Concat(log, status, log)), Table())
	cycles, rows := 0, 0
	for _, p := range parts {
		switch p.Kind.Name {
		case "gctrace":
			cycles = len(p.Lines)
		case "InnoDB status":
			rows = len(p.Lines)
		}
	}
	if want := 2 * bytes.Count(log, []byte("ms clock")); err != nil || len(parts) != 2 ||
		cycles != want || rows > bytes.Count(status, []byte("\n")) || rows == 0 {
		t.Errorf("%d parts with %d cycles, want %d, and %d lines of a status; %v", len(parts), cycles, want, rows, err)
	}
}

// A dump that is longer than what is held is one part, and says that it goes on.
func TestLongDump(t *testing.T) {
	var text bytes.Buffer
	text.WriteString("it hangs:\n\n")
	for n := 1; text.Len() < 30<<20; n++ {
		text.WriteString("goroutine 1" + strings.Repeat("0", n%5) + strconv.Itoa(100_000+n) +
			" [select, 5 minutes]:\nmain.work(0xc000010000)\n\t/src/main.go:10 +0x1d\ncreated by main.main\n\t/src/main.go:5 +0x2a\n\n")
	}
	parts, _, _, err := attach.Stream("x", &text, Table())
	if err != nil || len(parts) != 1 || parts[0].Kind.Name != "goroutine dump" ||
		parts[0].Left == 0 || len(parts[0].Lines) < 30_000 {
		t.Errorf("%d parts, %v", len(parts), err)
	}
}
