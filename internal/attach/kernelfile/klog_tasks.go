package kernelfile

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/sched"
)

// blockedState: a thread in D cannot be woken by a signal; one in I or S waits for work.
func blockedState(t *task) bool { return t.hung || t.state == "" || t.state == "D" }

// distinct are the tasks that were reported, each once: the kernel reports one that does not go on
// again and again.
func (r *report) distinct() (out []*task) {
	at := map[string]*task{}
	for _, t := range r.tasks {
		key := t.name + " " + t.pid
		first := at[key]
		if first == nil || !isDigits(t.pid) || !t.hung || !first.hung {
			one := *t
			at[key] = &one
			out = append(out, &one)
			continue
		}
		first.times, first.asleep = first.times+t.times, max(first.asleep, t.asleep)
		if len(first.sure)+len(first.maybe) == 0 {
			first.sure, first.maybe = t.sure, t.maybe
		}
	}
	return out
}

func (r *report) readTasks(out *attach.Reading) {
	var all []wait
	hung, stacks, blocked, longest, reports := 0, 0, 0, 0.0, 0
	for _, t := range r.distinct() {
		longest, reports = max(longest, t.asleep), reports+t.times
		stack := t.sure
		if len(stack) == 0 {
			stack = t.maybe
		}
		if t.hung {
			hung++
		}
		if !blockedState(t) {
			continue
		}
		blocked++
		if len(stack) > 0 {
			stacks++
			w := waitOf(stack)
			if len(t.sure) == 0 {
				w.at = "" // any of them may be left over
			}
			all = append(all, w)
		}
	}
	if blocked == 0 {
		return
	}
	counts := countWaits(all)
	signs, outside := waitSigns(counts, len(all), hung > 0)
	if hung > 0 {
		r.blame(&signs)
	}
	out.Signs = append(out.Signs, signs...)
	var figures []string
	if m := r.first[hungTask]; m != nil {
		first := r.tasks[slices.IndexFunc(r.tasks, func(t *task) bool { return t.hung })]
		text := fmt.Sprintf("%s without a wake-up for %s s or more, the first %s (pid %s)",
			plural(hung, "task", "tasks"), m[3], printed(first.name), printed(first.pid))
		if reports > hung {
			text += fmt.Sprintf("; reported %s in all", plural(reports, "time", "times"))
			if longest > float(m[3]) {
				text += fmt.Sprintf(", the longest for %s s or more", number(longest))
			}
		}
		figures = append(figures, text)
	}
	if stacks > 0 && stacks < blocked {
		figures = append(figures, fmt.Sprintf("the paste has the stacks of %d of the %d tasks", stacks, blocked))
	}
	for _, c := range counts {
		figures = append(figures, c.String())
	}
	for _, o := range r.owners {
		figures = append(figures, o.String())
	}
	means := fmt.Sprintf("%s in the kernel and did not go on",
		plural(max(hung, blocked), "task waited", "tasks waited"))
	if hung == 0 { // a list that somebody asked for: one moment
		means = fmt.Sprintf("%s in the kernel at that moment, where no signal reaches (D)",
			plural(blocked, "task waited", "tasks waited"))
	}
	if stacks > 0 && stacks < blocked {
		means += fmt.Sprintf("; %d of their stacks %s", stacks,
			map[bool]string{true: "says for what", false: "say for what"}[stacks == 1])
	}
	switch {
	case len(outside) > 0:
		means += fmt.Sprintf(": for %s, outside what whystall can look into.", outside[0])
	case len(counts) > 0 && counts[0].words == unknownWait && len(counts[0].in) > 0:
		means += fmt.Sprintf("; for what is not known here, in %s.", printed(counts[0].in[0]))
	case len(counts) > 0 && counts[0].words == unknownWait:
		means += "; for what, no function on the stacks in the paste says."
	case len(counts) > 0 && len(counts[0].in) == 0:
		means += fmt.Sprintf(": most likely for %s; each function on the stacks is marked as one that may be left over.", counts[0].words)
	case len(counts) > 0 && len(counts[0].in) > 1:
		means += fmt.Sprintf(": for %s.", counts[0].words)
	case len(counts) > 0:
		means += fmt.Sprintf(": for %s, in %s.", counts[0].words, printed(counts[0].in[0]))
	default:
		means += "; no stack in this part says for what."
	}
	say(out, attach.CannotTell, means, figures...)
	out.Not = "who holds a lock that is waited for, unless an owner is named: the holder's own stack decides"
	if onDisk := slices.ContainsFunc(counts,
		func(c waitCount) bool { return c.wait.block == sched.BlockDisk }); onDisk {
		out.Next = append(out.Next, attach.Next{Command: "cat /proc/pressure/io; iostat -x 1 5",
			Why: "whether a disk is the one that does not answer"})
	} else {
		out.Next = append(out.Next,
			attach.Next{Command: "echo w > /proc/sysrq-trigger; dmesg | tail -200",
				Why: "the stacks of all blocked tasks: the holder is among them, or waits for none"})
	}
}

// blame follows a named owner of a lock to what the owner itself waits for.
func (r *report) blame(signs *[]attach.Sign) {
	for _, t := range r.tasks {
		for _, o := range r.owners {
			if o.pid != t.pid || len(t.sure) == 0 {
				continue
			}
			cause := causeOf(waitOf(t.sure).block)
			for i := range *signs {
				if s := &(*signs)[i]; cause != "" && s.Cause != cause &&
					(s.Cause == "kernel-lock" || s.Cause == "mmap-lock") {
					s.BecauseOf = cause
				}
			}
		}
	}
}
