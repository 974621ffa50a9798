package proc

import "testing"

func TestFrozen(t *testing.T) {
	for text, want := range map[string]bool{
		"FROZEN\n": true, "THAWED\n": false, "FREEZING\n": false, "populated 1\nfrozen 1\n": true,
		"populated 1\nfrozen 0\n": false, "": false,
	} {
		if got := Frozen([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
