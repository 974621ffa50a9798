package request

import (
	"fmt"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/timeline/twin"
)

const (
	netRead  = "internal/poll.(*FD).Read<net.(*netFD).Read<net.(*conn).Read"
	netWrite = "syscall.write<internal/poll.(*FD).Write<net.(*netFD).Write<net.(*conn).Write"
)

// cast is what each goroutine does, round after round of 1000 ns: lines with times relative to the
// round.
type cast map[string]string

// play gives the text of n rounds. Names are entry functions.
func (c cast) play(n int) string {
	var b strings.Builder
	for who, lines := range c {
		fmt.Fprintf(&b, "goroutine %s main.%s\n", who, who)
		for i := range n {
			for line := range strings.Lines(strings.TrimSpace(lines)) {
				at, what := 0, ""
				at, _ = atoi(strings.TrimSpace(line))
				if strings.TrimSpace(line) == "" {
					continue
				}
				_, what, _ = strings.Cut(strings.TrimSpace(line), " ")
				fmt.Fprintf(&b, "\t%d %s\n", i*1000+at, what)
			}
		}
	}
	return strings.NewReplacer("READ", netRead, "WRITE", netWrite, "RECV", "runtime.chanrecv2").Replace(b.String())
}

func atoi(s string) (n int, err error) {
	_, err = fmt.Sscan(s, &n)
	return n, err
}

// A request that one goroutine reads and another answers is found, with when it was handed on.
func TestRelay(t *testing.T) {
	reader := func(gives string) string {
		return `
	0 waiting network at READ
	10 runnable by P
	11 running
	12 syscall at READ
	13 running
	` + gives + `
	20 syscall at READ
	21 running`
	}
	const writer = `
	0 waiting chan receive at RECV
	510 runnable by worker
	515 running
	530 syscall at WRITE<main.send
	540 running`
	for _, tc := range []struct {
		name   string
		cast   cast
		listed string
		span   string // of each request, relative to its round
		rounds int64
		doubt  string
	}{
		{"a worker and a writer", cast{"reader": reader(""), "writer": writer, "worker": `
	0 waiting chan receive at RECV
	15 runnable by reader
	16 running
	30 waiting sleep at time.Sleep<main.work
	500 runnable by P
	501 running`}, "handed on main.reader", "[10,540)", 60, ""},
		{"a worker that answers", cast{"reader": reader(""), "worker": `
	0 waiting chan receive at RECV
	15 runnable by reader
	16 running
	30 waiting sleep at time.Sleep<main.work
	500 runnable by P
	501 running
	502 syscall at WRITE<main.send
	503 running`}, "handed on main.reader", "[10,503)", 60, ""},
		// What its client writes is a question, and no answer.
		{"a worker that asks", cast{"reader": reader(""), "writer": writer, "worker": `
	0 waiting chan receive at RECV
	15 runnable by reader
	16 running
	30 waiting chan receive at RECV<main.ask
	400 runnable by answers
	401 running`, "questions": `
	0 waiting chan receive at RECV
	25 runnable by worker
	26 running
	27 syscall at WRITE<main.send
	28 running`, "answers": `
	0 waiting network at READ
	390 runnable by P
	391 running
	392 syscall at READ
	393 running`}, "handed on main.reader", "[10,540)", 60, ""},
		{"a worker that asks over its own connection", cast{"reader": reader(""), "writer": writer, "worker": `
	0 waiting chan receive at RECV
	15 runnable by reader
	16 running
	17 syscall at WRITE<main.ask
	18 running
	30 waiting network at READ<main.ask
	400 runnable by P
	401 running`}, "handed on main.reader", "[10,540)", 60, ""},
		// The work is in a queue: nobody is woken.
		{"a worker that never waits for work", cast{"reader": reader(""), "writer": writer, "worker": `
	30 waiting sleep at time.Sleep<main.work
	500 runnable by P
	501 running`}, "rounds main.worker", "", 60, "its goroutines never wait for work: requests wait before that in a queue or socket, and how long is not in these times"},
		// As in nats-server: a goroutine that a condition woke is not followed, and its wait is no
		// part of a request.
		{"a writer that waits for a condition", cast{"reader": reader(""), "writer": `
	0 waiting sync.(*Cond).Wait at sync.runtime_notifyListWait<sync.(*Cond).Wait<main.loop
	14 runnable by reader
	15 running
	16 syscall at WRITE<main.send
	18 running`}, "loop main.reader", "", 0, ""},
		{"a reader that answers", cast{"reader": `
	0 waiting network at READ
	10 runnable by P
	11 running
	15 waiting chan receive at RECV<main.ask
	510 runnable by worker
	511 running
	520 syscall at WRITE<main.send
	530 running`, "worker": `
	0 waiting chan receive at RECV
	14 runnable by reader
	15 running
	30 waiting sleep at time.Sleep<main.work
	500 runnable by P
	501 running`}, "loop main.reader", "", 0, ""},
		{"a loop that writes what it is given", cast{"ticker": `
	0 waiting sleep at time.Sleep<main.ticker
	505 runnable by P
	506 running`, "writer": strings.ReplaceAll(writer, "worker", "ticker")}, "loop main.ticker", "", 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			src, err := twin.Parse(strings.NewReader(tc.cast.play(60)))
			if err != nil {
				t.Fatal(err)
			}
			f, as := run(t, src, Options{})
			report(t, f, as)
			wellFormed(t, as)
			if got := listed(f); got != tc.listed {
				t.Fatalf("listed %q, want %q", got, tc.listed)
			}
			id := shown(f)[0]
			g := f.Groups()[id]
			if g.Doubt != tc.doubt {
				t.Errorf("doubt %q, want %q", g.Doubt, tc.doubt)
			}
			if tc.rounds > 0 && (g.Count < tc.rounds-1 || g.Count > tc.rounds) {
				t.Errorf("%d requests, want %d", g.Count, tc.rounds)
			}
			for _, a := range as {
				if got := fmt.Sprintf("[%d,%d)", a.Begin%1000, a.End%1000); a.Group == id &&
					a.LeftOut == Kept && tc.span != "" && got != tc.span {
					t.Errorf("a request is %s, want %s", got, tc.span)
				}
			}
		})
	}
}
