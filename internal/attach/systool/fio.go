package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// fio measures a disk by a load of its own: what a disk can do, and nothing of who waits for it.
var fio = &attach.Kind{
	Name: "fio",
	Hints: []string{"groupid=", "IOPS=", "iops=", "clat (", "fio-", "Run status group", " bw (",
		"issued rwt", "lat (msec)", "lat (usec)", "IO depths"},
	Claim: claimFio,
	Read:  readFio,
}

var (
	fioJob    = pattern.New(`^(\S.*?): \(groupid=\d+, jobs=\d+\): err= *\d+`)
	fioLoad   = pattern.New(`^(read|write|trim|mixed) *: (?:IOPS=([\d.]+[kM]?), BW=([\d.]+\S+)|io=\S+, bw=([\d.]+\S+), iops=([\d.]+\w?))`)
	fioCalls  = pattern.New(`^clat \((nsec|usec|msec|sec)\): min= *([\d.]+[kM]?), max= *([\d.]+[kM]?), avg= *([\d.]+)`)
	fioHigh   = pattern.New(`\b99\.00th=\[ *(\d+)\]`)
	fioSubmit = pattern.New(`^slat \((nsec|usec|msec|sec)\): min= *[\d.]+[kM]?, max= *[\d.]+[kM]?, avg= *([\d.]+)`)
	// fioTail is what stands below the times, where the start was cut off.
	fioTail  = pattern.New(`^issued rwts?: total=\d+,\d+|^latency +: target=\d+, window=\d+, percentile=[\d.]+%, depth=\d+|^IO depths +: 1=[\d.]+%, 2=`)
	fioRate  = pattern.New(`^iops +: min= *\d+, max= *\d+, avg= *([\d.]+)`)
	fioDeep  = pattern.New(`^latency +: target=.*\bdepth=(\d+)`)
	fioSync  = pattern.New(`^sync \((nsec|usec|msec|sec)\): min= *([\d.]+[kM]?), max= *([\d.]+[kM]?), avg= *([\d.]+[kM]?)`)
	fioSyncs = pattern.New(`\bf(?:data)?sync=([1-9]\d*)\b`) // an option of its command
	fioScale = pattern.New(`^(?:clat|sync) percentiles \((nsec|usec|msec)\)`)
	// fioRow is a line below those: latencies, percentiles, shares, sums.
	fioRow = pattern.New(`^([sc]?lat|sync|bw|iops|cpu|IO depths|submit|complete|issued|latency|errors|fsync/fdatasync/sync_file_range|clat percentiles|lat percentiles|sync percentiles|READ|WRITE|TRIM|slat percentiles) *(\(|:|rwts?:|\S+:)` +
		`|^\| +\d|^Run status group \d|^Disk stats \(|^(Starting|Jobs:|Laying out|fio-\d)|^\S+: \(g=\d+\): rw=|^\S+: ios=\d|^(read|write|trim|mixed) *: `)
)

func claimFio(lines []paste.Line) int {
	sure := false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		if fioJob.MatchString(text) || fioLoad.MatchString(text) || fioCalls.MatchString(text) ||
			fioTail.MatchString(text) {
			sure = true
			return true
		}
		return fioRow.MatchString(text) || text == "..."
	})
	return attach.ClaimIf(sure, n)
}

// fioUnits are the units of fio's times, in milliseconds.
var fioUnits = map[string]float64{"nsec": 1e-6, "usec": 1e-3, "msec": 1, "sec": 1e3}

// fioTime is one of fio's times in milliseconds: 94396k usec. 0: it is none.
func fioTime(s, unit string) float64 {
	times := 1.0
	switch {
	case strings.HasSuffix(s, "k"):
		times = 1e3
	case strings.HasSuffix(s, "M"):
		times = 1e6
	}
	f, _ := number(strings.TrimRight(s, "kM"))
	return f * times * fioUnits[unit]
}

// fioShow writes milliseconds.
func fioShow(ms float64) string {
	if ms >= 1e3 {
		return plain(ms/1e3) + " s"
	}
	if ms < 1 {
		return plain(ms*1e3) + " us"
	}
	return plain(ms) + " ms"
}

// fioSynced reports whether the job syncs its writes: their times are without those of the syncs,
// and mostly of the page cache.
func fioSynced(p *attach.Part) (synced, shown bool) {
	shown = slices.ContainsFunc(p.Lines,
		func(l paste.Line) bool { return fioSync.MatchString(strings.TrimSpace(l.Text)) })
	return shown || fioSyncs.MatchString(p.Command), shown
}

// fioBoth says how long a write and its sync take by the rate, where the syncs' own times are cut
// off.
func fioBoth(v *verdict, p *attach.Part, jobs int) {
	every, rate := fioSyncs.FindStringSubmatch(p.Command), 0.0
	for _, l := range p.Lines {
		if m := fioLoad.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil && m[1] == "write" {
			rate = fioTime(m[2]+m[5], "msec")
		}
	}
	if every[1] == "1" && jobs == 1 && rate > 0 {
		v.figure("%s for a write and its sync, by the rate; the syncs' own times are not in it", fioShow(1e3/rate))
	}
}

func readFio(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.unsure = "fio", true
	jobs, what, scale, submit, mean := 0, "", "usec", 0.0, 0.0
	var rate, deep float64
	synced, shown := fioSynced(p)
	each := "each took"
	if synced {
		each = "each, without its sync, took"
	}
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := fioJob.FindStringSubmatch(text); m != nil {
			jobs++
			submit = 0
			continue
		}
		if m := fioLoad.FindStringSubmatch(text); m != nil {
			what = fmt.Sprintf("%s: %s requests/s, %s", m[1], m[2]+m[5], m[3]+m[4])
			submit = 0
			continue
		}
		if m := fioRate.FindStringSubmatch(text); m != nil && rate == 0 {
			rate, _ = number(m[1])
		}
		if m := fioDeep.FindStringSubmatch(text); m != nil && deep == 0 {
			deep, _ = number(m[1])
		}
		if m := fioScale.FindStringSubmatch(text); m != nil {
			scale = m[1]
		}
		if m := fioSubmit.FindStringSubmatch(text); m != nil {
			submit = fioTime(m[2], m[1])
		}
		if m := fioCalls.FindStringSubmatch(text); m != nil && len(v.Figures) < 8 {
			mean = fioTime(m[4], m[1])
			v.figure("%s; %s %s in the mean, %s at most", what, each, fioShow(mean), fioShow(fioTime(m[3], m[1])))
			if submit >= 1 {
				v.Figures[len(v.Figures)-1] += fmt.Sprintf(", and %s before that to be submitted", fioShow(submit))
			}
			continue
		}
		if m := fioSync.FindStringSubmatch(text); m != nil && len(v.Figures) < 8 {
			mean = fioTime(m[4], m[1])
			v.figure("each sync took %s in the mean, %s at most", fioShow(mean), fioShow(fioTime(m[3], m[1])))
			continue
		}
		if m := fioHigh.FindStringSubmatch(text); m != nil && len(v.Figures) > 0 {
			high, most := fioTime(m[1], scale), ""
			if high < mean { // its histogram ends at 17 s
				most = " or more: fio's percentiles end there"
			}
			v.Figures[len(v.Figures)-1] += fmt.Sprintf(", p99 %s%s", fioShow(high), most)
		}
	}
	if jobs > 0 {
		v.Title = "fio, " + attach.Plural(jobs, "job")
	}
	if len(v.Figures) == 0 && what != "" {
		v.figure("%s", what)
	}
	if len(v.Figures) == 0 && rate > 0 {
		v.figure("%s requests/s in the mean", plain(rate))
		if deep > 1 {
			v.figure("%s requests under way at once, which alone makes each take %s", plain(deep),
				fioShow(1e3*deep/rate))
		}
	}
	if synced {
		v.not("the sync's time by that of a write: a write without direct I/O ends in the page cache, and the sync after it is timed apart")
		if !shown {
			fioBoth(v, p, jobs)
		}
	}
	v.means("fio makes a load of its own: this is what the disk did under it, and nothing of what a service waits for")
	v.not("that the disk is slow: a limit of the job's own, its depth of queue and its block size decide these figures")
	v.next("iostat -x 1 10", "how long the disk takes while the service is slow")
	return v.done()
}
