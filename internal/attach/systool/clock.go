package systool

import (
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

const secondsOfDay = 24 * 60 * 60

var (
	// upSince is the clock and the uptime as top, uptime and w print them.
	upSince = pattern.New(`(\d{1,2}):(\d\d):(\d\d) +up +(?:(\d+) days?, *)?(?:(\d+):(\d\d)|(\d+) min)\b`)
	topTime = pattern.New(`^top - (\d{1,2}):(\d\d):(\d\d)\b`)
)

// clock is a time of the day in seconds.
func clock(hour, minute, second string) int {
	h, _ := whole(hour)
	m, _ := whole(minute)
	s, _ := whole(second)
	return (h*60+m)*60 + s
}

// booted is the time of the day at which the machine was started, to the minute, and the seconds
// since the midnight before that.
func booted(p *attach.Part) (start, now int, ok bool) {
	for _, l := range p.Lines[:min(len(p.Lines), 4)] {
		m := upSince.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		days, _ := whole(m[4])
		minutes, _ := whole(m[7])
		at := clock(m[1], m[2], m[3])
		up := min(days, 1e5)*secondsOfDay + clock(m[5], m[6], "") + minutes*60
		start = ((at-up)%secondsOfDay + secondsOfDay) % secondsOfDay
		return start, start + up, true
	}
	return 0, 0, false
}

// whenUp places a part on the machine's own clock. So two parts are in order, and it is known
// how much time lies between, if both are of one boot: HostBoot tells that.
func whenUp(p *attach.Part) time.Time {
	_, now, ok := booted(p)
	if !ok {
		return time.Time{}
	}
	return time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(now) * time.Second)
}

// boot notes when the machine was started, as far as the part says so.
func (v *verdict) boot(p *attach.Part) {
	if start, _, ok := booted(p); ok {
		v.fact(attach.HostBoot, float64(start))
	}
}

// topPause is longer than the screens of one run of top are apart, in seconds.
const topPause = 120

// otherLook reports whether a screen of top is of another run than the one before it, by the
// clocks in their first lines: people put two looks below each other.
func otherLook(before, text string) bool {
	a := topTime.FindStringSubmatch(strings.TrimSpace(before))
	b := topTime.FindStringSubmatch(strings.TrimSpace(text))
	if a == nil || b == nil {
		return false
	}
	gap := clock(b[1], b[2], b[3]) - clock(a[1], a[2], a[3])
	if gap < 0 { // over midnight, or the earlier one stands below
		gap += secondsOfDay
	}
	return gap > topPause
}

// bannerDate is the date behind the host in the first line of sysstat's tools.
var bannerDate = pattern.New(`\)\s+(\d{1,4})\D(\d{1,2})\D(\d{2,4})`)

// sysstatWhen is the date in the banner with the time of the first row; zero: one of them is cut
// off. Where a date has slashes, the month stands first, unless it cannot.
func sysstatWhen(p *attach.Part) time.Time {
	date := bannerDate.FindStringSubmatch(p.Lines[0].Text)
	if date == nil || banner(p.Lines[0].Text) == nil {
		return time.Time{}
	}
	var n [4]int
	for i := 1; i < 4; i++ {
		n[i], _ = whole(date[i])
	}
	year, month, day := n[1], n[2], n[3]
	switch {
	case len(date[1]) == 4:
	case n[1] > 12 || strings.Contains(p.Lines[0].Text, date[1]+"."):
		day, month, year = n[1], n[2], n[3]
	default:
		month, day, year = n[1], n[2], n[3]
	}
	if year < 100 {
		year += 2000
	}
	for _, l := range p.Lines[1:] {
		if at, _, _, ok := sysstatTime(fields(l.Text)); ok && at != "" {
			if s, ok := seconds(at); ok && s < secondsOfDay {
				return time.Date(year, time.Month(month), day, 0, 0, int(s), 0, time.UTC)
			}
		}
	}
	return time.Time{}
}
