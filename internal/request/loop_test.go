package request

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// The clients of these servers are another process: inside the server's process they would be loops
// of their own.
func TestMain(m *testing.M) {
	if addr := os.Getenv("WHYSTALL_TEST_CLIENT"); addr != "" {
		lineClient(addr)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lineClient sends lines over conns connections, each the given number of times, and waits for each
// answer.
func lineClient(addr string) {
	conns, _ := strconv.Atoi(os.Getenv("WHYSTALL_TEST_CONNS"))
	n, _ := strconv.Atoi(os.Getenv("WHYSTALL_TEST_N"))
	pause, _ := time.ParseDuration(os.Getenv("WHYSTALL_TEST_PAUSE")) // after an answer; else none
	var wg sync.WaitGroup
	for range conns {
		wg.Go(func() {
			if os.Getenv("WHYSTALL_TEST_ONESHOT") != "" {
				for range n {
					c, err := net.Dial("tcp", addr)
					if err != nil {
						fmt.Fprintln(os.Stderr, err)
						os.Exit(1)
					}
					io.WriteString(c, "ping\n")
					bufio.NewReader(c).ReadString('\n')
					c.Close()
				}
				return
			}
			c, err := net.Dial("tcp", addr)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			defer c.Close()
			r := bufio.NewReader(c)
			for range n {
				io.WriteString(c, "ping\n")
				if _, err := r.ReadString('\n'); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				time.Sleep(pause)
			}
		})
	}
	wg.Wait()
}

// lines runs the client process against addr.
func lines(t *testing.T, addr net.Addr, conns, n int, env ...string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "WHYSTALL_TEST_CLIENT="+addr.String(),
		fmt.Sprint("WHYSTALL_TEST_CONNS=", conns), fmt.Sprint("WHYSTALL_TEST_N=", n))
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("client: %v: %s", err, out)
	}
}

// lineServer serves conn on a goroutine a connection; stop waits for all of them.
func lineServer(t *testing.T, conn func(net.Conn)) (addr net.Addr, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				serveConn(c, conn)
			}()
		}
	}()
	return l.Addr(), func() { l.Close(); wg.Wait() }
}

//go:noinline
func serveConn(c net.Conn, conn func(net.Conn)) { defer c.Close(); conn(c) }

// early counts lines that were there before anybody waited for them, as where a thread is preempted
// between an answer and the next read. Nothing divides such a line from the one before, and the two
// are one request.
var early atomic.Int64

// look counts what came early on c. It is called before each read, and is no part of one, for that
// would wait elsewhere then.
func look(c net.Conn) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		var one [1]byte
		// Raw: nothing of it is in the trace.
		n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&one)), 1,
			syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
		if e == 0 && n == 1 {
			early.Add(1)
		}
	})
}

// listed are the groups shown, as "kind entry".
func listed(f *Finder) string {
	var s []string
	for _, id := range shown(f) {
		g := f.Groups()[id]
		s = append(s, g.Kind+" "+g.Entry[strings.LastIndexByte(g.Entry, '/')+1:])
	}
	return strings.Join(s, ", ")
}

// echo answers each line of a connection after some work.
func echo(work func()) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			look(c)
			if _, err := r.ReadString('\n'); err != nil {
				return
			}
			work()
			io.WriteString(c, "pong\n")
		}
	}
}

func TestLoop(t *testing.T) {
	const conns, n = 4, 100
	work := func() { time.Sleep(200 * time.Microsecond) }
	type job struct{ done chan struct{} }
	for _, tc := range []struct {
		name   string
		run    func(t *testing.T)
		listed string // exactly
		count  int64
	}{
		{"a goroutine a connection", func(t *testing.T) {
			addr, stop := lineServer(t, echo(work))
			lines(t, addr, conns, n)
			stop()
		}, "loop request.lineServer.func1.1", conns * n},
		{"connections and a pool", func(t *testing.T) {
			jobs := make(chan job)
			for range 2 {
				go func() {
					for j := range jobs {
						work()
						close(j.done)
					}
				}()
			}
			addr, stop := lineServer(t, func(c net.Conn) {
				r := bufio.NewReader(c)
				for {
					look(c)
					if _, err := readLine(r); err != nil { // deeper than the wait for the pool
						return
					}
					j := job{make(chan struct{})}
					jobs <- j
					<-j.done
					io.WriteString(c, "pong\n")
				}
			})
			lines(t, addr, conns, n)
			stop()
			close(jobs)
		}, "loop request.lineServer.func1.1", conns * n},
		{"beside a little HTTP", func(t *testing.T) {
			addr, stop := lineServer(t, echo(work))
			s := httptest.NewServer(http.HandlerFunc(answer))
			for range 2 {
				if resp, err := http.Get(s.URL); err == nil {
					resp.Body.Close()
				}
			}
			lines(t, addr, conns, n)
			s.Close()
			stop()
		}, "loop request.lineServer.func1.1, net/http http.(*conn).serve", conns * n},
		{"a connection a request", func(t *testing.T) {
			addr, stop := lineServer(t, func(c net.Conn) {
				if _, err := bufio.NewReader(c).ReadString('\n'); err == nil {
					work()
					io.WriteString(c, "pong\n")
				}
			})
			lines(t, addr, conns, n, "WHYSTALL_TEST_ONESHOT=1")
			stop()
		}, "goroutine request.lineServer.func1.1", conns * n},
		{"a queue", func(t *testing.T) {
			jobs := make(chan job)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { consume(jobs, work) })
			}
			for range conns * n {
				time.Sleep(100 * time.Microsecond)
				jobs <- job{}
			}
			close(jobs)
			wg.Wait()
		}, "loop request.TestLoop.func6.1", conns * n},
		// The same closure begins readers, writers and the one that accepts.
		{"a launcher", func(t *testing.T) {
			var wg sync.WaitGroup
			launch := func(run func()) {
				wg.Add(1)
				go func() {
					defer wg.Done()
					run()
				}()
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			launch(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					out := make(chan string, 1)
					launch(func() { readLines(c, out, work) })
					launch(func() { writeLines(c, out) })
				}
			})
			// Nobody waits for a line that comes while the reader still hands the answer over: it
			// is one request with the last.
			lines(t, l.Addr(), conns, n, "WHYSTALL_TEST_PAUSE=5ms")
			l.Close()
			wg.Wait()
		}, "handed on request.TestLoop.func7.2.1", conns * n},
	} {
		t.Run(tc.name, func(t *testing.T) {
			early.Store(0)
			f, as := record(t, Options{}, func() { tc.run(t) })
			report(t, f, as)
			wellFormed(t, as)
			if got := listed(f); got != tc.listed {
				t.Errorf("listed %q, want %q", got, tc.listed)
			}
			if ids := shown(f); len(ids) > 0 {
				// The last round of each connection ends with it, and is no request. A goroutine's
				// life is one, whatever it waits for.
				few := int64(0)
				if g := f.Groups()[ids[0]]; g.Kind == "loop" && g.Count < tc.count {
					few = min(early.Load(), tc.count-g.Count)
					t.Logf("%d requests came early, %d may be missing for it", early.Load(), few)
				}
				near(t, "requests", f.Groups()[ids[0]].Count+few, tc.count)
			}
		})
	}
}

//go:noinline
func readLine(r *bufio.Reader) (string, error) { return r.ReadString('\n') }

//go:noinline
func readLines(c net.Conn, out chan<- string, work func()) {
	defer close(out)
	r := bufio.NewReader(c)
	for {
		look(c)
		if _, err := r.ReadString('\n'); err != nil {
			return
		}
		work()
		out <- "pong\n"
	}
}

//go:noinline
func writeLines(c net.Conn, out <-chan string) {
	defer c.Close()
	for s := range out {
		io.WriteString(c, s)
	}
}

//go:noinline
func consume[T any](jobs chan T, work func()) {
	for {
		var ok bool
		select {
		case _, ok = <-jobs:
			early.Add(1)
		default:
			_, ok = <-jobs
		}
		if !ok {
			return
		}
		work()
	}
}

// A loop around epoll_wait, of a program that does not leave its sockets to the runtime: from the
// wait's end to the next is a request, but not where it only looked.
func TestPolls(t *testing.T) {
	var text strings.Builder
	text.WriteString("goroutine L main.loop\n")
	at := 0
	for range 60 {
		fmt.Fprintf(&text, "\t%d syscall at syscall.EpollWait\n\t%d running\n", at, at+50)
		fmt.Fprintf(&text, "\t%d syscall at syscall.read<syscall.Read\n\t%d running\n", at+60, at+61)
		fmt.Fprintf(&text, "\t%d syscall at syscall.EpollWait\n\t%d running\n", at+80, at+81)
		at += 100
	}
	fmt.Fprintf(&text, "\t%d end\n", at)
	f, as := byHand(t, text.String(), Options{})
	if g := f.Groups(); len(g) != 1 || g[0].Entry != "main.loop" || g[0].Kind != KindLoop || !g[0].Listed {
		t.Fatalf("groups %+v", g)
	}
	if len(as) < 40 {
		t.Fatalf("%d requests", len(as))
	}
	for _, a := range as[:len(as)-1] {
		if d := a.End - a.Begin; d != 30 {
			t.Errorf("[%d,%d) lasts %d", a.Begin, a.End, d)
		}
	}
}
