package kernelfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// deviceName is how messages name a disk, or the port it hangs on.
var deviceName = pattern.New(`\b(nvme\d+(?:n\d+)?|ata\d+(?:\.\d+)?|sd[a-z]{1,2}|xvd[a-z]|vd[a-z]|dm-\d+|md\d+|mmc(?:blk)?\d+|nbd\d+|hd[a-z])(?:\d*\b|:)`)

// scsiAddress is how the SCSI layer names a disk before it has one of these names.
var scsiAddress = pattern.New(`\b(?:sd|scsi) (\d+:\d+:\d+:\d+):`)

// deviceOf is the disk that a message names; "": none.
func deviceOf(text string) string {
	m := deviceName.FindStringSubmatch(text)
	if m == nil {
		m = scsiAddress.FindStringSubmatch(text)
	}
	if m == nil {
		return ""
	}
	name, _, namespace := strings.Cut(m[1], "n1")
	if !namespace || !strings.HasPrefix(m[1], "nvme") {
		name = m[1]
	}
	return name
}

// device notes which disk a message names.
func (r *report) device(name string) {
	if name == "" || len(r.devices) >= 64 {
		return
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

// diskEvent notes what a message says of a disk.
func (r *report) diskEvent(e *event, text string, at float64, timed bool) {
	name := deviceOf(text)
	r.device(name)
	r.failures.media(text, name)
	switch e.name {
	case diskError, diskFailed, portFrozen, diskTimeout:
		joined := r.failures.joins(e.name, text, at, timed)
		switch {
		case e.name == diskTimeout:
			r.failures.timeout(text, name, at)
		case joined && e.name == diskError:
			r.counts[diskError]--
		case joined && e.name == diskFailed && r.failures.head == diskError:
			r.counts[diskError]-- // the exception that it is told after
			r.failures.head = diskFailed
		}
	case diskGone:
		r.count(diskGone, name)
	}
	if !timed {
		return
	}
	switch e.name {
	case diskTimeout, diskAborted, diskReset, usbReset, diskPolled, portReset:
		r.disks.add(at)
	case portFrozen:
		r.freezes.add(at)
	}
}

// diskWords says what was counted of disks, the gravest first.
func (r *report) diskWords() (said []string) {
	n := r.counts
	add := func(count int, one, several, rest string) {
		if count > 0 {
			said = append(said, plural(count, one, several)+rest)
		}
	}
	if n[diskFailed] > 0 {
		add(n[diskFailed], "command failed", "commands failed", " ("+r.tallied(diskFailed, "")+")")
	}
	if tried := r.failures.commands(); tried < n[diskTimeout] {
		said = append(said, fmt.Sprintf("%d time-outs of %s (by tag)", n[diskTimeout],
			plural(tried, "command", "commands")))
	} else {
		add(n[diskTimeout], "command timed out", "commands timed out", "")
	}
	add(n[diskAborted], "command was aborted by the kernel", "commands were aborted by the kernel", "")
	add(n[diskReset], "reset of a disk or its controller", "resets of a disk or its controller", "")
	add(n[diskPolled], "command was done and its interrupt lost",
		"commands were done and their interrupts lost", " (completion polled)")
	add(n[diskLink], "transmission error on the way", "transmission errors on the way", "")
	if n[portReset] > 0 {
		said = append(said, "a link was reset or slow to respond "+plural(n[portReset], "time", "times"))
	}
	if len(said) > 0 {
		said[len(said)-1] += r.disks.over()
	}
	if n[portFrozen] > n[diskTimeout] {
		said = append(said, "a port was frozen "+plural(n[portFrozen], "time", "times")+r.freezes.over())
	}
	if len(r.failures.medium) > 0 {
		said = append(said, "sectors that cannot be read or written (medium error)")
	}
	add(n[diskError], "error of a disk or file system", "errors of disks or file systems", "")
	add(n[fsDown], "file system or pool was shut down", "file systems or pools were shut down", "")
	add(len(r.each[diskGone]), "disk was given up", "disks were given up", "")
	return said
}

func (r *report) readDisks(out *attach.Reading) {
	said := r.diskWords()
	if len(said) == 0 {
		return
	}
	figure := strings.Join(said, ", ")
	if len(r.devices) > 0 {
		figure += ": " + listed(r.devices, 6)
	}
	n := r.counts
	grade, sure := attach.Found, finding.Possible
	means := ""
	switch {
	case n[diskTimeout]+n[diskAborted]+n[diskReset] > 0:
		means = "A disk did not answer in time, and what waited for it stood still meanwhile."
		if n[diskAborted]+n[diskReset] > 0 {
			means += " The kernel aborted its commands or reset it; that this succeeds does not mean that the disk is well."
		}
	case n[diskPolled] > 0:
		means = "A disk had answered, but its interrupt did not arrive: the kernel saw the answer when its timeout ran out (30 s, unless nvme_core.io_timeout is set), and what waited stood still until then. The interrupt's way is at fault, and not the disk's speed."
		out.Next = append(out.Next,
			attach.Next{Command: "grep nvme /proc/interrupts; sleep 10; grep nvme /proc/interrupts",
				Why: "which queue's interrupt does not arrive"})
	case n[diskLink] > 0:
		grade, sure = attach.Candidate, ""
		means = "What went to or from a disk was broken on its way, and was sent again after the link was reset: a cable, a connector, a backplane or power, and no bad medium. Commands stand still meanwhile."
		out.Next = append(out.Next, attach.Next{Command: "smartctl -A /dev/DISK | grep -i crc",
			Why: "whether UDMA_CRC_Error_Count grows: then it is the cable"})
	case n[portReset] > 0 && n[portFrozen] == 0:
		grade, sure = attach.Candidate, ""
		means = "A disk's link was reset or slow to respond: what waited for it stood still meanwhile; at boot and after a sleep that is usual."
	case n[portFrozen] > 0:
		means = "A disk's port was frozen, reset or slow to respond, and what waited for it stood still meanwhile."
	case len(r.failures.medium) > 0:
		grade, sure = attach.Candidate, ""
		means = "A disk has sectors that it cannot read or write: each command on them is tried for seconds and then fails. It is the medium, and not the way to it."
		out.Next = append(out.Next,
			attach.Next{Command: "smartctl -A /dev/DISK | grep -E 'Pending|Realloc|Uncorrect'",
				Why: "how many sectors are bad"})
	case n[diskError]+n[diskGone]+r.failures.joined > 0:
		grade, sure = attach.Candidate, ""
		means = "A disk or a file system reports errors: commands that are tried again wait for seconds."
	default:
		grade = ""
	}
	if n[fsDown] > 0 {
		means += " A file system or pool was shut down or made read-only: what writes to it fails, or, on a pool that was suspended, stands still until somebody clears it."
	}
	if n[diskGone] > 0 {
		means += " A disk was given up: what is on it fails at once from then on."
	}
	if grade != "" {
		out.Signs = slices.DeleteFunc(out.Signs,
			func(s attach.Sign) bool { return s.Cause == "disk-wait" && s.Grade == attach.Candidate })
	}
	if grade != "" && !slices.ContainsFunc(out.Signs, func(s attach.Sign) bool { return s.Cause == "disk-wait" }) {
		out.Signs = append(out.Signs, attach.Sign{Cause: "disk-wait", Grade: grade, Sure: sure,
			Proof: []string{figure}})
	}
	say(out, attach.CannotTell, strings.TrimSpace(means), figure)
}

// readFarDisks reads what iSCSI, Fibre Channel, NVMe over fabrics, DRBD and Ceph say of their other
// ends.
func (r *report) readFarDisks(out *attach.Reading) {
	n := r.counts[farDisk]
	if n == 0 {
		return
	}
	figure := countOf(farDisk, n)
	out.Signs = append(out.Signs,
		attach.Sign{Grade: attach.Outside, Where: "the storage behind a network, or the way to it",
			Proof: []string{figure}})
	say(out, attach.CannotTell,
		"A disk behind a network lost its other end: what reads or writes it stands still until it is back.", figure)
}
