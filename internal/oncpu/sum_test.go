package oncpu

import (
	"math"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// TestShares: parts add up to the whole, whatever the weights.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		ns      int64
		weights []int64
	}{
		{10, []int64{1, 1, 1}}, {1, []int64{5, 5}}, {math.MaxInt64, []int64{1, 2, 3}},
		{7, []int64{0, 3, 0}}, {1e18, []int64{math.MaxInt32 * 1e6, 1}},
	} {
		var sum int64
		for _, ns := range shares(c.ns, c.weights) {
			if ns < 0 {
				t.Errorf("%v: a part of %d", c, ns)
			}
			sum += ns
		}
		if sum != c.ns {
			t.Errorf("%v: parts add up to %d", c, sum)
		}
	}
}

func TestWrite(t *testing.T) {
	w := &Works{keys: []Key{{Kind: account.WorkUnknown}, {Kind: account.WorkOwn, Name: "f"},
		{Kind: account.WorkFault, Name: "zeroing", Site: account.Site{Func: "f"}, Late: "x"}}}
	w.once.Do(func() {})
	var s, none Sum
	if none.Write(w, 100) != nil {
		t.Error("no samples divide something")
	}
	for range 10 {
		s.Add(1, 1e6)
	}
	if o := s.Write(w, 1e9); o == nil || o.Samples != 10 || o.Works != nil {
		t.Errorf("10 samples: %+v, want no division", o)
	}
	var more Sum
	for range 30 {
		more.Add(2, 1e6)
	}
	s.Merge(&more)
	o := s.Write(w, 1e9+1)
	if len(o.Works) != 2 || o.Works[0].Kind != account.WorkFault || o.Works[0].NS+
		o.Works[1].NS != 1e9+1 || o.Works[0].Sites[0].Func != "f" || len(o.Late) != 1 || o.Late[0].N != 30 {
		t.Fatalf("%+v", o)
	}
	// Wilson's interval of 30 in 40 is 0.598 to 0.858.
	if x := o.Works[0]; math.Abs(float64(x.Low)/1e9-0.598) > 0.001 || math.Abs(float64(x.High)/1e9-0.858) > 0.001 {
		t.Errorf("interval %d to %d", x.Low, x.High)
	}
	if x := o.Of(account.WorkFault, account.WorkOwn); x.NS != o.NS || x.High != o.NS || x.Samples != 40 {
		t.Errorf("all of it: %+v", x)
	}
	if x := o.Of(account.WorkGC); x.NS != 0 || x.Low != 0 || x.High < 50e6 || x.High > 100e6 {
		t.Errorf("what was not met: %+v, want up to 8.8 %%", x)
	}
}

// TestUnseen: 30 samples of 1 ms in 40 ms, where the kernel may not be sampled. So 10 ms were
// spent there, and may be whatever the kernel does.
func TestUnseen(t *testing.T) {
	w := &Works{keys: []Key{{Kind: account.WorkUnknown}, {Kind: account.WorkOwn, Name: "f"},
		{Kind: account.WorkUnknown, Name: account.UnseenWork}}, unseen: 2}
	w.once.Do(func() {})
	var s Sum
	for range 30 {
		s.Add(1, 1e6)
	}
	o := s.Write(w, 40e6)
	if o.Samples != 30 || o.Unseen != 10e6 || len(o.Works) != 2 || o.Works[0].NS != 30e6 || o.Works[1].Samples != 0 {
		t.Fatalf("%+v", o)
	}
	if x := o.Of(account.WorkFault); x.NS != 0 || x.High < 10e6 {
		t.Errorf("faults: %+v, want up to 10 ms and more", x)
	}
	if x := o.Of(account.WorkGC); x.High > 8e6 {
		t.Errorf("GC: %+v, want what samples bound", x)
	}
}

// TestEffective: one sample of 30 ms beside 30 of 1 ms counts as four of equal weight.
func TestEffective(t *testing.T) {
	var s Sum
	for range 30 {
		s.Add(1, 1e6)
	}
	s.Add(1, 30e6)
	if n := s.effective(); math.Abs(n-3.87) > 0.01 {
		t.Errorf("%f, want 3.87", n)
	}
}

// TestProfile: a CPU profile of Go's runtime is divided by the same rules. It sees who calls the
// kernel.
func TestProfile(t *testing.T) {
	var p Profile
	p.Add([]string{"main.f", "main.main"}, 30, 300e6)
	p.Add([]string{"internal/runtime/syscall/linux.Syscall6", "syscall.Syscall", "syscall.write",
		"main.log"}, 10, 100e6)
	p.Add([]string{"runtime._GC"}, 10, 100e6)
	p.Add([]string{"main.f"}, -1, 1e6)
	o := p.Write()
	if o == nil || o.NS != 500e6 || o.Samples != 50 || len(o.Works) != 3 || o.Of(account.WorkGC).NS != 100e6 {
		t.Fatalf("%+v", o)
	}
	if w := o.Works[2]; w.Kind != account.WorkSyscall || w.Name != "write" || w.Sites[0].Func != "main.log" {
		t.Errorf("%+v, want the system call write of main.log", w)
	}
}

// TestUnnamed: where the user may not read the kernel's names, its functions say nothing, and rule
// nothing out.
func TestUnnamed(t *testing.T) {
	key := workOf([]kernel.Frame{{Addr: 1}, {Addr: 2}}, []kernel.Frame{{Func: "f", Module: "/app"}}, interpreters{})
	w := &Works{keys: []Key{{Kind: account.WorkUnknown}, key}}
	w.once.Do(func() {})
	var s Sum
	for range 30 {
		s.Add(1, 1e6)
	}
	if o := s.Write(w, 30e6); o.Unseen != 30e6 || o.Of(account.WorkFault).High != 30e6 {
		t.Errorf("%+v, want all of it unseen", o)
	}
}
