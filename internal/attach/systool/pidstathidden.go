package systool

import "slices"

// hides is how far one sample of a task's CPU time lies above its median, in percent of a CPU, from
// which on the median hides it, where it is twice the median as well.
const hides = 30

// hidden names the task whose median hides most: what it used at most, and in the last sample.
func (run *pidstatRun) hidden(v *verdict, users []*task) {
	if run.samples < 2 || len(users) == 0 {
		return
	}
	above := func(t *task) float64 { return t.useMost - t.use }
	one := slices.MaxFunc(users, func(a, b *task) int { return int(above(a) - above(b)) })
	if above(one) < hides || one.useMost < 2*one.use {
		return
	}
	end := ""
	if one.useLast > 0 {
		end = " and " + plain(one.useLast) + " % in the last"
	}
	v.figure("%s: %s %% CPU is the median of %d samples; it used %s %% at most%s", one, plain(one.use),
		run.samples, plain(one.useMost), end)
	if one.useLast-one.use >= hides && one.useLast >= 2*one.use {
		v.unsure = true
		v.means("%s uses more CPU at the end than in most samples: what came then is not in it", one)
	}
}
