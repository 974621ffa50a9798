package systool

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// fio measures a disk by a load of its own: what a disk can do, and nothing of who waits for it.
var fio = &attach.Kind{
	Name:  "fio",
	Hints: []string{"groupid=", "IOPS=", "iops=", "clat (", "fio-", "Run status group"},
	Claim: claimFio,
	Read:  readFio,
}

var (
	fioJob   = regexp.MustCompile(`^(\S.*?): \(groupid=\d+, jobs=\d+\): err= *\d+`)
	fioLoad  = regexp.MustCompile(`^(read|write|trim|mixed) *: (?:IOPS=([\d.]+[kM]?), BW=([\d.]+\S+)|io=\S+, bw=([\d.]+\S+), iops=([\d.]+\w?))`)
	fioCalls = regexp.MustCompile(`^clat \((nsec|usec|msec|sec)\): min= *([\d.]+[kM]?), max= *([\d.]+[kM]?), avg= *([\d.]+)`)
	fioHigh  = regexp.MustCompile(`\b99\.00th=\[ *(\d+)\]`)
	fioScale = regexp.MustCompile(`^clat percentiles \((nsec|usec|msec)\)`)
	// fioRow is a line below those: latencies, percentiles, shares, sums.
	fioRow = regexp.MustCompile(`^([sc]?lat|sync|bw|iops|cpu|IO depths|submit|complete|issued|latency|errors|fsync/fdatasync/sync_file_range|clat percentiles|lat percentiles|sync percentiles|READ|WRITE|TRIM|slat percentiles) *(\(|:|rwts?:|\S+:)` +
		`|^\| +\d|^Run status group \d|^Disk stats \(|^(Starting|Jobs:|Laying out|fio-\d)|^\S+: \(g=\d+\): rw=|^\S+: ios=\d|^(read|write|trim|mixed) *: `)
)

func claimFio(lines []paste.Line) int {
	sure := false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		if fioJob.MatchString(text) || fioLoad.MatchString(text) || fioCalls.MatchString(text) {
			sure = true
			return true
		}
		return fioRow.MatchString(text) || text == "..."
	})
	return attach.ClaimIf(sure, n)
}

func readFio(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.unsure = "fio", true
	jobs, what, scale := 0, "", "usec"
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := fioJob.FindStringSubmatch(text); m != nil {
			jobs++
			continue
		}
		if m := fioLoad.FindStringSubmatch(text); m != nil {
			what = fmt.Sprintf("%s: %s requests/s, %s", m[1], m[2]+m[5], m[3]+m[4])
			continue
		}
		if m := fioScale.FindStringSubmatch(text); m != nil {
			scale = m[1]
		}
		if m := fioCalls.FindStringSubmatch(text); m != nil && len(v.Figures) < 8 {
			v.figure("%s; each took %s %s in the mean, %s %s at most", what, m[4], m[1], m[3], m[1])
			continue
		}
		if m := fioHigh.FindStringSubmatch(text); m != nil && len(v.Figures) > 0 {
			v.Figures[len(v.Figures)-1] += fmt.Sprintf(", p99 %s %s", m[1], scale)
		}
	}
	if jobs > 0 {
		v.Title = "fio, " + attach.Plural(jobs, "job")
	}
	if len(v.Figures) == 0 && what != "" {
		v.figure("%s", what)
	}
	v.means("fio makes a load of its own: this is what the disk did under it, and nothing of what a service waits for")
	v.not("that the disk is slow: a limit of the job's own, its depth of queue and its block size decide these figures")
	v.next("iostat -x 1 10", "how long the disk takes while the service is slow")
	return v.done()
}
