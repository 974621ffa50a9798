package evidence

import "testing"

func TestGoMinor(t *testing.T) {
	for v, want := range map[string]int64{
		"go1.18.10": 18, "go1.26": 26, "go1.26-devel_abc": 26, "go1.25rc1": 25, "devel +0a1b2c": 0,
		"": 0, "1.26": 0, "go1.": 0, "go1.99999999999999999999": 0,
	} {
		if got := GoMinor(v); got != want {
			t.Errorf("%q: %d, want %d", v, got, want)
		}
	}
}
