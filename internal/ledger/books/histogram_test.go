package books

import (
	"math/rand/v2"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
)

// TestQuantiles: three quantiles at once are those that are asked for one by one.
func TestQuantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	for n := range 2000 {
		q := [3]float64{r.Float64(), 1 - r.Float64()/50, 1 - r.Float64()*r.Float64()*2}
		want := [3]int64{h.Quantile(q[0]), h.Quantile(q[1]), h.Quantile(q[2])}
		if got := h.quantiles(q); got != want {
			t.Fatalf("%d durations: quantiles %v are %d, want %d", n, q, got, want)
		}
		h.Add(int64(r.ExpFloat64() * 1e6))
	}
}

// Reports know the kind of a group that no server is known of.
func TestGroupLoop(t *testing.T) {
	if account.GroupLoop != request.KindLoop {
		t.Errorf("%q and %q", account.GroupLoop, request.KindLoop)
	}
}
