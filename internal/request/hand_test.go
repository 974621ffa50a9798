package request

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/timeline/twin"
)

// byHand finds the activations of a trace written by hand, without a look ahead.
func byHand(t testing.TB, text string, o Options) (*Finder, []Activation) {
	t.Helper()
	src, err := twin.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	f := NewFinder(src, o)
	var as []Activation
	var last exectrace.Time
	for b := range src.Blocks() {
		for i := range b {
			last = b[i].Time
			as = append(as, f.Event(&b[i])...)
		}
	}
	return f, append(as, f.Finish(last)...)
}

// words writes activations as "kind name [begin,end) why", in the order in which they were closed.
func words(f *Finder, as []Activation) string {
	var s []string
	for _, a := range as {
		w := f.Groups()[a.Group].Kind
		if a.Name != 0 {
			w += " " + f.Name(a.Name)
		}
		w += fmt.Sprintf(" [%d,%d)", a.Begin, a.End)
		if a.PrevEnd > a.Begin {
			w += fmt.Sprintf(" previous to %d", a.PrevEnd)
		}
		if a.LeftOut != Kept {
			w += " " + a.LeftOut.String()
		}
		s = append(s, w)
	}
	return strings.Join(s, "; ")
}

// Stacks of net/http, shortened.
var short = strings.NewReplacer(
	"PEEK", "internal/poll.(*FD).Read<net/http.(*connReader).Read<bufio.(*Reader).Peek",
	"FRESH", "net/http.(*connReader).startBackgroundRead",
	"HANDLER", "net/http.HandlerFunc.ServeHTTP<net/http.serverHandler.ServeHTTP",
	"FLUSH", "syscall.write<net/http.checkConnErrorWriter.Write<bufio.(*Writer).Flush<net/http.(*response).finishRequest",
	"WRITE", "syscall.write<net/http.checkConnErrorWriter.Write<bufio.(*Writer).Flush<net/http.(*response).Flush<main.h",
	"ABORT", "net/http.(*connReader).abortPendingRead<net/http.(*response).finishRequest",
	"HIJACK", "net/http.(*connReader).abortPendingRead<net/http.(*conn).hijackLocked<net/http.(*response).Hijack<main.ws",
	"CLOSE", "syscall.Close<net/http.(*conn).close<net/http.(*conn).serve.func1",
)

func TestByHand(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"a request, then the connection's end", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	20 waiting sleep at time.Sleep<main.h<HANDLER
	30 runnable by P
	31 running
	35 syscall at FLUSH
	36 running
	38 waiting sync.(*Cond).Wait at sync.(*Cond).Wait<ABORT
	39 runnable by R
	40 running
	41 waiting network at PEEK
	60 runnable by P
	61 running
	62 syscall at CLOSE
	63 running
	64 end
goroutine R net/http.(*connReader).backgroundRead
	12 created by C at FRESH
	13 running
	14 waiting network
	37 runnable by C at ABORT
	38 running
	40 end
`, "net/http main.h [10,37)"},
		// The wait for the reader to stop is the next request's head, for that was there already.
		{"the next is there already", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	30 waiting sync.(*Cond).Wait at sync.(*Cond).Wait<ABORT
	33 runnable by R
	34 running
	40 waiting sleep at time.Sleep<main.second<HANDLER
	45 runnable by P
	46 running
	50 waiting network at PEEK
goroutine R net/http.(*connReader).backgroundRead
	12 created by C at FRESH
	13 running
	35 end
goroutine R2 net/http.(*connReader).backgroundRead
	36 created by C at FRESH
	37 running
	38 waiting network
`, "net/http [10,30); net/http main.second [30,50) previous to 33"},
		{"no reader to stop: the flush ends it", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	12 syscall at main.one<HANDLER
	13 running
	20 syscall at FLUSH
	22 running
	25 syscall at main.two<HANDLER
	26 running
	40 syscall at FLUSH
	41 running
	45 waiting network at PEEK
`, "net/http main.one [10,22); net/http main.two [22,41)"},
		{"a slow reader of the answer", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	20 syscall at FLUSH
	21 running
	22 waiting network at FLUSH
	30 runnable by P
	31 running
	32 syscall at FLUSH
	33 running
	40 waiting network at PEEK
`, "net/http [10,33)"},
		{"hijacked", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	20 waiting sync.(*Cond).Wait at sync.(*Cond).Wait<HIJACK<HANDLER
	22 runnable by R
	23 running
	30 waiting network at net.(*conn).Read<main.ws<HANDLER
	40 runnable by P
	41 running
	50 end
goroutine R net/http.(*connReader).backgroundRead
	12 created by C at FRESH
	13 running
	24 end
`, "net/http [10,20) hijacked"},
		{"a handler that panics", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	12 syscall at main.h<HANDLER
	13 running
	20 syscall at syscall.Close<net/http.(*conn).close<net/http.(*conn).serve.func1<runtime.gopanic<main.h<HANDLER
	21 running
	22 end
`, "net/http main.h [10,22)"},
		{"a stream", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	20 waiting select at main.h<HANDLER
	21 runnable by P
	22 running
	23 syscall at WRITE<HANDLER
	24 running
	30 waiting select at main.h<HANDLER
	31 runnable by P
	32 running
	33 syscall at WRITE<HANDLER
	34 running
	40 waiting select at main.h<HANDLER
	41 runnable by P
	42 running
	43 syscall at FLUSH
	44 running
	50 waiting network at PEEK
`, "net/http main.h [10,44) stream"},
		{"many writes after one wait are no stream", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	20 waiting select at main.h<HANDLER
	21 runnable by P
	22 running
	23 syscall at WRITE<HANDLER
	24 running
	25 syscall at WRITE<HANDLER
	26 running
	27 waiting network at WRITE<HANDLER
	28 runnable by P
	29 running
	33 syscall at WRITE<HANDLER
	34 running
	50 waiting network at PEEK
`, "net/http main.h [10,50)"},
		{"open when the trace begins and ends", `
goroutine A net/http.(*conn).serve
	0 waiting sleep at time.Sleep<main.h<HANDLER
	5 runnable by P
	6 running
	8 waiting network at PEEK
goroutine B net/http.(*conn).serve
	0 waiting network at PEEK
	9 runnable by P
	10 running
	11 waiting sleep at time.Sleep<main.h<HANDLER
	20 runnable by P
`, "net/http main.h [0,8) open at the trace's begin; net/http main.h [9,20) open at the trace's end"},
		{"our own", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	12 syscall at runtime/pprof.writeHeap<net/http/pprof.handler.ServeHTTP<HANDLER
	13 running
	50 waiting network at PEEK
`, "net/http net/http/pprof.handler.ServeHTTP [10,50) whystall's own"},
		{"a task, a region in it, and one elsewhere", `
goroutine A main.a
	0 running
	1..9 task resize
	2..4 region decode in resize
	20..25 region alone
goroutine B main.b
	0 running
	3..5 region encode in resize
`, "task resize [1,9); region alone [20,25)"},
		{"a task that ends elsewhere while its goroutine waits for that", `
goroutine A main.a
	0 running
	1..9 task resize by B
	2 waiting chan receive at main.wait
	10 runnable by B
	11 running
goroutine B main.b
	0 running
`, "task resize [1,9)"},
		{"a task that is handed out", `
goroutine A main.a
	0 running
	1..9 task resize by B
	2 waiting chan receive at main.next
	10 runnable by C
	11 running
goroutine B main.b
	0 running
goroutine C main.c
	0 running
`, "task resize [1,10) task ended on another goroutine"},
		{"a region in a handler is part of the request", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	12 syscall at main.h<HANDLER
	13 running
	20..30 region inner
	40..45 task later
	50 waiting network at PEEK
`, "net/http main.h [10,50)"},
		{"HTTP/2, from the module and vendored", `
goroutine S main.conn
	0 running
goroutine A golang.org/x/net/http2.(*serverConn).runHandler
	2 created by S at golang.org/x/net/http2.(*serverConn).processHeaders
	3 running
	4 syscall at main.list<net/http.HandlerFunc.ServeHTTP
	5 running
	7 end
goroutine B example.com/x/vendor/golang.org/x/net/http2.(*serverConn).runHandler
	3 created by S at golang.org/x/net/http2.(*serverConn).processHeaders
	4 running
	9 end
`, "http2 main.list [2,7); http2 [3,9)"},
		{"gRPC", `
goroutine S google.golang.org/grpc.(*Server).handleRawConn.func1
	0 running
goroutine A google.golang.org/grpc.(*Server).serveStreams.func2.1
	2 created by S at google.golang.org/grpc.(*Server).serveStreams.func2
	3 running
	4 syscall at main.(*kv).Put<example.com/pb._KV_Put_Handler<google.golang.org/grpc.(*Server).processUnaryRPC<google.golang.org/grpc.(*Server).handleStream
	5 running
	7 end
goroutine W google.golang.org/grpc.(*Server).serverWorker
	0 waiting chan receive at runtime.chanrecv1
	2 runnable by S
	3 running
	4 waiting sleep at time.Sleep<google.golang.org/grpc.(*Server).processUnaryRPC
	5 runnable by P
	6 running
	8 waiting chan receive at runtime.chanrecv1
`, "grpc example.com/pb._KV_Put_Handler [2,7); grpc [2,8)"},
		{"lost events", `
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	11 running
	12 syscall at main.h<HANDLER
	13 running
	50 waiting network at PEEK
20..30 gap a batch
`, "net/http main.h [10,20) lost events inside"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, as := byHand(t, short.Replace(tc.text), Options{})
			wellFormed(t, as)
			if got := words(f, as); got != tc.want {
				t.Errorf("got\n\t%s\nwant\n\t%s", got, tc.want)
			}
		})
	}
}

// Options.Entry keeps what matches by entry function or by name.
func TestEntry(t *testing.T) {
	text := short.Replace(`
goroutine C net/http.(*conn).serve
	0 waiting network at PEEK
	10 runnable by P
	12 running
	13 syscall at main.list<HANDLER
	14 running
	20 waiting network at PEEK
	30 runnable by P
	31 running
	32 syscall at main.get<HANDLER
	33 running
	40 waiting network at PEEK
`)
	for _, tc := range []struct{ entry, want string }{
		{"list$", "net/http main.list [10,20); net/http main.get [30,40) not asked for"},
		{"serve", "net/http main.list [10,20); net/http main.get [30,40)"},
	} {
		f, as := byHand(t, text, Options{Entry: regexp.MustCompile(tc.entry)})
		if got := words(f, as); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.entry, got, tc.want)
		}
	}
}

// fuzzStacks are the stacks that random events choose from.
var fuzzStacks = func() [][]exectrace.Frame {
	var ss [][]exectrace.Frame
	for _, s := range []string{"", "PEEK<net/http.(*conn).serve", "FRESH<net/http.(*conn).serve",
		"main.h<HANDLER<net/http.(*conn).serve",
		"FLUSH<net/http.(*conn).serve", "WRITE<HANDLER<net/http.(*conn).serve",
		"ABORT<net/http.(*conn).serve", "HIJACK<HANDLER<net/http.(*conn).serve",
		"CLOSE<net/http.(*conn).serve", "net/http.(*conn).serve",
		"net/http.(*connReader).backgroundRead", "main.loop", "main.read<main.loop",
		"net.(*TCPListener).Accept<main.loop", "internal/poll.(*FD).Write<main.loop", "main.other",
		"golang.org/x/net/http2.(*serverConn).runHandler",
		"google.golang.org/grpc.(*Server).serverWorker",
		"runtime.chanrecv1<google.golang.org/grpc.(*Server).serverWorker", "runtime.bgsweep", "a.[b/c.d", ".", "/."} {
		var fr []exectrace.Frame
		if s != "" {
			for i, fn := range strings.Split(short.Replace(s), "<") {
				fr = append(fr, exectrace.Frame{Func: fn, Line: i})
			}
		}
		ss = append(ss, fr)
	}
	return ss
}()

type fuzzSource struct{}

func (fuzzSource) Frames(dst []exectrace.Frame, id exectrace.StackID) []exectrace.Frame {
	if int(id) < len(fuzzStacks) {
		dst = append(dst, fuzzStacks[id]...)
	}
	return dst
}
func (fuzzSource) String(id exectrace.StringID) string { return fmt.Sprint(id % 5) }

// Events that make no sense still give activations that are well formed: each ends after it begins,
// and a goroutine has one at a time.
func FuzzEvent(f *testing.F) {
	kinds := []exectrace.Kind{exectrace.KindGoroutine, exectrace.KindGoroutine,
		exectrace.KindGoroutine, exectrace.KindGoroutine, exectrace.KindTaskBegin,
		exectrace.KindTaskEnd, exectrace.KindRegionBegin, exectrace.KindRegionEnd,
		exectrace.KindRangeBegin, exectrace.KindGap, exectrace.KindSync}
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"))
	seed := make([]byte, 0, 8000)
	x := uint32(1)
	for range cap(seed) / 4 {
		x = x*1664525 + 1013904223
		seed = binary.LittleEndian.AppendUint32(seed, x)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		fd := NewFinder(fuzzSource{}, Options{})
		last := map[exectrace.GoID]exectrace.Time{}
		check := func(as []Activation, now exectrace.Time) {
			for _, a := range as {
				if a.Hops[0] == 0 && a.Begin < last[a.G] || a.End < a.Begin || a.End > now ||
					a.PrevEnd > a.End || int(a.Group) >= len(fd.Groups()) {
					t.Fatalf("at %d: %+v after %d", now, a, last[a.G])
				}
				if a.Hops[0] == 0 {
					last[a.G] = a.End
				}
				fd.Name(a.Name)
			}
		}
		now := exectrace.Time(1)
		for ; len(b) >= 8; b = b[8:] {
			now += exectrace.Time(b[0] & 3)
			ev := exectrace.Event{Time: now, Kind: kinds[b[1]%uint8(len(kinds))],
				Slot: uint32(b[2] & 7), OnSlot: uint32(b[2] >> 3 & 7),
				Stack: exectrace.StackID(b[3] & 31), OnStack: exectrace.StackID(b[4] & 31),
				From: exectrace.State(b[5] & 7), To: exectrace.State(b[5] >> 3 & 7),
				Reason: exectrace.Reason(b[6] & 31), Name: exectrace.StringID(b[6] & 3)}
			// A goroutine keeps its slot; some slots are taken over.
			ev.G, ev.On = exectrace.GoID(ev.Slot+1), exectrace.GoID(ev.OnSlot+1)
			if b[2]&0xc0 == 0xc0 {
				ev.G += exectrace.GoID(8 * (1 + now))
			}
			if b[7]&1 == 0 {
				ev.On, ev.OnSlot = ev.G, ev.Slot
			} else if b[7]&2 == 0 {
				ev.On, ev.OnSlot = exectrace.NoGoroutine, exectrace.NoSlot
			}
			ev.Arg = [2]uint64{uint64(b[7] >> 5), uint64(b[7] >> 2 & 3)}
			check(fd.Event(&ev), now)
		}
		check(fd.Finish(now), now)
		shown(fd)
	})
}

// Of two places that read from the network the earlier of the loop is the wait for work, however
// much oftener the other waits; where one calls it from another function, depth decides.
func TestReadsFirst(t *testing.T) {
	net := func(blocks uint32, path ...place) *site {
		return &site{depth: int32(len(path)), path: path, blocks: blocks, net: blocks}
	}
	client, store := net(5, place{"main.serve", 58}), net(50, place{"main.serve", 68})
	deep := net(5, place{"main.serve", 58}, place{"main.read", 7})
	other := net(50, place{"main.start", 3})
	for _, c := range []struct {
		what string
		a, b *site
		want bool
	}{
		{"the client's line stands first", client, store, true},
		{"the store's stands later", store, client, false},
		{"in a function of its own", deep, store, true},
		{"no common function: the shallower", other, deep, true},
	} {
		if got := new(entry).prefers(c.a, c.b); got != c.want {
			t.Errorf("%s: got %v", c.what, got)
		}
	}
}
