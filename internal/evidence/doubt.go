package evidence

import (
	"fmt"
	"time"
)

// A manifest comes from somebody else. Impossible times would give requests wrong dates; years that
// do not fit int64 nanoseconds would give them random ones.

const (
	firstYear, lastYear = 2000, 2200
	maxMono             = 1 << 61            // ns of uptime: 73 years
	maxApart            = 7 * 24 * time.Hour // within one case: at most an hour is recorded, but the machine may sleep meanwhile
	maxHostCPUs         = 1 << 16
)

// doubt removes what cannot be true and says so in Doubts.
func (m *Manifest) doubt() {
	ms := []*Moment{&m.Begun, &m.Ended}
	for i := range m.Requests {
		r := &m.Requests[i]
		ms = append(ms, &r.Sent, &r.First, &r.Ended)
	}
	for _, at := range ms {
		why := at.absurd()
		if why == "" && at != &m.Begun {
			why = at.strange(m.Begun)
		}
		if why == "" {
			continue
		}
		m.Doubts = append(m.Doubts, "manifest.json: "+why+": none of its times is used")
		for _, at := range ms {
			*at = Moment{}
		}
		break
	}
	if n := m.Host.CPUs; n < 0 || n > maxHostCPUs {
		m.Doubts = append(m.Doubts, fmt.Sprintf("manifest.json: a host of %d CPUs cannot be", n))
		m.Host.CPUs = 0
	}
	if m.Toll != nil && !m.Toll.holds() {
		m.Doubts = append(m.Doubts,
			"manifest.json: its counts of the target cannot be: what the recording cost the service is not known")
		m.Toll = nil
	}
}

// absurd says why no recording can have been made at that moment, "" if one can. A zero moment is
// an unknown one.
func (t Moment) absurd() string {
	if y := t.UTC.Year(); !t.UTC.IsZero() && (y < firstYear || y > lastYear) {
		return fmt.Sprintf("a time in the year %d cannot be", y)
	}
	if t.MonoNS < 0 || t.MonoNS > maxMono {
		return fmt.Sprintf("a monotonic time of %d ns cannot be", t.MonoNS)
	}
	return ""
}

// strange says why t cannot belong to a recording that started at begun, "" if it can. Both clocks
// may have been set, or have stopped, in between.
func (t Moment) strange(begun Moment) string {
	if d := t.UTC.Sub(begun.UTC); !t.UTC.IsZero() && !begun.UTC.IsZero() && d.Abs() > maxApart {
		return fmt.Sprintf("times that lie %.0f hours apart cannot be of one recording", d.Abs().Hours())
	}
	if d := time.Duration(t.MonoNS - begun.MonoNS); t.MonoNS != 0 && begun.MonoNS != 0 && d.Abs() > maxApart {
		return fmt.Sprintf("monotonic times that lie %.0f hours apart cannot be of one recording", d.Abs().Hours())
	}
	return ""
}
