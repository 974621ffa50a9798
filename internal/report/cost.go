package report

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// cost says what recording and explaining took.
func (r *Report) cost() string {
	c := &r.Cost
	parts := append([]string{}, c.Recorder...)
	if s := r.recording(); s != "" {
		parts = append(parts, s)
	}
	if c.ExplainNS > 0 {
		s := "explaining took " + finding.Duration(c.ExplainNS)
		if c.ExplainCPUNS > 0 {
			s += " (" + finding.Duration(c.ExplainCPUNS) + " CPU)"
		}
		if c.Events > 0 {
			s += fmt.Sprintf(" for %s events, %s", count(c.Events), finding.Bytes(c.Bytes))
		}
		if c.MaxHeap > 0 {
			s += ", at most " + finding.Bytes(c.MaxHeap) + " of heap"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// recording says what recording a process cost, and what was lost or lowered.
func (r *Report) recording() string {
	c := r.Cost.Recording
	if c == nil {
		return ""
	}
	var kernel, records, lost int64
	var lowered []string
	for _, t := range r.Tiers {
		if t.Cost == nil {
			continue
		}
		kernel += t.Cost.KernelNS
		records += t.Cost.Records
		lost += t.Cost.Lost
		if t.Cost.Lowered != "" {
			lowered = append(lowered, t.Cost.Lowered)
		}
	}
	s := "its recorder used "
	if c.OnceNS > 0 {
		s += finding.Duration(c.OnceNS) + " CPU to start and to stop, "
	}
	s += finding.Duration(c.CPUNS-c.OnceNS) + " CPU"
	if c.OnceNS > 0 {
		s += " in between"
	}
	if kernel > 0 {
		s += " and " + finding.Duration(kernel) + " in its kernel programs"
	}
	if c.TargetNS > 0 {
		s += fmt.Sprintf(", %s of the %s that the target used",
			percent(share(c.CPUNS-c.OnceNS+kernel, c.TargetNS)), finding.Duration(c.TargetNS))
	}
	if c.SharedQuota != "" {
		// The quota is charged for both alike, so each has the same share in its running out as in
		// its use. Kernel programs run in the target's own time.
		s += fmt.Sprintf(", under the quota of %s that it shared with the target (%s): it caused %s of what the two used, and so of their throttling",
			cpus(c.QuotaCPUs), c.SharedQuota, percent(share(c.CPUNS, c.CPUNS+c.TargetNS)))
	}
	if records > 0 {
		s += fmt.Sprintf(", for %s kernel records, %s lost", count(records), count(lost))
	}
	if len(lowered) > 0 {
		s += "; detail was lowered: " + strings.Join(lowered, "; ")
	}
	return s
}
