package detect

// Chapter is a page of the manual that concerns every cause.
type Chapter struct {
	Name, Title string
	Doc         string // plain text, lines of at most 100 columns
}

// Chapters returns the manual's chapters, in the order in which they are listed. Their names are
// those of no cause.
func Chapters() []Chapter { return []Chapter{howSure} }

// howSure is the rule that grade follows (grade.go), and the levels of [finding.Confidence].
var howSure = Chapter{
	Name:  "how-sure",
	Title: "How sure a finding is: proven, supported, possible",
	Doc: `What the levels mean
  proven: who was awaited and what held it are both measured, on one clock, for at least 80 % of
  the time that the finding claims. Nothing that is missing could change it.
  supported: the time was lost, and one of the two is measured; or two counters that do not depend
  on each other agree. The other half is inferred, or the records have holes.
  possible: the evidence is compatible with the cause, no more. Something else that was not
  recorded looks the same.

How a level is given
  1. A finding with a doubt (see below) is possible.
  2. Else its measured time is compared with what it claims. Below 80 %, it is supported.
  3. Else it is proven, unless something caps it: then it is supported. The evidence names the
     doubt, and where 80 % are measured the cap: "no more than supported: ...".

What counts as measured
  Time of slow requests whose every hop is an event of the kernel or of the runtime: who ended the
  wait, and what that goroutine's own thread did meanwhile. The thread was on a CPU, throttled,
  queued behind somebody, or blocked in a call that its record names. Not measured are
  - time behind a lock, or that reached the request through one: a trace has no lock's address, so
    that the holder is inferred from who unlocked;
  - what is known by coverage: no thread of the process was on a CPU, and one was throttled or
    queued. That is not the thread that the request waited for;
  - throttling that is known of the cgroup and not of the thread: before Linux 6.18;
  - what is seen in samples only.
  Where no request is visible, a cause claims CPU time or memory instead, and counts as measured
  what its counters say; most such findings are capped, since who waited is not known.

What caps a finding at supported
  - There are no kernel records. From an execution trace alone nothing is proven: what held a
    goroutine that was runnable or running is not in it.
  - Kernel records are missing for more than 5 % of the time in which threads wanted a CPU.
  - More than 0.05 % of the goroutines' events fall on threads that the records have off the CPU:
    the two clocks, or the records, do not fit.
  - The trace is of Go before 1.22: its clock and its threads were found by where its events fall.
  - What the finding rests on was recorded only a part of the time, since more would cost too much.
  - The target was stopped, by a signal or a debugger, for less than 5 % of the recording.
  - Most of it is CPU time by samples, and the lower end of their 95 % interval is below 80 % of
    what is claimed.
  - The cause's own reasons: switches of other processes were not recorded; a name is inferred; no
    request is visible.

What makes it possible and no more
  - The whole process stood still for most of that time, with fewer goroutines running than there
    were Ps, and there are no kernel records of it: a quota and an overloaded host look like that.
  - The target was stopped for 5 % of the recording or more.
  - The clock of a trace before Go 1.22 was not found, and less than 80 % of all the Ps' time is
    claimed: only sums are compared.
  - The cause's own reasons: one site stands for several locks; no holder was seen for most of the
    waiting; the CPU was idle while the thread was queued there; requests hardly lost time to it.

What a level is not
  It is no measure of size. How much a finding explains is measured by itself, and a small cause
  can be proven. A setting alone is a risk and no cause: only lost time, CPU or memory makes one.
  A cause that was not found is ruled out only if what it can cost is bounded, below what would be a
  finding, for slow requests, for usual ones and for the process, wherever it is looked for; else it
  is listed as not checked, with what is missing.

Pauses
  Each long stop-the-world has a grade of its own, by the same three words. It is proven if at least
  80 % of it has a named reason, the awaited thread is known by the wake-up that it made, no hop is
  inferred, and less than 5 % is unknown. Beside it stands a control: how many stretches of the same
  length look the same by accident. Under a quota a third of them do, so that overlap alone proves
  nothing.`,
}
