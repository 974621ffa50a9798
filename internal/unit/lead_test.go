package unit

import "testing"

// Two threads each wait for events half of the time. By turns they are leader and followers, at
// random they are not; nor is one that waits alone, or two of which one hardly waits.
func TestTakeTurns(t *testing.T) {
	const ms = 1_000_000
	turns := func(second, share int64) (l []poll) {
		for at := int64(0); at < 100; at++ {
			l = append(l, poll{1, at * 2 * ms, at*2*ms + ms}, poll{2, at*2*ms + second, at*2*ms + second + share})
		}
		return l
	}
	for _, c := range []struct {
		name  string
		waits []poll
		want  int
	}{
		{"by turns", turns(ms, ms), 2},
		{"with a switch between", turns(ms-20_000, ms), 2},
		{"half at once", turns(ms/2, ms), 0},
		{"one hardly waits", turns(ms, ms/100), 0},
		{"one alone", []poll{{1, 0, 100 * ms}}, 0},
		{"none", nil, 0},
	} {
		if got := takeTurns(c.waits, 200*ms); len(got) != c.want {
			t.Errorf("%s: %v, want %d of them", c.name, got, c.want)
		}
	}
}
