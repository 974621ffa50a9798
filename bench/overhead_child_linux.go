package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof" // the Go trace is recorded as well
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// answer prints what f gives, once for each line on standard input, until that ends.
func answer(f func() string) error {
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		fmt.Println(f())
	}
	return nil
}

// serve is the server which is measured: it answers with a few hundred bytes of JSON.
func serve() error {
	var requests atomic.Int64
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"path": r.URL.Path, "agent": r.UserAgent(),
			"numbers": []int{1, 2, 3, 5, 8, 13}})
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(ln, nil)
	fmt.Printf("addr=%s\n", ln.Addr())
	return answer(func() string { return fmt.Sprintf("cpu=%d requests=%d", ownCPU(), requests.Load()) })
}

// askAll sends requests to url over 32 connections as fast as they are answered.
func askAll(url string) error {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	var requests atomic.Int64
	for range 32 {
		go func() {
			for {
				if resp, err := c.Get(url); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					requests.Add(1)
				}
			}
		}()
	}
	fmt.Println("up=1")
	return answer(func() string { return fmt.Sprintf("requests=%d", requests.Load()) })
}

// switches has a pair of threads on each CPU throw a byte to and fro, rate switches a second in
// all.
func switches(rate string) error {
	perSecond, err := strconv.Atoi(rate)
	if err != nil || perSecond < 1 {
		return fmt.Errorf("%q is no rate", rate)
	}
	cpus := runtime.NumCPU()
	// The threads wait in system calls about which the runtime does not know, so each keeps its P.
	runtime.GOMAXPROCS(4*cpus + 4)
	debug.SetGCPercent(-1)
	for cpu := range cpus {
		var to, fro [2]int
		if err := syscall.Pipe(to[:]); err != nil {
			return err
		}
		if err := syscall.Pipe(fro[:]); err != nil {
			return err
		}
		go func() {
			pin(cpu)
			for {
				move(syscall.SYS_READ, to[0])
				move(syscall.SYS_WRITE, fro[1])
			}
		}()
		go func() {
			pin(cpu)
			each := float64(perSecond) / float64(cpus) / 2 // of two switches
			for start, done := time.Now(), 0.0; ; {
				due := time.Since(start).Seconds() * each
				if due > done+each/10 {
					done = due - each/10 // it did not run for a while, and does not make up for that
				}
				for ; done < due; done++ {
					move(syscall.SYS_WRITE, to[1])
					move(syscall.SYS_READ, fro[0])
				}
				ts := syscall.NsecToTimespec(1e6)
				syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
			}
		}()
	}
	fmt.Println("up=1")
	return answer(func() string { return "up=1" })
}

func move(call uintptr, fd int) {
	var b [1]byte
	syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b)), 1)
}

// pin binds the calling goroutine's thread to a CPU.
func pin(cpu int) {
	runtime.LockOSThread()
	var mask [16]uint64
	mask[cpu/64%16] = 1 << (cpu % 64)
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
}

// helpers are the children which do not read a trace.
var helpers = map[string]func(arg string) error{
	"serve": func(string) error { return serve() }, "load": askAll, "switch": switches,
}
