package kernelfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// deviceName is how messages name a disk, or the port it hangs on.
var deviceName = regexp.MustCompile(`\b(nvme\d+(?:n\d+)?|ata\d+(?:\.\d+)?|sd[a-z]{1,2}|xvd[a-z]|vd[a-z]|dm-\d+|md\d+|mmc(?:blk)?\d+|nbd\d+|hd[a-z])(?:\d*\b|:)`)

// device notes which disk a message names.
func (r *report) device(text string) {
	m := deviceName.FindStringSubmatch(text)
	if m == nil || len(r.devices) >= 64 {
		return
	}
	name, _, namespace := strings.Cut(m[1], "n1")
	if !namespace || !strings.HasPrefix(m[1], "nvme") {
		name = m[1]
	}
	port, _, _ := strings.Cut(name, ".")
	for i, d := range r.devices { // ata1 and ata1.00 are one
		if d == name || d == port {
			r.devices[i] = name
			return
		}
		if strings.HasPrefix(d, name+".") {
			return
		}
	}
	r.devices = append(r.devices, name)
}

func (r *report) readDisks(out *attach.Reading) {
	timeouts, errors, gone, failed := r.counts[diskTimeout], r.counts[diskError], r.counts[diskGone], r.counts[diskFailed]
	polled, resets, frozen := r.counts[diskPolled], r.counts[portReset], r.counts[portFrozen]
	if timeouts+errors+gone+failed+polled+resets+frozen == 0 {
		return
	}
	var said []string
	if failed > 0 {
		said = append(said, plural(failed, "command failed", "commands failed")+" ("+r.tallied(diskFailed, "")+")")
	}
	if timeouts > 0 {
		said = append(said, plural(timeouts, "command timed out", "commands timed out"))
	}
	if polled > 0 {
		said = append(said, plural(polled, "command was done and its interrupt lost", "commands were done and their interrupts lost")+" (completion polled)")
	}
	if frozen > 0 && timeouts == 0 {
		said = append(said, "a port was frozen "+plural(frozen, "time", "times"))
	}
	if resets > 0 {
		said = append(said, "a link was reset or slow to respond "+plural(resets, "time", "times"))
	}
	if errors > 0 {
		said = append(said, plural(errors, "error of a disk or file system", "errors of disks or file systems"))
	}
	if gone > 0 {
		said = append(said, plural(gone, "message", "messages")+" that a disk was given up")
	}
	figure := strings.Join(said, ", ")
	if len(r.devices) > 0 {
		figure += ": " + listed(r.devices, 6)
	}
	grade, sure := attach.Candidate, finding.Confidence("")
	means := "A disk or a file system reports errors: commands that are tried again wait for seconds."
	switch {
	case timeouts+resets+frozen > 0:
		grade, sure = attach.Found, finding.Possible
		means = "A disk did not answer in time, and what waited for it stood still meanwhile."
	case polled > 0:
		grade, sure = attach.Found, finding.Possible
		means = "A disk had answered, but its interrupt did not arrive: the kernel saw the answer when its timeout ran out, and what waited stood still until then. The interrupt's way is at fault, and not the disk's speed."
		out.Next = append(out.Next, attach.Next{Command: "grep nvme /proc/interrupts; sleep 10; grep nvme /proc/interrupts", Why: "which queue's interrupt does not arrive"})
	}
	if gone > 0 {
		means += " A disk was given up: what is on it fails at once from then on."
	}
	out.Signs = slices.DeleteFunc(out.Signs, func(s attach.Sign) bool { return s.Cause == "disk-wait" && s.Grade == attach.Candidate })
	if !slices.ContainsFunc(out.Signs, func(s attach.Sign) bool { return s.Cause == "disk-wait" }) {
		out.Signs = append(out.Signs, attach.Sign{Cause: "disk-wait", Grade: grade, Sure: sure, Proof: []string{figure}})
	}
	say(out, attach.CannotTell, means, figure)
}
