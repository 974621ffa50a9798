package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// maxTarget is how wide the name of what was looked at may be: a URL or a path may be anything.
const maxTarget = 48

// title says what was looked at and when, in one line.
func (r *Report) title() string {
	t := &r.Target
	var parts []string
	name := t.Name
	if name == "" {
		name = t.URL
	}
	for i := range r.Inputs {
		if name == "" && r.Inputs[i].Error == "" {
			name = middle(path.Base(r.Inputs[i].Name), 40)
		}
	}
	if t.PID != 0 {
		name = strings.TrimSpace(fmt.Sprintf("%s pid %d", name, t.PID))
	}
	if t.Host != "" {
		name += " on " + t.Host
	}
	if name != "" {
		parts = append(parts, middle(Printable(name), maxTarget))
	}
	switch {
	case t.GoVersion != "":
		parts = append(parts, t.GoVersion)
	case r.Native && t.Runtime != "":
		parts = append(parts, t.Runtime+", as plain threads")
	case r.Native:
		parts = append(parts, "native")
	case r.Recording.TraceFormat != "":
		parts = append(parts, "trace format "+r.Recording.TraceFormat)
	}
	if t.GOMAXPROCS > 0 {
		parts = append(parts, fmt.Sprintf("GOMAXPROCS %d", t.GOMAXPROCS))
	}
	if d := r.Recording.EndNS - r.Recording.BeginNS; d > 0 {
		when := finding.Duration(d)
		if u := r.Recording.BeginUTC; u != nil {
			when += " from " + clock(*u, len("2006-01-02T15:04:05")) + " UTC"
		}
		parts = append(parts, when)
	}
	return strings.Join(parts, ", ")
}

// clock is the first n characters of an RFC 3339 time, readable.
func clock(utc string, n int) string {
	if len(utc) < n {
		return utc
	}
	return strings.Replace(utc[:n], "T", " ", 1)
}

// roots counts the findings that no other finding explains.
func (r *Report) roots() (n int) {
	for i := range r.Findings {
		if r.Findings[i].BecauseOf == "" {
			n++
		}
	}
	return n
}

// leastHalt is the least time for which a process must have been stopped for it to be said.
const leastHalt = 20e6

// halted says that the process was stopped as a whole, "" if it was not. It is printed first, since
// nothing else need be wrong. The kernel's records have each stop. Glances at the process have the
// reason, and stops from before the records.
func (r *Report) halted() (title, rest string) {
	by, ns := "a signal or a tracer", int64(0)
	if h := r.Target.Halted; h != nil {
		by, ns = Printable(h.By), h.NS
	}
	if r.Kernel != nil && r.Kernel.HaltedNS >= leastHalt {
		ns = max(ns, r.Kernel.HaltedNS)
	}
	if ns <= 0 {
		return "", ""
	}
	all := r.Recording.EndNS - r.Recording.BeginNS
	title = "STOPPED for " + finding.Duration(ns)
	if all > 0 {
		title = "STOPPED for " + finding.Duration(min(ns, all)) + " of " + finding.Duration(all)
	}
	return title, "The whole process was stopped by " + by +
		". None of its threads could run meanwhile, and whoever waited for the process waited for that."
}

const noRequest = "NO REQUEST WAS SEEN"

// unrequested says why there are no requests, "" if there are some. It is printed first: what
// follows is of the process then, and of no request.
func (r *Report) unrequested() string {
	q := &r.Requests
	if q.Count > 0 {
		return ""
	}
	why := q.NoRequestsCause
	if why == "" {
		why = fmt.Sprintf("no request started and ended within the recording; %d were already running at its start or unfinished at its end", q.Open)
	}
	why = sentence(why)
	if e := r.untraced(); e != nil {
		why = "The trace was left out to spare the service, as " + easingWords(*e) +
			". To see requests, record while it is less busy."
	} else if r.Kernel != nil && r.Kernel.ran() != "" {
		why += " To see them takes net/http/pprof in the service (--pprof URL)."
	}
	if r.Kernel != nil || len(r.Findings) > 0 {
		why += " What follows is of the process as a whole."
	}
	return why
}

// untraced is why the recorder left the trace out, nil where it did not.
func (r *Report) untraced() *evidence.Easing {
	i := slices.IndexFunc(r.Cost.Eased, func(e evidence.Easing) bool {
		return e.Part == evidence.TracePart && e.Did == evidence.LeftOut
	})
	if i < 0 {
		return nil
	}
	return &r.Cost.Eased[i]
}

const nothingFound = "NOTHING FOUND"

// Looked reports whether enough was looked at for "nothing found" to mean something. What a trace
// says of the process alone, when none of its requests was slow, does not.
func (r *Report) Looked() bool {
	unasked := r.Recording.TraceFormat != "" && r.Requests.Slow == 0 && r.Kernel == nil
	return len(r.RuledOut) > 0 && !unasked
}

// nothing says what "nothing found" means here: what was checked, and what could not be.
func (r *Report) nothing() (title, rest string) {
	looked := len(r.RuledOut)
	if !r.Looked() {
		why := "no cause could be checked"
		switch {
		case r.Requests.Count == 0: // said already
			why = ""
		case r.Requests.NoRequestsCause != "":
			why = r.Requests.NoRequestsCause
		case r.Requests.Count > 0 && r.Requests.Slow == 0:
			why = "no request was slow (" + r.Requests.SlowSelect + "), the longest took " +
				finding.Duration(r.Requests.Max) + ", so there is nothing to explain"
		}
		if d, all := r.damaged(), r.Recording.EndNS-r.Recording.BeginNS; 2*d >= all && d > 0 {
			why = strings.TrimSpace(sentence(why) + " " + finding.Duration(min(d, all)) +
				" of the trace's " + finding.Duration(all) +
				" are damaged or cut off: names, stacks and states are missing there.")
		}
		return "COULD NOT LOOK", strings.TrimSpace(sentence(why) + " What is missing is listed below.")
	}
	rest = fmt.Sprintf("%s checked and ruled out.", plural(int64(looked), "cause was", "causes were"))
	var names, inPart []string
	for _, n := range r.NotChecked {
		if slices.ContainsFunc(r.RuledOut, func(o finding.RuledOut) bool { return o.Cause == n.Cause }) {
			inPart = append(inPart, n.Cause)
		} else {
			names = append(names, n.Cause)
		}
	}
	if len(names) > 0 {
		rest += " Not checked (see below): " + strings.Join(names, ", ") + "."
	}
	if len(inPart) > 0 {
		rest += " Checked only in part: " + strings.Join(inPart, ", ") + "."
	}
	return nothingFound, rest
}

// besides orders sentences: what nothing says, and what is known of time without a cause. Where
// everything was checked, the time comes first and the names of what was not checked last.
func (r *Report) besides(title, rest string) []string {
	if title == nothingFound {
		return append(r.without(), rest)
	}
	return append([]string{rest}, r.without()...)
}

// without is what is said of time that no finding explains.
func (r *Report) without() (l []string) {
	for _, s := range []string{r.computes(), r.beside(Printable), r.closest()} {
		if s != "" {
			l = append(l, s)
		}
	}
	return l
}

// beside says in a sentence which large part of the time has no cause, "" if none is large.
func (r *Report) beside(name func(string) string) string {
	w := r.Rest
	if w == nil {
		return r.unseenRequests()
	}
	usual := "usual requests: none"
	if w.UsualNS > 0 {
		usual = "usual requests: " + finding.Duration(w.UsualNS)
	}
	title := "No cause explains another %s of the slow requests' time"
	if len(r.Findings) == 0 {
		title = "The largest part of the slow requests' time, %s"
	}
	each := finding.Duration(w.Account.NS / int64(max(1, r.Ledger.Slow.Requests)))
	text := fmt.Sprintf(title+": %s (%s each; %s).", percent(w.Account.Share), describe(&w.Account, name), each, usual)
	if w.Account.Leaf == account.LeafUnread {
		text += " The thread that reads these sockets was at other requests, none of them long: more processes would share them."
	}
	return text
}

// closest says which cause comes nearest, where a large part of the slow requests' time may be its
// and none is found: it may be too little to be worth a finding. "" if there is none.
func (r *Report) closest() string {
	if len(r.Findings) > 0 {
		return ""
	}
	var nearest *finding.RuledOut
	var most int64
	for i := range r.RuledOut {
		for _, b := range r.RuledOut[i].Bounds {
			if b.Scope == finding.Slow && b.Of == finding.OfRequest && b.Share >= restShare && b.NS > most {
				nearest, most = &r.RuledOut[i], b.NS
			}
		}
	}
	if nearest == nil {
		return ""
	}
	return fmt.Sprintf("Of what was ruled out %s comes nearest: %s", Printable(nearest.Cause),
		sentence(Printable(nearest.Why)))
}

// unseenRequests says what there is instead of requests for a Go program without a trace: how busy
// it was, and with what.
func (r *Report) unseenRequests() string {
	if r.Kernel == nil {
		return ""
	}
	ran := r.Kernel.ran()
	if ran == "" {
		return ""
	}
	s := "Its threads ran "
	if c := r.Ledger.CPUs; c != nil && len(c.Accounts) > 0 && c.TotalNS > 0 {
		s = fmt.Sprintf("It used %s of the %s that it may use: ",
			percent(share(c.Accounts[0].NS, c.TotalNS)), plural(int64(c.Allowed), "CPU", "CPUs"))
	}
	return s + ran + "."
}

// amount says how much a finding explains.
func (r *Report) amount(f *finding.Finding) string {
	switch e := f.Explains; {
	case e.NS > 0 && f.Scope == finding.Usual && r.Ledger.Median.Requests > 0:
		return fmt.Sprintf("takes %s of every request's time (%s of a usual one)", percent(f.Share),
			finding.Duration(e.NS/int64(r.Ledger.Median.Requests)))
	case e.NS > 0 && r.Ledger.Slow.Requests > 0:
		return fmt.Sprintf("explains %s of the slow requests' time (%s each)", percent(f.Share),
			finding.Duration(e.NS/int64(r.Ledger.Slow.Requests)))
	case e.CPUNS > 0:
		return fmt.Sprintf("explains %s of CPU time (%s)", percent(f.Share), finding.Duration(e.CPUNS))
	case e.Bytes > 0:
		return fmt.Sprintf("explains %s of memory (%s)", percent(f.Share), finding.Bytes(e.Bytes))
	case e.WaitedNS > 0:
		return fmt.Sprintf("explains %s %s (%s)", percent(f.Share), wholeOf(f), finding.Duration(e.WaitedNS))
	}
	return "explains " + percent(f.Share)
}

func sure(c finding.Confidence) string {
	switch c {
	case finding.Proven:
		return "both who was awaited and what held it are measured"
	case finding.Supported:
		return "who was awaited or what held it is measured, or two counters agree"
	case finding.Possible:
		return "the evidence is compatible with it, no more"
	}
	return "not graded"
}

// sentence makes a clause a sentence.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return s
	}
	if c := s[0]; c >= 'a' && c <= 'z' && !strings.ContainsAny(strings.SplitN(s, " ", 2)[0], ".(_") {
		s = string(c-'a'+'A') + s[1:]
	}
	if !strings.ContainsAny(s[len(s)-1:], ".!?:") {
		s += "."
	}
	return s
}
