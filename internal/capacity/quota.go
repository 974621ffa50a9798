package capacity

import (
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sched"
)

// mostQuota is above any machine's CPUs: a quota from there on is no limit.
const mostQuota = 1 << 20

// addQuota fills in what the files of the target's group say of its quota and of the CPU time that
// it used. The counters were read about when the records start and end. So their rate counts, taken
// for as long as the records last.
func addQuota(c *account.CPUs, set *evidence.Set) {
	if set == nil {
		return
	}
	if q, ok := set.Fact("/cgroup/cpu/quota:cpus"); ok && q.Value > 0 && q.Value < mostQuota {
		c.Quota = q.Value
		c.QuotaNS = int64(q.Value * float64(c.WallNS))
		group, _ := set.Fact("/cgroup/cpu/quota-at:path")
		c.QuotaAt = group.Text
	}
	rate := func(stream string) int64 {
		grown, ns, ok := set.Delta(stream)
		if !ok || ns <= 0 {
			return 0
		}
		return int64(grown / float64(ns) * float64(c.WallNS))
	}
	c.UsedNS, c.StealNS = rate("/cgroup/cpu/used:ns"), rate("/host/steal:ns")
}

// allowedCPUs lists the CPUs that the target may use; nil where that was not read.
func allowedCPUs(set *evidence.Set) []int {
	const most = 1 << 13 // as the kernel's NR_CPUS
	if set == nil {
		return nil
	}
	fact, ok := set.Fact("/process/cpus-allowed:list")
	if !ok {
		return nil
	}
	var l []int
	for _, f := range strings.Split(strings.TrimSpace(fact.Text), ",") {
		from, to, isRange := strings.Cut(f, "-")
		lo, err := strconv.Atoi(from)
		hi := lo
		if err == nil && isRange {
			hi, err = strconv.Atoi(to)
		}
		if err != nil || lo < 0 || hi < lo || hi >= most {
			return nil
		}
		for n := lo; n <= hi; n++ {
			l = append(l, n)
		}
	}
	slices.Sort(l)
	return slices.Compact(l)
}

// groupUse adds up what threads of the group with the quota ran. The group's own count may be
// missing: with cgroup v1 CPU time is counted in another hierarchy, where the process may be in
// another group.
type groupUse struct {
	group  string          // "": no quota
	member map[uint32]bool // by thread that is not of the target: whether it is in the group
	ns     int64
	others bool // threads beside the target's are in the group

	// While the switches of others were recorded one by one: what the target ran, and the others of
	// the group by thread.
	until    int64
	targetNS int64
	othersNS map[uint32]int64
}

func newGroupUse(k *sched.Timeline, group string, folded Times) groupUse {
	_, end := k.Span()
	if len(folded) > 0 {
		end = folded[0].Lo
	}
	return groupUse{group: group, member: map[uint32]bool{}, until: end, othersNS: map[uint32]int64{}}
}

// add adds a run of a thread on any CPU.
func (u *groupUse) add(k *sched.Timeline, r *sched.Run, target bool) {
	if u.group == "" || r.TID == 0 || r.TID == sched.NobodyKnown || !target && !u.isMember(k, r) {
		return
	}
	u.ns += r.End - r.Begin
	switch ns := min(r.End, u.until) - r.Begin; {
	case ns <= 0:
	case target:
		u.targetNS += ns
	default:
		u.othersNS[r.TID] += ns
	}
}

// isMember reports whether another program's thread is in the group, or in one below it.
func (u *groupUse) isMember(k *sched.Timeline, r *sched.Run) bool {
	is, ok := u.member[r.TID]
	if !ok {
		t, _ := k.Name(r.TID, r.Begin)
		is = t.Cgroup == u.group || strings.HasPrefix(t.Cgroup, strings.TrimSuffix(u.group, "/")+"/")
		u.member[r.TID] = is
		u.others = u.others || is
	}
	return is
}

// write fills in what the group used. Where its own count is missing, what its threads ran stands
// for it, if they all were recorded: the switches of all tasks, and none of the group's others
// folded.
func (u *groupUse) write(k *sched.Timeline, c *account.CPUs, folded bool) {
	if c.UsedNS == 0 && c.QuotaNS > 0 && k.Header().AllTasks && (!folded || !u.others) {
		c.UsedNS = u.ns
	}
	_, end := k.Span()
	c.GroupOwnNS = u.targetNS
	for tid, ns := range u.othersNS {
		t, _ := k.Name(tid, end)
		c.GroupOthersNS += ns
		c.GroupOthers = account.AddInstead(c.GroupOthers,
			account.Instead{Who: t.Comm, Kind: account.InsteadNeighbour, NS: ns})
	}
	account.SortInstead(c.GroupOthers)
	c.GroupOthers = c.GroupOthers[:min(len(c.GroupOthers), account.MostInstead)]
}
