package database

import (
	"fmt"

	"github.com/whystall/whystall/internal/finding"
)

// slowestRequest says how long the slowest request of a phase of a commit took, so that it is told
// from waits between the requests.
func slowestRequest(r *result, phase string, took, rpc float64, store, detail string) {
	line := fmt.Sprintf("the slowest request of %s took %s at %s", phase, dur(rpc), store)
	if rpc < took/2 {
		line += ": most of the time is between requests"
	}
	r.figure(line)
	if rpc >= took/2 {
		raftWrite(r, detail, rpc)
	}
}

// raftWrite says what a slow write waited for in TiKV's raft store, where the detail of its request
// has that: "write_detail: {store_batch_wait: 60µs, persist_log: {total: 543µs, sync_log: 94µs},
// commit_log: 1.2ms, apply_batch_wait: 20µs, apply: {total: 300µs, write_wal: 20µs}}".
func raftWrite(r *result, text string, rpc float64) {
	detail := group(text, "write_detail:")
	if detail == "" || rpc < 0.05 {
		return
	}
	persist, apply := group(detail, "persist_log:"), group(detail, "apply:")
	followers := 0.0
	if all, own := value(detail, "commit_log"), value(persist, "total"); all >= 0 && own >= 0 {
		followers = all - own
	}
	const (
		disk = iota
		busy
		others
		elsewhere
	)
	for _, part := range []struct {
		what string
		took float64
		kind int
	}{
		{"the fsync of TiKV's raft log (sync_log)", value(persist, "sync_log"), disk},
		{"the write of TiKV's own log (write_wal)", value(apply, "write_wal"), disk},
		{"the queue of TiKV's raft store (store_batch_wait)", value(detail, "store_batch_wait"), busy},
		{"the queue of what applies the raft log (apply_batch_wait)", value(detail, "apply_batch_wait"), busy},
		{"other writers of the raft log (write_leader_wait)", value(persist, "write_leader_wait"), others},
		{"other writers of TiKV's data (mutex_lock)", value(apply, "mutex_lock"), others},
		{"other writers of TiKV's data (write_leader_wait)", value(apply, "write_leader_wait"), others},
		{"the agreement with the other members of the region (commit_log without persist_log)", followers, elsewhere},
	} {
		if part.took < 0.5*rpc {
			continue
		}
		line := fmt.Sprintf("in it %s took %s of %s", part.what, dur(part.took), dur(rpc))
		r.figure(line)
		switch part.kind {
		case disk:
			r.found("disk-wait", finding.Possible, line, ratio(part.took, rpc))
			r.next("iostat -x 1 10", "on that TiKV's host: whether the disk of its raft log is slow, or full of others' writes")
		case busy:
			r.candidate("cpu-contention", line)
			r.candidate("disk-wait", line)
		case elsewhere:
			r.outside("the other members of the region: their disks, or the network to them", line, ratio(part.took, rpc))
		}
		return
	}
}
