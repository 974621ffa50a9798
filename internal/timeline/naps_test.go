package timeline

import (
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/timeline/twin"
)

// A goroutine polls where it sleeps for a moment after it did so at the same place. One that sleeps
// here and there, or waits for something else between, does not.
func TestNaps(t *testing.T) {
	for _, version := range []string{"26", "19"} {
		src := twin.Must(`
unit 1ms
version ` + version + `
procs 2
goroutine A main.poll
	0 running
	1 waiting sleep at time.Sleep<main.poll
	1.1 runnable by P
	1.2 running
	1.3 waiting sleep at time.Sleep<main.poll
	1.4 runnable by P
	1.5 running
	1.6 waiting sleep at time.Sleep<main.poll
	2.7 runnable by P
	2.8 running
	3 waiting sleep at time.Sleep<main.poll
	9 runnable by P
	9.1 running
	20 end
goroutine B main.serve
	0 running
	1 waiting network at internal/poll.(*FD).Read
	2 runnable by P
	2.1 running
	3 waiting sleep at time.Sleep<main.ask
	3.4 runnable by P
	3.5 running
	4 waiting sleep at time.Sleep<main.answer
	4.4 runnable by P
	4.5 running
	5 waiting network at internal/poll.(*FD).Read
	6 runnable by P
	6.1 running
	7 waiting sleep at time.Sleep<main.answer
	7.4 runnable by P
	7.5 running
	20 end
`)
		tl := New(src, Options{})
		for block := range src.Blocks() {
			for i := range block {
				tl.Apply(&block[i])
			}
		}
		n := tl.Naps
		if n.N != 2 || n.Wakes != 9 || len(n.Sites) != 1 {
			t.Errorf("version %s: %d naps at %d places, %d ends of waits; want 2 at 1, 9", version,
				n.N, len(n.Sites), n.Wakes)
		}
		for stack, s := range n.Sites {
			if f := src.Frames(nil, exectrace.StackID(stack)); s.N != 2 || len(f) == 0 ||
				f[len(f)-1].Func != "main.poll" {
				t.Errorf("version %s: %d at %v", version, s.N, f)
			}
		}
	}
}
