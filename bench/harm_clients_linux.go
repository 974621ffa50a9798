package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// connections is how many requests may be under way at once.
const connections = 64

// pacedClients is the child that asks a server at addr for /work at the rate which its standard
// input says, and tells what its clients felt.
//
//	rate 512.5
//	window FROM TO   in ns of CLOCK_MONOTONIC
//	waiting
func pacedClients(addr string) error {
	debug.SetGCPercent(-1) // nothing here is garbage but what the log keeps
	urgent := runFirst()
	p := newPace(machineClock{})
	for range connections {
		c := &keepAlive{addr: addr}
		go p.client(context.Background(), c.ask)
	}
	go func() {
		runtime.LockOSThread()
		p.run(context.Background())
	}()
	fmt.Printf("up=1 urgent=%v\n", urgent)
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		f := strings.Fields(s.Text())
		switch {
		case len(f) == 2 && f[0] == "rate":
			r, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return err
			}
			p.setRate(r)
			fmt.Println("{}")
		case len(f) == 3 && f[0] == "window":
			from, err := strconv.ParseInt(f[1], 10, 64)
			to, err2 := strconv.ParseInt(f[2], 10, 64)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			json.NewEncoder(os.Stdout).Encode(p.log.window(from, to, monotonicNS()))
		default:
			json.NewEncoder(os.Stdout).Encode(felt{Due: p.log.waiting()})
		}
	}
	return nil
}

// runFirst has all threads of this process run before others, as if they were on a machine of their
// own. It reports whether that was permitted.
func runFirst() bool {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false
	}
	const roundRobin = 2
	priority := int32(10)
	ok := true
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(tid), roundRobin,
			uintptr(unsafe.Pointer(&priority)))
		ok = ok && errno == 0
	}
	return ok
}

// machineClock is CLOCK_MONOTONIC. It sleeps in the kernel: the runtime's timers come up to a
// millisecond late.
type machineClock struct{}

func (machineClock) now() int64 { return monotonicNS() }

func (machineClock) until(at int64) {
	for wait := at - monotonicNS(); wait > 0; wait = at - monotonicNS() {
		ts := syscall.NsecToTimespec(wait)
		syscall.Nanosleep(&ts, nil)
	}
}

func monotonicNS() int64 {
	var ts syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// keepAlive is one connection, which is made again after a failure.
type keepAlive struct {
	addr string
	conn net.Conn
	in   *bufio.Reader
}

func (c *keepAlive) ask() (err error) {
	if c.conn == nil {
		if c.conn, err = net.Dial("tcp", c.addr); err != nil {
			time.Sleep(10 * time.Millisecond)
			return err
		}
		c.in = bufio.NewReader(c.conn)
	}
	if err = c.exchange(); err != nil {
		c.conn.Close()
		c.conn = nil
	}
	return err
}

func (c *keepAlive) exchange() error {
	c.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c.conn, "GET /work HTTP/1.1\r\nHost: bench\r\n\r\n"); err != nil {
		return err
	}
	length := 0
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			length, _ = strconv.Atoi(strings.TrimSpace(v))
		}
	}
	_, err := c.in.Discard(length)
	return err
}

// fetchPage is the child that gets a page of the server when it is told to, and throws it away. It
// ends with its standard input, which closes the connection and so ends a trace.
func fetchPage(url string) error {
	fmt.Println("up=1")
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() {
		return nil
	}
	go func() {
		resp, err := http.Get(url)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		if err != nil || resp.StatusCode != http.StatusOK {
			fmt.Fprintln(os.Stderr, "bench: fetch:", url, err)
			os.Exit(statusFailed)
		}
	}()
	in.Scan()
	return nil
}

func init() {
	helpers["clients"], helpers["fetch"] = pacedClients, fetchPage
}
