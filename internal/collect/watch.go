package collect

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sensor/proc"
)

// maxEvents bounds how much is said about a target that does such things all the time.
const maxEvents = 10

// watch looks at a target now and then: has it ended, does it run another program, is it stopped,
// how much CPU time has it used.
type watch struct {
	mu     sync.Mutex
	life   life
	cpu0   int64    // CPU time of the target when the recording started, ns
	cpu    int64    // by the last look, ns
	events []string // what happened to it, in words
	ended  bool
	halt   halt
	kin    family // at the start
}

// newWatch identifies pid, which may have ended by now.
func newWatch(pid int, exe string) *watch {
	w := &watch{life: life{pid: pid, exe: exe}, halt: halt{freezers: proc.FS{}.Freezers(pid)}}
	if s, ok := readProcStat(pid); ok {
		w.life.start, w.cpu0, w.cpu, w.halt.cpu = s.start, s.cpuNS, s.cpuNS, s.cpuNS
	}
	return w
}

// start is called when the recording starts: what used and halted return counts from here.
func (w *watch) start() {
	w.look()
	w.mu.Lock()
	w.cpu0 = w.cpu
	w.halt.start(time.Now())
	w.kin = familyOf(w.life.pid)
	w.mu.Unlock()
}

// look looks once and reports whether the target is there.
func (w *watch) look() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	exe := w.life.exe
	s, there := w.life.look()
	now := time.Now()
	clock := now.UTC().Format("15:04:05.000 UTC")
	switch {
	case !there:
		w.ended = true
		w.events = append(w.events, "the process ended at "+clock)
		return false
	case w.life.exe != exe:
		w.event(fmt.Sprintf("it runs another program, %s, since %s", w.life.exe, clock))
	}
	if change := w.halt.look(s, now); change != "" {
		w.event(change)
	}
	w.cpu = s.cpuNS
	return true
}

func (w *watch) event(what string) {
	if len(w.events) < maxEvents {
		w.events = append(w.events, what)
	}
}

// until calls end when the target is gone. The function it returns ends the watch.
func (w *watch) until(end func()) func() {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTimer(untilBeat(watchEvery))
		defer t.Stop()
		for {
			if !w.look() {
				end()
				return
			}
			select {
			case <-t.C:
				t.Reset(untilBeat(watchEvery))
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// gone reports whether the target has ended. Without a target (nil) it has not.
func (w *watch) gone() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// used is the target's CPU time since the start, up to when it was last seen, to within 10 ms.
func (w *watch) used() int64 {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cpu - w.cpu0
}

// halted says for how long the target was stopped as a whole, to within the 200 ms between two
// looks; nil if it was not.
func (w *watch) halted() *evidence.Halt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.halt.sum(time.Now())
}

// story says in words what happened to the target, "" if nothing did.
func (w *watch) story() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	if s := w.kin.story(familyOf(w.life.pid), w.cpu-w.cpu0); s != "" {
		events = append(slices.Clone(events), s)
	}
	return strings.Join(events, "; ")
}

func readProcStat(pid int) (procStat, bool) {
	b, err := os.ReadFile(procDir(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	s, err := parseStat(b)
	return s, err == nil
}
