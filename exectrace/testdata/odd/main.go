// Odd makes a short trace with what a plain server's has not: CPU samples, logs, GOMAXPROCS changes, stop-the-worlds of
// all kinds, many Ps, syscalls that block, sleep, Gosched, closed channels.
package main

import (
	"bytes"
	"context"
	"io/ioutil"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync"
	"syscall"
	"time"
)

var sink [][]byte

func main() {
	runtime.GOMAXPROCS(8)
	f, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	var prof bytes.Buffer
	pr, pw, _ := os.Pipe()
	go func() { select {} }()
	go func() { b := make([]byte, 1); syscall.Read(int(pr.Fd()), b) }()
	time.Sleep(10 * time.Millisecond)
	if err := pprof.StartCPUProfile(&prof); err != nil {
		panic(err)
	}
	if err := trace.Start(f); err != nil {
		panic(err)
	}
	ctx, task := trace.NewTask(context.Background(), "odd")
	var wg sync.WaitGroup
	for i := 0; i < 6; i++ {
		i := i
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer trace.StartRegion(ctx, "worker").End()
			end := time.Now().Add(300 * time.Millisecond)
			for n := 0; time.Now().Before(end); n++ {
				for k := 0; k < 200000; k++ {
					n += k & 1
				}
				if i == 0 {
					b := make([]byte, 1<<16)
					sink = append(sink, b)
				}
				if i == 1 {
					ts := syscall.Timespec{Nsec: 3e6}
					syscall.Nanosleep(&ts, nil)
				}
				if i == 2 {
					ioutil.ReadFile("/proc/self/stat")
					runtime.Gosched()
				}
				if i == 3 {
					trace.Log(ctx, "round", "message "+strconv.Itoa(n)+" with a unique text")
					time.Sleep(time.Millisecond)
				}
			}
		}()
	}
	for i := 0; i < 4; i++ {
		time.Sleep(30 * time.Millisecond)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		runtime.GOMAXPROCS(3 + i)
		runtime.GC()
		pprof.Lookup("goroutine").WriteTo(ioutil.Discard, 0)
	}
	pw.Write([]byte("x"))
	wg.Wait()
	_, sub := trace.NewTask(ctx, "part")
	sub.End()
	task.End()
	trace.Stop()
	pprof.StopCPUProfile()
	f.Close()
}
