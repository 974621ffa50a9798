package systool

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// zpool is zpool iostat of ZFS: rates by pool and device, and with -l how long requests take. Its
// first report is since boot.
var zpool = &attach.Kind{
	Name:  "zpool iostat",
	Hints: []string{"capacity ", "alloc "},
	Claim: claimZpool,
	Read:  readZpool,
}

var (
	zpoolTop   = pattern.New(`^\s*capacity\s+operations\s+bandwidth`)
	zpoolNames = pattern.New(`^pool\s+alloc\s+free\s+read\s+write\s+read\s+write`)
	zpoolRule  = pattern.New(`^-{3,}(?:\s+-+)+$`)
	zpoolCell  = pattern.New(`^(?:-|\d+(?:\.\d+)?(?:[KMGTPE]|[num]?s)?)$`)
)

// zpoolCells is how many figures a row has at least.
const zpoolCells = 6

func zpoolRow(text string) []string {
	f := fields(text)
	if len(f) <= zpoolCells {
		return nil
	}
	for _, c := range f[1:] {
		if !zpoolCell.MatchString(c) {
			return nil
		}
	}
	return f
}

func claimZpool(lines []paste.Line) int {
	if !zpoolTop.MatchString(lines[0].Text) && !zpoolNames.MatchString(lines[0].Text) {
		return 0
	}
	rows := 0
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		switch {
		case zpoolTop.MatchString(text), zpoolNames.MatchString(text), zpoolRule.MatchString(text):
		case zpoolRow(text) != nil:
			rows++
		default:
			f := fields(text) // a group of devices, such as "logs": it has no figures
			return rows > 0 && len(f) > 1 && strings.Trim(strings.Join(f[1:], ""), "-") == ""
		}
		return true
	})
	return attach.ClaimIf(rows > 0, n)
}

// zpoolLong is a wait in ms that is long for a disk that turns.
const zpoolLong = 50.0

func readZpool(p *attach.Part) attach.Reading {
	v := &verdict{}
	type rates struct {
		samples         int
		ops, read, wrot []float64
		wait            []float64 // ms, the longer of reads and writes
	}
	pools := map[string]*rates{}
	first, latencies := "", false
	for _, l := range p.Lines {
		if strings.Contains(l.Text, "total_wait") {
			latencies = true
		}
		f := zpoolRow(l.Text)
		if f == nil || strings.HasPrefix(l.Text, " ") || len(pools) > 1000 {
			continue
		}
		r := pools[f[0]]
		if r == nil {
			r = &rates{}
			pools[f[0]] = r
			first = cmp.Or(first, f[0])
		}
		r.samples++
		reads, _ := size(f[3], 1)
		writes, _ := size(f[4], 1)
		in, _ := size(f[5], 1)
		out, _ := size(f[6], 1)
		r.ops, r.read, r.wrot = append(r.ops, reads+writes), append(r.read, in), append(r.wrot, out)
		if latencies && len(f) > 8 {
			r.wait = append(r.wait, max(zpoolTime(f[7]), zpoolTime(f[8])))
		}
	}
	v.Title = "zpool iostat, " + attach.Plural(len(pools), "pool")
	one := pools[first]
	if one == nil {
		v.unsure = true
		return v.done()
	}
	since := 0
	if one.samples > 1 {
		since = 1
		v.Title += ", " + samples(one.samples-1) + " after the report since boot"
	} else {
		v.Boot, v.unsure = true, true
		v.Title += ", one report since boot"
	}
	v.figure("%s: %s requests/s, %s/s read, %s/s written", first,
		plain(attach.Median(one.ops[since:])), bytes(attach.Median(one.read[since:])),
		bytes(attach.Median(one.wrot[since:])))
	if len(one.wait) > since {
		wait := attach.Median(one.wait[since:])
		v.figure("%s: requests take %s ms (total_wait)", first, plain(wait))
		if wait >= zpoolLong && one.samples > enoughSamples {
			v.candidate("disk-wait", 0, fmt.Sprintf("%s: total_wait %s ms, the median of %s", first,
				plain(wait), samples(one.samples-1)))
			v.means("requests to %s take %s ms: whether anybody waits for them is not in it", first, plain(wait))
		}
	}
	v.next("zpool iostat -l 1 10", "how long requests take: total_wait and disk_wait")
	if v.Boot {
		v.means("a single report is an average since boot, and says nothing about now")
	} else if len(one.wait) == 0 {
		v.unsure = true
	}
	v.means("what is read and written says nothing of who waits for it")
	v.not("that a busy pool is slow: rates are no times")
	return v.done()
}

// zpoolTime reads "12ms", "431us", "-" as ms.
func zpoolTime(s string) float64 {
	for _, u := range []struct {
		unit string
		ms   float64
	}{{"ns", 1e-6}, {"us", 1e-3}, {"ms", 1}, {"s", 1e3}} {
		if n, ok := strings.CutSuffix(s, u.unit); ok {
			f, _ := number(n)
			return f * u.ms
		}
	}
	return 0
}
