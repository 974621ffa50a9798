// Numa-balancing joins tables in memory, with workers on every CPU. What a worker reads is on any
// of the nodes. Now and then the kernel unmaps pages to see which threads use them, and moves the
// pages to the nodes of these threads.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"github.com/whystall/whystall/lab/witness"
)

const (
	mpolBind       = 2
	madvNoHugePage = 15
)

func main() {
	if err := join(); err != nil {
		fmt.Fprintln(os.Stderr, "numa-balancing:", err)
		os.Exit(1)
	}
}

func join() error {
	mib := flag.Int("mib", 64, "size of the table")
	bind := flag.Bool("bind", false, "use the CPUs and the memory of node 0 only")
	fresh := flag.Int("fresh", 0, "KiB that a worker takes from the system for each unit of work, and gives back")
	flag.Parse()
	if *bind && os.Getenv("LAB_BOUND") == "" {
		return bound()
	}
	// Outside the heap and in small pages: when one node takes a page, workers on the others fault
	// for it.
	mem, err := syscall.Mmap(-1, 0, *mib<<20, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("map the table: %w", err)
	}
	if err := syscall.Madvise(mem, madvNoHugePage); err != nil {
		return fmt.Errorf("ask for small pages: %w", err)
	}
	table := unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), len(mem)/8)
	for i := range table {
		table[i] = uint64(i)
	}
	units := witness.NewSeries("units of 100 000 lookups")
	for range runtime.NumCPU() {
		go func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
			sum := uint64(0)
			for {
				begin := time.Now()
				if err := touch(*fresh << 10); err != nil {
					fmt.Fprintln(os.Stderr, "numa-balancing:", err)
					return
				}
				for range 100000 {
					sum += table[r.Uint64N(uint64(len(table)))]
				}
				units.Add(begin, nil)
				sink(sum)
			}
		}()
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(ln, nil)
	witness.Ready(os.Stdout)
	return witness.Serve(os.Stdin, os.Stdout, units)
}

// touch takes memory, causes a fault on each page, and gives the memory back.
func touch(size int) error {
	if size == 0 {
		return nil
	}
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("map a buffer: %w", err)
	}
	for i := 0; i < size; i += 4096 {
		mem[i] = 1
	}
	return syscall.Munmap(mem)
}

//go:noinline
func sink(uint64) {}

// bound starts the program again, bound to node 0, as the threads which exist cannot be bound in
// one step.
func bound() error {
	runtime.LockOSThread()
	b, err := os.ReadFile("/sys/devices/system/node/node0/cpumap")
	if err != nil {
		return err
	}
	var cpus uint64
	if _, err := fmt.Sscanf(string(b), "%x", &cpus); err != nil {
		return fmt.Errorf("read the CPUs of node 0: %q", b)
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(cpus),
		uintptr(unsafe.Pointer(&cpus))); e != 0 {
		return fmt.Errorf("bind to the CPUs of node 0: %w", e)
	}
	node := uint64(1)
	if _, _, e := syscall.RawSyscall(syscall.SYS_SET_MEMPOLICY, mpolBind, uintptr(unsafe.Pointer(&node)), 8); e != 0 {
		return fmt.Errorf("bind to the memory of node 0: %w", e)
	}
	return syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), "LAB_BOUND=1"))
}
