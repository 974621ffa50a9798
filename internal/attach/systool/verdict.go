package systool

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// verdict is a reading in the making.
type verdict struct {
	attach.Reading
	asked    map[string]bool
	swapsOut bool // the disk's writes are mostly swap, so that it is busy shows no slow disk
	pid      int  // of the process that uses nearly all of the CPU time; 0: none does
	scarce   bool // memory is short and the kernel frees it, so that iowait is pages read in again
	unsure   bool // no sign, and yet not healthy: too little, or busy by a reason that is not in it
	evicted  bool // the kubelet ended the pod
	nodeLow  bool // for the sake of its node
	torn     bool // rows of it contradict one another
}

func (v *verdict) figure(format string, args ...any) {
	v.Figures = append(v.Figures, fmt.Sprintf(format, args...))
}

func (v *verdict) fact(name attach.FactName, value float64) {
	v.Facts = append(v.Facts, attach.Fact{Name: name, Value: value})
}

func (v *verdict) factOf(name attach.FactName, value float64, of string) {
	v.Facts = append(v.Facts, attach.Fact{Name: name, Value: value, Of: of})
}

func (v *verdict) next(command, why string) {
	if v.asked[command] {
		return
	}
	if v.asked == nil {
		v.asked = map[string]bool{}
	}
	v.asked[command] = true
	v.Next = append(v.Next, attach.Next{Command: command, Why: why})
}

// found adds to a sign of the same cause where there is one: the surer of the two counts.
func (v *verdict) found(cause string, sure finding.Confidence, share float64, proof ...string) {
	for i := range v.Signs {
		s := &v.Signs[i]
		if s.Cause != cause || s.Grade == attach.Against {
			continue
		}
		if s.Grade != attach.Found || sure == finding.Supported {
			s.Sure = sure
		}
		s.Grade, s.Share, s.Proof = attach.Found, max(s.Share, part(share)), append(s.Proof, proof...)
		return
	}
	v.Signs = append(v.Signs, attach.Sign{Cause: cause, Grade: attach.Found, Sure: sure, Share: part(share), Proof: proof})
}

// remedyMajor helps where faults read pages back. To keep more memory would cause more of them.
const remedyMajor = "more memory or a larger memory limit, or fewer processes that share it; a low swappiness, for latency; mlock for what is hot"

// remedy says what helps where the first remedy of a cause does not.
func (v *verdict) remedy(cause, text string) {
	for i := range v.Signs {
		if s := &v.Signs[i]; s.Cause == cause && s.Grade != attach.Against {
			s.Remedy = text
		}
	}
}

func (v *verdict) candidate(cause string, share float64, proof ...string) {
	v.sign(attach.Candidate, cause, share, proof)
}

// proves is a candidate, or one more line of proof for it.
func (v *verdict) proves(cause, proof string) {
	for i := range v.Signs {
		if s := &v.Signs[i]; s.Cause == cause && s.Grade != attach.Against {
			s.Proof = append(s.Proof, proof)
			return
		}
	}
	v.candidate(cause, 0, proof)
}

// accuses reports whether there is a sign of this cause, and not against it.
func (v *verdict) accuses(cause string) bool {
	return slices.ContainsFunc(v.Signs, func(s attach.Sign) bool { return s.Cause == cause && s.Grade != attach.Against })
}

func (v *verdict) risk(cause string, proof ...string) { v.sign(attach.Risk, cause, 0, proof) }

func (v *verdict) against(cause string, proof ...string) { v.sign(attach.Against, cause, 0, proof) }

func (v *verdict) sign(grade attach.Grade, cause string, share float64, proof []string) {
	for _, s := range v.Signs {
		if s.Cause == cause && s.Grade != attach.Against {
			return
		}
	}
	v.Signs = append(v.Signs, attach.Sign{Cause: cause, Grade: grade, Share: part(share), Proof: proof})
}

func (v *verdict) outside(where string, share float64, proof ...string) {
	v.Signs = append(v.Signs, attach.Sign{Grade: attach.Outside, Where: where, Share: part(share), Proof: proof})
}

// means sets what follows, where nothing more important has done so before.
func (v *verdict) means(format string, args ...any) {
	if v.Means == "" {
		v.Means = fmt.Sprintf(format, args...)
	}
}

// ease is means for where nothing is short: a sign says itself what is.
func (v *verdict) ease(format string, args ...any) {
	for _, s := range v.Signs {
		if s.Grade != attach.Against && len(s.Proof) > 0 {
			v.means("%s", s.Proof[0])
		}
	}
	v.means(format, args...)
}

// not sets what the figures do not prove, likewise.
func (v *verdict) not(text string) {
	if v.Not == "" {
		v.Not = text
	}
}

// finds reports whether this cause is found.
func (v *verdict) finds(cause string) bool {
	for _, s := range v.Signs {
		if s.Cause == cause && s.Grade == attach.Found {
			return true
		}
	}
	return false
}

// has reports whether a sign other than against is there.
func (v *verdict) has() bool {
	for _, s := range v.Signs {
		if s.Grade != attach.Against {
			return true
		}
	}
	return false
}

// cutOff is the verdict on names without rows.
func (v *verdict) cutOff(tool string) {
	v.Title, v.unsure = tool+", names without a whole row", true
	v.means("no whole row stands below the names")
}

// done settles the state.
func (v *verdict) done() attach.Reading {
	v.State = attach.Healthy
	if v.unsure || v.has() {
		v.State = attach.CannotTell
	}
	for _, s := range v.Signs {
		if s.Grade == attach.Found {
			v.State = attach.Ill
		}
	}
	return v.Reading
}

// part is a share within 0 and 1.
func part(f float64) float64 { return max(0, min(1, f)) }
