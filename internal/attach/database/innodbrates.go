package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// innoRates is what a status says of the seconds before it, a second.
type innoRates struct {
	over        string    // seconds; "": not in the lines
	rows, files []float64 // nil: not in the lines
	pool        []float64 // the buffer pool's
	hit         string    // of 1000 pages
	waits       []string  // for the engine's own locks since the start, by sort
}

var (
	innoOver  = pattern.New(`^Per second averages calculated from the last (\d+) seconds$`)
	innoRows  = pattern.New(`^([\d.]+) inserts/s, ([\d.]+) updates/s, ([\d.]+) deletes/s, ([\d.]+) reads/s$`)
	innoFiles = pattern.New(`^([\d.]+) reads/s, \d+ avg bytes/read, ([\d.]+) writes/s, ([\d.]+) fsyncs/s$`)
	innoPool  = pattern.New(`^([\d.]+) reads/s, ([\d.]+) creates/s, ([\d.]+) writes/s$`)
	innoWaits = pattern.New(`\b(Mutex|RW-shared|RW-excl|RW-sx) spin(?:s| waits) \d+,(?: rounds \d+,)? OS waits (\d+)`)
	innoHits  = pattern.New(`^Buffer pool hit rate (\d+) / 1000\b`)
)

// line reads one line. Of several buffer pools, and of the rows of the server's own tables, the
// first stand for all.
func (i *innoRates) line(t string) {
	if m := innoOver.FindStringSubmatch(t); m != nil {
		i.over = m[1]
	}
	for _, f := range []struct {
		re *pattern.Regexp
		to *[]float64
	}{{innoRows, &i.rows}, {innoFiles, &i.files}, {innoPool, &i.pool}} {
		m := f.re.FindStringSubmatch(t)
		if m == nil || *f.to != nil {
			continue
		}
		for _, text := range m[1:] {
			v, _ := number(text)
			*f.to = append(*f.to, v)
		}
	}
	for _, m := range innoWaits.FindAllStringSubmatch(t, 4) {
		if v, ok := number(m[2]); ok && v > 0 && len(i.waits) < 4 {
			i.waits = append(i.waits, m[1]+" "+count(v))
		}
	}
	if m := innoHits.FindStringSubmatch(t); m != nil && i.hit == "" {
		i.hit = m[1]
	}
}

// behind is in how many seconds so many writes end at the rate of the seconds before; 0: in less
// than one, or they are few, or none ended.
func (i *innoRates) behind(pending float64) float64 {
	if i.files == nil || i.files[1] <= 0 || pending < 10 || pending < i.files[1] {
		return 0
	}
	return pending / i.files[1]
}

// osWaits says how often threads have waited for the engine's own locks.
func (i *innoRates) osWaits() string {
	if len(i.waits) == 0 {
		return ""
	}
	return "waits for InnoDB's own locks since the start: " + strings.Join(i.waits, ", ")
}

// said reports whether the status goes as far as to its rates.
func (i *innoRates) said() bool { return i.rows != nil || i.files != nil }

// idle reports whether no row, no file and no page was touched.
func (i *innoRates) idle() bool {
	for _, v := range slices.Concat(i.rows, i.files, i.pool) {
		if v > 0 {
			return false
		}
	}
	return i.rows != nil && i.files != nil
}

func (i *innoRates) tell(r *result) {
	if !i.said() {
		return
	}
	var list []string
	if i.rows != nil {
		list = append(list, fmt.Sprintf("rows inserted %s, updated %s, deleted %s, read %s",
			count(i.rows[0]), count(i.rows[1]), count(i.rows[2]), count(i.rows[3])))
	}
	if i.files != nil {
		list = append(list, fmt.Sprintf("reads of files %s, writes %s, fsyncs %s",
			count(i.files[0]), count(i.files[1]), count(i.files[2])))
	}
	line := "a second: " + strings.Join(list, "; ")
	if i.over != "" {
		line = "a second in its last " + i.over + " s: " + strings.Join(list, "; ")
	}
	if i.hit != "" {
		line += "; " + i.hit + " of 1000 pages found in the buffer pool"
	}
	r.figure(line)
}
