package evidence

import (
	"reflect"
	"strings"
	"testing"
)

func TestTextTwin(t *testing.T) {
	for _, line := range []string{
		`/cgroup/cpu/throttled:ns t=0 v=0`,
		`/cgroup/cpu/throttled:ns t=1000000000 v=230000000`,
		`/go/sched/gomaxprocs:threads sample t=5 v=4`,
		`/go/gc/cpu-fraction:ratio sample t=5 v=0.0123`,
		`/pprof/mutex/delay:ns sample t=9 v=1200 n=3 at="sync.(*Mutex).Unlock" at="main.f \"x\""`,
		`/go/version:text fact text="go1.26.1"`,
		`/trace gap t=10 end=20 text="lost"`,
		`/go/gctrace/cycle:ns interval t=-5 end=20 v=25`,
		`/x event t=1`,
	} {
		r, err := ParseRecord(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := r.String(); got != line {
			t.Errorf("printed %s\nwant    %s", got, line)
		}
	}
}

func TestTextErrors(t *testing.T) {
	for line, want := range map[string]string{
		``:                      `stream "": want /place/thing:unit`,
		`x t=1`:                 `stream "x": want /place/thing:unit`,
		`/x blob t=1`:           `shape "blob": want event, interval, sample, counter, fact or gap`,
		`/x t=1 t=2`:            `field t: given twice`,
		`/x t=one`:              `field t: strconv.ParseInt: parsing "one": invalid syntax`,
		`/x v=NaN`:              `field v: want a finite number`,
		`/x sample 7`:           `field "7": want key=value`,
		`/x text=go`:            `field text: want a quoted string`,
		`/x text="go"v=1`:       `field text: text after the closing quote`,
		`/x w=1`:                `field "w": want t, end, v, n, text or at`,
		"/x\x1b[31m t=1":        `stream "/x\x1b[31m": want printable ASCII without blanks`,
		`/x fact text="a` + "`": `field text: want a quoted string`,
	} {
		if _, err := ParseRecord(line); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", line, err, want)
		}
	}
	if _, err := ParseText(strings.NewReader("# made by hand\n\n/x t=1 v=2\n/y q=1\n")); err == nil || !strings.HasPrefix(err.Error(), "line 4: ") {
		t.Errorf("got %v, want the line's number", err)
	}
}

// FuzzParseRecord checks that a line that parses is the same after printing and parsing.
func FuzzParseRecord(f *testing.F) {
	f.Add(`/pprof/mutex/delay:ns sample t=9 v=1.5e300 n=3 at="a" at="b"`)
	f.Add(`/trace gap t=10 end=20 text="lost \x00"`)
	f.Fuzz(func(t *testing.T, line string) {
		r, err := ParseRecord(line)
		if err != nil {
			return
		}
		again, err := ParseRecord(r.String())
		if err != nil {
			t.Fatalf("%q printed as %q: %v", line, r.String(), err)
		}
		if !reflect.DeepEqual(r, again) {
			t.Fatalf("%+v printed and parsed is %+v", r, again)
		}
	})
}

// A stream with nothing but gaps was not read.
func TestGapIsNothing(t *testing.T) {
	var s Set
	s.Add(Record{Stream: "/b", Shape: GapShape, Text: "restarted"})
	s.Add(Record{Stream: "/a", Shape: Sample})
	if s.Has("/b") || !s.Has("/a") || len(s.Gaps()) != 1 || s.Gaps()[0].Stream != "/b" {
		t.Errorf("has %v %v, gaps %v", s.Has("/a"), s.Has("/b"), s.Gaps())
	}
}
