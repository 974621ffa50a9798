package capacity

import "testing"

func TestCovered(t *testing.T) {
	by := []lasting{{50, 60}, {10, 20}, {15, 30}, {70, 70}}
	for _, c := range []struct {
		of   lasting
		want int64
	}{
		{lasting{0, 100}, 30}, {lasting{12, 25}, 13}, {lasting{30, 50}, 0}, {lasting{25, 55}, 10}, {lasting{60, 90}, 0}, {lasting{55, 55}, 0},
	} {
		if got := covered([]lasting{c.of}, by); got != c.want {
			t.Errorf("of %v: %d, want %d", c.of, got, c.want)
		}
	}
	if got := covered([]lasting{{0, 100}, {12, 25}}, by); got != 43 {
		t.Errorf("each on its own: %d, want 43", got)
	}
}
