package capacity

import (
	"reflect"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
)

// A level is the share of the time between two readings. A counter that fell was restarted, and a
// reading whose time is not known says nothing.
func TestLevel(t *testing.T) {
	var l []evidence.Record
	for _, r := range [][2]int64{{100, 0}, {200, 50}, {300, 20}, {0, 30}, {400, 500}} {
		l = append(l, evidence.Record{Shape: evidence.Counter, Time: r[0], Value: float64(r[1])})
	}
	got := level(l, "x", 100)
	want := account.Level{Stream: "x",
		Points: []account.LevelPoint{{Begin: 0, End: 100, Share: 0.5}, {Begin: 200, End: 300, Share: 1}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Bands are few, however many stretches there were, and they cover what they were made of.
func TestBands(t *testing.T) {
	var l Times
	for i := range int64(3 * MaxSpans) {
		l = l.and(Span{i * 10, i*10 + 1 + i%5})
	}
	if len(l) > MaxSpans {
		t.Errorf("%d spans are kept", len(l))
	}
	bs := bands(account.BandThrottled, l, 7)
	if len(bs) > account.MostBands || bs[0].Begin != 7 || bs[len(bs)-1].End < int64(3*MaxSpans-1)*10+1+7 {
		t.Errorf("%d bands from %d to %d", len(bs), bs[0].Begin, bs[len(bs)-1].End)
	}
	if got := (Times{{0, 10}}).and(Span{5, 20}); !reflect.DeepEqual(got, Times{{0, 20}}) {
		t.Errorf("%v", got)
	}
}
