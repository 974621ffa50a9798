package evidence

import (
	"fmt"
	"strings"
	"testing"
)

func TestManifestTimesThatCannotBe(t *testing.T) {
	const good = `{"utc":"2026-11-21T10:00:00Z","mono_ns":1000000000}`
	manifest := func(begun, sent string, cpus int) string {
		return fmt.Sprintf(`{"schema":1,"begun":%s,"ended":%s,"host":{"cpus":%d},"requests":[{"member":"trace.out","sent":%s}]}`, begun, begun, cpus, sent)
	}
	for _, c := range []struct{ text, want string }{
		{manifest(good, good, 2), ""},
		{manifest(`{"utc":"0001-01-01T00:00:00Z","mono_ns":0}`, good, 2), ""}, // not known
		{manifest(`{"utc":"9999-01-01T00:00:00Z","mono_ns":1}`, good, 2), "a time in the year 9999 cannot be"},
		{manifest(good, `{"utc":"1601-01-01T00:00:00Z","mono_ns":1}`, 2), "a time in the year 1601 cannot be"},
		{manifest(good, `{"utc":"2026-11-21T10:00:01Z","mono_ns":-7}`, 2), "a monotonic time of -7 ns cannot be"},
		{manifest(good, `{"utc":"2027-11-21T10:00:00Z","mono_ns":1000000001}`, 2), "times that lie 8760 hours apart"},
		{manifest(good, `{"utc":"2026-11-21T10:00:00Z","mono_ns":1000000000000000000}`, 2),
			"monotonic times that lie 277778 hours apart"},
		{manifest(good, good, -1), "a host of -1 CPUs cannot be"},
	} {
		m, err := ParseManifest([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(m.Doubts, "; "); c.want == "" != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: doubts %q, want %q", c.text, got, c.want)
		}
		r, _ := m.RequestFor(TraceMember)
		if times := strings.Contains(c.want, "time"); times != r.Sent.UTC.IsZero() || times && m.Begun != (Moment{}) {
			t.Errorf("%s: kept begun %v, sent %v", c.text, m.Begun, r.Sent)
		}
	}
}
