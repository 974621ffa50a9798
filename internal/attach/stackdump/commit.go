package stackdump

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
)

var (
	// commitMarks are functions below which a database makes changes last.
	commitMarks = rule{names: []string{"ha_commit_trans", "trans_commit*", "ha_prepare_low",
		"*ordered_commit", "innobase_commit*", "CommitTransaction*", "RecordTransactionCommit",
		"rocksdb::*::WriteImpl", "PessimisticTransaction::Commit*"}}
	// groupMarks are those in which one thread writes for all that want to commit, and they wait.
	groupMarks = rule{names: []string{"JoinBatchGroup", "enroll_for", "wait_for_prior_commit*",
		"*group_commit*", "queue_for_group_commit", "WaitForMemTableWriters", "WaitForLeader*"}}
)

// inCommit is how many threads wait within a commit for the one that writes for all.
func (d *dump) inCommit() int {
	return d.count((*thread).committing)
}

func (t *thread) committing() bool {
	g := groupMarks.find(t.frames, anything)
	return t.doing == signal && g >= 0 && commitMarks.find(t.frames[g:], anything) >= 0
}

// committing says that threads wait for a commit's leader.
func (d *dump) committing(r *attach.Reading) {
	where := ""
	for _, t := range d.threads {
		if where == "" && t.committing() {
			where = short(t.frames[groupMarks.find(t.frames, anything)].fn)
		}
	}
	line := fmt.Sprintf("%s within a commit for the leader of their group, in %s", waits(d.inCommit()), where)
	r.State = attach.CannotTell
	r.Figures = append(r.Figures, line)
	r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside,
		Where: "the database's own commits", Proof: []string{line}, Share: share(d.inCommit(), d.total())})
	r.Means = "They wait for a commit: one thread, the leader of the group, writes for all of them. What holds the leader, its own stack says, or the engine's log where it stalls writes."
	r.Not = "They wait for no lock of theirs and for no work: that they stand in a condition's wait is how they wait for the leader."
	r.Next = append(r.Next, attach.Next{Command: "the engine's own view: SHOW ENGINE ROCKSDB STATUS, SHOW ENGINE INNODB STATUS", Why: "says whether writes are stalled, and by what"})
}
