package timeline

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/timeline/twin"
)

// In a long call on a socket the thread lost its CPU. A file's call may be long for other reasons,
// and a stopped world may keep a call from returning.
func TestMoments(t *testing.T) {
	const trace = `
unit 1ms
version %
procs 3
goroutine A main.serve
	0 running
	1 syscall at syscall.write<internal/poll.(*FD).Write<net.(*netFD).Write<net.(*conn).Write<main.serve
	1.01 running
	2 syscall at syscall.write<internal/poll.(*FD).Write<net.(*netFD).Write<net.(*conn).Write<main.serve
	7 running
	8 syscall at syscall.fsync<internal/poll.(*FD).Fsync<os.(*File).Sync<main.serve
	18 running
	20 syscall at syscall.read<internal/poll.(*FD).Read<net.(*netFD).Read<net.(*conn).Read<main.serve
	30 running
	31 end
goroutine B main.scrape
	0 running
	21..29 stw read mem stats at runtime.ReadMemStats<main.scrape
	31 end
`
	for _, c := range []struct {
		version string
		want    Moments
	}{
		{"26", Moments{N: 2, NS: 5_010_000, Long: 1, LongNS: 5_000_000}},
		{"19", Moments{N: 2, NS: 5_010_000, Long: 1, LongNS: 5_000_000}},
	} {
		src := twin.Must(strings.Replace(trace, "%", c.version, 1))
		tl := New(src, Options{})
		for block := range src.Blocks() {
			for i := range block {
				tl.Apply(&block[i])
			}
		}
		if tl.Calls != c.want {
			t.Errorf("version %s: %+v, want %+v", c.version, tl.Calls, c.want)
		}
	}
}

// Work waits beside an idle P only until a woken thread has a CPU.
func TestWakes(t *testing.T) {
	src := twin.Must(`
unit 1ms
procs 2
goroutine A main.serve
	0 running
	1 waiting network at internal/poll.(*FD).Read
	2 runnable by P
	2.05 running
	3 waiting network at internal/poll.(*FD).Read
	4 runnable by P
	9 running
	10 waiting network at internal/poll.(*FD).Read
goroutine B main.compute
	0 running
	20 end
`)
	tl := New(src, Options{})
	for block := range src.Blocks() {
		for i := range block {
			tl.Apply(&block[i])
		}
	}
	if got, want := tl.Wakes(), (Moments{N: 2, NS: 5_050_000, Long: 1, LongNS: 5_000_000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
