package profiler

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// btt sums up what blktrace saw: how long requests were in each stage on their way to a disk.
var btt = &attach.Kind{Name: "btt", Claim: claimBtt, Read: readBtt,
	Hints: []string{"All Devices", "Q2Q", "Q2C", "D2C", "I2D"}}

var (
	// "D2C    0.000103 0.004120 0.060010 8120": seconds at least, in the mean and at most
	bttRow  = pattern.New(`^(Q2Q|Q2A|Q2I|Q2G|G2I|Q2M|I2D|M2D|D2C|Q2C)\s+(\d+\.\d{9})\s+(\d+\.\d{9})\s+(\d+\.\d{9})\s+(\d+)$`)
	bttHead = pattern.New(`^(?:=+ All Devices =+|ALL\s+MIN\s+AVG\s+MAX\s+N|-+(?: +-+){3,})$`)
)

func claimBtt(lines []paste.Line) int {
	rows := 0
	n := claimed(lines, func(_ int, text string) bool {
		if bttRow.MatchString(text) {
			rows++
			return true
		}
		return rows == 0 && bttHead.MatchString(text)
	})
	return attach.ClaimIf(rows >= 2, n)
}

func readBtt(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "btt", State: attach.CannotTell}
	mean, longest, n := map[string]float64{}, map[string]float64{}, 0.0
	for _, text := range texts(p) {
		if m := bttRow.FindStringSubmatch(text); m != nil {
			mean[m[1]], _ = number(m[3])
			longest[m[1]], _ = number(m[4])
			if c, _ := number(m[5]); m[1] == "D2C" {
				n = c
			}
		}
	}
	for _, stage := range []struct{ name, what string }{{"D2C", "in the driver and the device"},
		{"I2D", "in the scheduler's queue"}, {"Q2C", "in all"}} {
		if mean[stage.name] > 0 {
			r.Figures = append(r.Figures, fmt.Sprintf("%s: %s in the mean, %s at most (%s)",
				stage.what, lasts(mean[stage.name]), lasts(longest[stage.name]), stage.name))
		}
	}
	r.Not = "Q2Q is the distance from one request to the next, and no wait. Whose requests these were is not in it."
	device, queued := mean["D2C"], mean["I2D"]
	if n > 0 {
		r.Title = fmt.Sprintf("btt, %s requests", count(n))
	}
	switch {
	case device == 0:
		r.Means = "How long the device took is not in it."
	case device >= 0.010 || queued >= 0.010:
		proof := fmt.Sprintf("requests took %s in the driver and the device in the mean, and %s in the queue before it", lasts(device), lasts(queued))
		r.Means = upper(proof) + ": usual for a rotating or a remote disk under load, late for an SSD."
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate, Proof: []string{proof}})
		r.Next = append(r.Next, record(0, "whose requests waited for it"))
	case n < 50 || longest["D2C"] >= 0.1 || longest["I2D"] >= 0.1:
		r.Means = "The device answered in time in the mean; a mean says nothing of the few that are late."
	default:
		r.State = attach.Healthy
		r.Means = "The device answered in time."
	}
	return r
}
