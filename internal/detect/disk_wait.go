package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "disk-wait",
	Title: "Requests wait for the disk",
	Needs: []string{KernelRecords},
	// A sync of a healthy disk takes some ms; 10 ms a request and a fifth of it are beyond that.
	Floor: Floor{NS: 10e6, Share: 0.20},
	Doc: `What happens
  A read that the page cache does not have, a write that has to wait for room (dirty pages over
  the limit), an fsync: the thread is blocked until the device has answered. A thread that waits
  with a lock held makes all others wait.

Evidence
  Waits of the target's threads for a file's blocks, by their kernel stack and call. Which files,
  by device and inode, or by path where it is known. I/O pressure (PSI) and delay accounting
  beside them.

Not to be taken for
  A page fault that reads a file (page-fault). Reclaim that writes pages (direct-reclaim). A full
  pipe or a slow reader (syscall-stall): no disk is involved. CPU that shows "iowait": that is
  idle time, and no proof.

Remedy
  Take the disk out of the request: write behind a bounded queue, one fsync for many requests
  (group commit), read ahead. Give the log a disk of its own. See who else uses the disk (pidstat
  -d, iotop), and bound it with ionice, io.weight or io.max. More memory where reads miss the
  cache. Dirty throttling: a lower vm.dirty_background_bytes writes earlier and more often.

Verify
  whystall diagnose under the same load: "disk" of slow requests falls.

Sources
  etcd's disk guide (fsync p99 under 10 ms); e2b infra#2787 (balance_dirty_pages);
  Documentation/accounting/psi.rst.`,
	Look: lookDisk,
	Tell: tellDisk,
})

func lookDisk(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	if why := unseen(k, kernel.SightWaitStacks); why != "" && k.Disk.N == 0 {
		p.Blind(why)
		return
	}
	text := "no thread of the process waited for a disk"
	if k.Disk.N > 0 {
		text = fmt.Sprintf("%s for a disk, %s in all, the longest %s",
			times(k.Disk.N, "wait", "waits"), finding.Duration(k.Disk.NS), finding.Duration(k.Disk.Max))
	}
	if joined(r) {
		p.ClaimWhere(leaf(account.LeafDisk))
		p.ClaimLacking(lacks(account.LeafDisk))
		if len(p.claims) == 0 {
			if k.Disk.N > 0 {
				text += ", none in " + p.who()
			}
			p.Clear("%s", text)
		}
		return
	}
	// A thread that only writes a log waits for the disk all day and keeps nobody waiting. Without
	// requests that is a reason to look, and no more.
	if ratio(k.Disk.NS, wall(k)) < 0.5 {
		p.boundWaits(k.Disk.NS)
		p.Clear("%s", text)
		return
	}
	p.claimWait(k.Disk.NS)
	p.Doubt("no request is visible: it is not known whether anybody waited for these threads")
}

func tellDisk(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	at := ""
	if len(k.Disk.Flags) > 0 {
		at = ", mostly of " + k.Disk.Flags[0].Who
	}
	var own int64
	actor := ""
	p.granted(func(a *account.Account, ns int64) {
		if a.Class == account.ClassOwn {
			own += ns
		} else if actor == "" {
			actor = a.Actor
		}
	})
	if len(p.pools) > 0 {
		f.Title = "Threads wait for the disk"
		f.Summary = fmt.Sprintf("threads of the process wait %s for the disk%s", finding.Duration(k.Disk.NS), at)
		p.measured = p.pooled()
	} else {
		f.Summary = fmt.Sprintf("%s wait %s (%s of their time) for the disk%s", p.who(),
			p.per(p.NS()), p.share(p.NS()), at)
		if 2*own < p.NS() && actor != "" {
			f.Summary += "; it is " + actor + " that waits, and they wait for it"
		}
		p.measure()
	}
	spansLine(p, "waits for the disk", &k.Disk)
	if ss, _ := callSites(p); len(ss) > 0 {
		p.Proof(p.column(), "calls: %s", sites(ss, p.NS(), 4))
	}
	for _, s := range []struct{ stream, what string }{{"/cgroup/psi/io/some:ns", "of the cgroup"},
		{"/host/psi/io/some:ns", "of the host"}} {
		if d, ns, ok := p.Set.Delta(s.stream); ok && ns > 0 {
			p.Proof("PSI", "some task %s waited for I/O %s of the time", s.what, percent(d/float64(ns)))
		}
	}
	if d, _, ok := p.Set.Delta("/process/delay/blkio:ns"); ok && d > 0 {
		p.Proof("delay accounting", "its threads waited %s for block devices", finding.Duration(int64(d)))
	}
	if dirty, ok := latest(p, "/host/memory/dirty:bytes"); ok && dirty > 256<<20 {
		p.Proof("/proc/meminfo", "dirty page cache %s", finding.Bytes(int64(dirty)))
	}
	f.Remedy = append(f.Remedy,
		"take the disk out of the request: write behind a bounded queue, one fsync for many requests, read ahead; what is not yet written is lost when the host dies",
		"see who else uses it: iotop -o, pidstat -d 1; give the file a disk of its own, or bound the other (ionice -c3, io.max of its cgroup)")
	f.Verify = p.verify("'disk' of " + p.who() + " falls")
}
