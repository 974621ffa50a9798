package cli

import (
	"testing"
	"time"
)

func TestTimeOf(t *testing.T) {
	want := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	for _, s := range []string{"2026-11-22T08:00:00Z", "2026-11-22T10:00:00+02:00",
		"2026-11-22 08:00:00", "2026-11-22 08:00:00 UTC", "2026-11-22T08:00", "2026-11-22 08:00",
		"1795334400", "1795334400000"} {
		if got, ok := timeOf(s); !ok || !got.Equal(want) {
			t.Errorf("%s: %v %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "now", "-1h", "10m", "08:00", "12", "2026", "1795334400.5", "99999999999999999999"} {
		if got, ok := timeOf(s); ok {
			t.Errorf("%s: %v", s, got)
		}
	}
}

func TestInHours(t *testing.T) {
	for s, want := range map[string]string{"1d": "24h", "7d12h": "168h12h", "2w": "336h",
		"5m": "5m", "d": "d", "-1d": "-1d", "99999999d": "99999999d", "1.5d": "1.5d"} {
		if got := inHours(s); got != want {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
	}
}
