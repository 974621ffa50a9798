package witness

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestServe(t *testing.T) {
	s := NewSeries("requests")
	for range 100 {
		s.Add(time.Now(), nil)
	}
	s.Add(time.Now(), errors.New("refused"))
	var out strings.Builder
	if err := Serve(strings.NewReader("mark all\nmark\n"), &out, s); err != nil {
		t.Fatal(err)
	}
	var first, second []Figures
	d := json.NewDecoder(strings.NewReader(out.String()))
	if err := errors.Join(d.Decode(&first), d.Decode(&second)); err != nil {
		t.Fatal(err)
	}
	if f := first[0]; f.N != 100 || f.Failed != 1 || f.P50 > f.P99 || f.P99 > f.Max || f.Max <= 0 ||
		len(f.All) != 100 || f.All[0][1] <= 0 {
		t.Errorf("first mark: %+v", f)
	}
	if f := second[0]; f.N != 0 || f.Failed != 0 || f.All != nil {
		t.Errorf("second mark: %+v, want nothing since the first", f)
	}
	if err := Serve(strings.NewReader("halt\n"), &out, s); err == nil {
		t.Error("an unknown command is no error")
	}
}

func TestQuantiles(t *testing.T) {
	s := NewSeries("x")
	for i := range 100 {
		s.all = append(s.all, Request{0, int64(100 - i)})
	}
	if f := s.Mark(false); f.P50 != 50 || f.P99 != 99 || f.Max != 100 {
		t.Errorf("of 1..100: %+v", f)
	}
}

func TestReady(t *testing.T) {
	var b strings.Builder
	Ready(&b, "url", "http://a", "pprof", "http://b")
	if got, want := b.String(), "ready url=http://a pprof=http://b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
