package perfevent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Opening goes:
//
//  1. Open one ring a CPU, which belongs to an idle event of our own main thread: that lives as
//     long as we do.
//  2. List the target's threads, and open for each its events on each CPU, all writing into the
//     CPU's ring. Threads that they create inherit the events.
//  3. List again, until no more threads turn up that were created meanwhile. Such a thread may have
//     inherited events as well: only the records of its own events are used.
//  4. Enable all of them.
//
// With AllTasks there is one set of events a CPU, and no list.

const (
	defaultRing = 2 << 20  // of a CPU
	ringsTotal  = 16 << 20 // of all CPUs together
	leastRing   = 128 << 10
	maxEvents   = 1 << 15 // the kernel keeps some KiB for each
	maxPasses   = 8
)

// Reader reads what the kernel records. It is for one goroutine; another may call Close once Read
// is done.
type Reader struct {
	o       Options
	cpus    []int
	owners  []int // fds of the rings' events
	fds     []int
	rings   []*ring
	mapped  [][]byte
	events  map[uint64]opened
	late    map[uint32]bool // threads that may have two sets of events: their own and inherited
	missing []string
	before  int64
	horizon int64
	rec     Record
	format  format

	children bool // processes that the target forks inherit as well: unavoidable before Linux 5.13
}

const inheritThread = 1 << 35

// opened is an event that we opened, and the thread it is for.
type opened struct {
	event Event
	tid   uint32
}

// regsOf has the registers that lead through a stack, by GOARCH.
var regsOf = map[string]uint64{"amd64": regsAMD64, "arm64": regsARM64}

const maxStackBytes = 16 << 10

func formatOf(o Options) format {
	return format{chains: o.Stacks || o.SwitchStacks, stacks: o.StackBytes > 0 &&
		o.StackBytes <= maxStackBytes && o.StackBytes%8 == 0 && regsOf[runtime.GOARCH] != 0}
}

// Open starts to record. An error says what would permit it.
func Open(o Options) (*Reader, error) {
	r := &Reader{o: o, events: map[uint64]opened{}, late: map[uint32]bool{}, format: formatOf(o)}
	if err := r.open(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Probe returns nil if Open would work: it opens one of each event that is asked for, and closes
// it.
func Probe(o Options) error {
	r := &Reader{o: o, events: map[uint64]opened{}, format: formatOf(o)}
	defer r.Close()
	cpus, err := onlineCPUs()
	if err != nil {
		return err
	}
	r.cpus = cpus[:1]
	return r.openAll(r.task(o.PID))
}

// CPUs lists the CPUs that are recorded.
func (r *Reader) CPUs() []int { return r.cpus }

// Missing says in words what was asked for and is not recorded.
func (r *Reader) Missing() []string { return r.missing }

func (r *Reader) task(tid int) int {
	if r.o.AllTasks {
		return -1
	}
	return tid
}

func (r *Reader) open() (err error) {
	if r.cpus, err = onlineCPUs(); err != nil {
		return err
	}
	if err := r.openRings(); err != nil {
		return err
	}
	if r.o.AllTasks {
		err = r.openAll(-1)
	} else {
		err = r.openThreads()
	}
	if err != nil {
		return err
	}
	r.before = now()
	for _, fd := range r.fds {
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("enable perf event: %w", err)
		}
	}
	return nil
}

func (r *Reader) openRings() error {
	size := r.o.RingBytes
	if size == 0 {
		for size = defaultRing; size*len(r.cpus) > ringsTotal && size > leastRing; {
			size /= 2
		}
	}
	if size&(size-1) != 0 || size < os.Getpagesize() || size > 1<<28 {
		return fmt.Errorf("open perf events: ring of %d bytes: want a power of two of at least a page", size)
	}
	for _, cpu := range r.cpus {
		a := r.attr(None, uint32(min(size/4, 1<<20)))
		fd, err := unix.PerfEventOpen(a, os.Getpid(), cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return refused("open perf event", r.o, err)
		}
		r.owners = append(r.owners, fd)
		b, err := unix.Mmap(fd, 0, os.Getpagesize()+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		// Locked memory is limited for unprivileged users: kernel.perf_event_mlock_kb for each CPU,
		// less what their other processes have locked.
		for errors.Is(err, unix.EPERM) && len(r.rings) == 0 && size > 8*os.Getpagesize() {
			size /= 2
			b, err = unix.Mmap(fd, 0, os.Getpagesize()+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
		if err != nil {
			return fmt.Errorf("map perf ring of %d bytes: %w: kernel.perf_event_mlock_kb or the limit of locked memory is too low, or another recorder runs", size, err)
		}
		r.mapped = append(r.mapped, b)
		meta := (*unix.PerfEventMmapPage)(unsafe.Pointer(&b[0]))
		r.rings = append(r.rings, &ring{head: &meta.Data_head, tail: &meta.Data_tail, data: b[os.Getpagesize():]})
	}
	return nil
}

// attr describes an event. watermark is for a ring's owner: how many bytes wake a reader.
func (r *Reader) attr(e Event, watermark uint32) *unix.PerfEventAttr {
	a := &unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Config:      unix.PERF_COUNT_SW_DUMMY,
		Sample_type: sampleType,
		Bits:        unix.PerfBitDisabled | unix.PerfBitSampleIDAll | unix.PerfBitUseClockID | unix.PerfBitExcludeHv | unix.PerfBitExcludeGuest,
		Clockid:     unix.CLOCK_MONOTONIC,
	}
	// If the user may not look at the kernel, nothing of it may be asked for.
	if !r.o.Kernel {
		a.Bits |= unix.PerfBitExcludeKernel
	}
	if r.format.chains {
		a.Sample_type |= sampleCallchain
	}
	if r.format.stacks {
		a.Sample_type |= sampleRegsUser | sampleStackUser
		a.Sample_regs_user = regsOf[runtime.GOARCH]
		a.Sample_stack_user = uint32(r.o.StackBytes)
	}
	if !r.o.Kernel {
		a.Bits |= unix.PerfBitExcludeCallchainKernel
	}
	if e == None {
		a.Bits |= unix.PerfBitWatermark
		a.Wakeup = watermark
		return a
	}
	if !r.o.AllTasks {
		a.Bits |= unix.PerfBitInherit
		if !r.children {
			a.Bits |= inheritThread
		}
	}
	switch e {
	case switchRecord:
		a.Bits |= unix.PerfBitContextSwitch | unix.PerfBitTask | unix.PerfBitComm | unix.PerfBitCommExec
	case CPUClock:
		a.Config, a.Sample = unix.PERF_COUNT_SW_CPU_CLOCK, r.o.ClockNS
		a.Bits |= unix.PerfBitExcludeIdle
	case MajorFault:
		a.Config, a.Sample = unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1
	case MinorFault:
		a.Config, a.Sample = unix.PERF_COUNT_SW_PAGE_FAULTS_MIN, r.o.MinorFaults
	case SwitchOut:
		a.Config, a.Sample = unix.PERF_COUNT_SW_CONTEXT_SWITCHES, 1
	}
	return a
}

// wanted lists the events that the options ask for.
func (r *Reader) wanted() []Event {
	var l []Event
	add := func(e Event, want bool) {
		if want {
			l = append(l, e)
		}
	}
	add(switchRecord, r.o.Switches)
	add(SwitchOut, r.o.SwitchStacks)
	add(MajorFault, r.o.MajorFaults)
	add(MinorFault, r.o.MinorFaults > 0)
	add(CPUClock, r.o.ClockNS > 0)
	return l
}

// openAll opens the events of one thread on every CPU; tid -1 stands for all threads.
func (r *Reader) openAll(tid int) error {
	for i, cpu := range r.cpus {
		for _, e := range r.wanted() {
			fd, err := unix.PerfEventOpen(r.attr(e, 0), tid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
			if errors.Is(err, unix.EINVAL) && !r.children && !r.o.AllTasks {
				r.children = true
				fd, err = unix.PerfEventOpen(r.attr(e, 0), tid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
			}
			if err != nil {
				if errors.Is(err, unix.ENODEV) && len(r.cpus) > 1 {
					continue // the CPU went away
				}
				return refused("open perf event", r.o, err)
			}
			r.fds = append(r.fds, fd)
			if len(r.owners) > i {
				if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, r.owners[i]); err != nil {
					return fmt.Errorf("join perf ring: %w", err)
				}
			}
			id, err := eventID(fd)
			if err != nil {
				return fmt.Errorf("read perf event's id: %w", err)
			}
			r.events[id] = opened{e, uint32(max(tid, 0))}
		}
	}
	return nil
}

func (r *Reader) openThreads() error {
	seen := map[int]bool{}
	each := len(r.cpus) * len(r.wanted())
	for pass := range maxPasses {
		tids, err := threads(r.o.PID)
		if err != nil {
			return err
		}
		fresh := 0
		for i, tid := range tids {
			if seen[tid] {
				continue
			}
			if len(r.fds)+each > maxEvents {
				r.missing = append(r.missing,
					fmt.Sprintf("%d of %d threads: %d events are open already", len(tids)-i, len(tids), len(r.fds)))
				return nil
			}
			had := len(r.fds)
			err := r.openAll(tid)
			switch {
			case errors.Is(err, unix.ESRCH): // the thread ended
				r.drop(had)
			case errors.Is(err, unix.EMFILE) && len(seen) > 0:
				r.drop(had)
				r.missing = append(r.missing,
					fmt.Sprintf("%d of %d threads: no more files may be open (ulimit -n)", len(tids)-i, len(tids)))
				return nil
			case err != nil:
				return err
			}
			seen[tid] = true
			fresh++
			if pass > 0 {
				r.late[uint32(tid)] = true
			}
		}
		if fresh == 0 {
			break
		}
	}
	if len(r.fds) == 0 {
		return fmt.Errorf("open perf events of process %d: it has ended", r.o.PID)
	}
	return nil
}

func (r *Reader) drop(to int) {
	for _, fd := range r.fds[to:] {
		if id, err := eventID(fd); err == nil {
			delete(r.events, id)
		}
		unix.Close(fd)
	}
	r.fds = r.fds[:to]
}

// Stop ends the recording of one kind of event for now, also for threads created since.
func (r *Reader) Stop(e Event) error { return r.turn(e, unix.PERF_EVENT_IOC_DISABLE) }

// Start starts it again. When Open returns, all that was asked for is on.
func (r *Reader) Start(e Event) error { return r.turn(e, unix.PERF_EVENT_IOC_ENABLE) }

func (r *Reader) turn(e Event, request uint) error {
	for _, fd := range r.fds {
		id, err := eventID(fd)
		if err != nil {
			return fmt.Errorf("read perf event's id: %w", err)
		}
		if r.events[id].event == e {
			if err := unix.IoctlSetInt(fd, request, 0); err != nil {
				return fmt.Errorf("turn perf event on or off: %w", err)
			}
		}
	}
	return nil
}

// Wait returns when a ring of one of the readers is a quarter full, or after d.
func Wait(d time.Duration, readers ...*Reader) error {
	var fds []unix.PollFd
	for _, r := range readers {
		for _, fd := range r.owners {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	_, err := unix.Poll(fds, int(d.Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}

// Read calls f with what has been recorded, CPU by CPU, each in the order of time, except that
// samples may come some us late.
func (r *Reader) Read(f func(*Record)) error {
	at := now()
	var first error
	for _, g := range r.rings {
		err := g.read(func(b []byte) {
			err := decode(b, r.format, &r.rec)
			if err != nil {
				if !errors.Is(err, errSkip) && first == nil {
					first = err
				}
				return
			}
			ev := r.events[r.rec.ID]
			if len(r.late) > 0 && r.late[r.rec.TID] && ev.tid != r.rec.TID && r.rec.Kind != Lost &&
				r.rec.Kind != LostSamples {
				return // its own events bring the record as well
			}
			r.rec.Event = None
			if r.rec.Kind == Sample {
				r.rec.Event = ev.event
			}
			f(&r.rec)
		})
		if err != nil && first == nil {
			first = err
		}
	}
	// What was recorded before the last reading started has been written by now, unless its CPU
	// stood still for that long.
	r.horizon, r.before = r.before, at
	return first
}

// Horizon is the time before which Read will bring nothing more.
func (r *Reader) Horizon() int64 { return r.horizon }

// Close ends the recording.
func (r *Reader) Close() error {
	for _, fd := range r.fds {
		unix.Close(fd)
	}
	for _, b := range r.mapped {
		unix.Munmap(b)
	}
	for _, fd := range r.owners {
		unix.Close(fd)
	}
	r.fds, r.mapped, r.owners, r.rings = nil, nil, nil, nil
	return nil
}

func eventID(fd int) (uint64, error) {
	var id uint64
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_ID, uintptr(unsafe.Pointer(&id)))
	if errno != 0 {
		return 0, errno
	}
	return id, nil
}

func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

func threads(pid int) ([]int, error) {
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return nil, fmt.Errorf("list threads of process %d: %w", pid, err)
	}
	var tids []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, n)
		}
	}
	slices.Sort(tids)
	return tids, nil
}

// onlineCPUs reads the list from /sys: runtime.NumCPU counts only the CPUs that we may run on.
func onlineCPUs() ([]int, error) {
	const name = "/sys/devices/system/cpu/online"
	b, err := os.ReadFile(name)
	if err != nil {
		all := make([]int, runtime.NumCPU())
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	cpus, err := parseCPUs(strings.TrimSpace(string(b)))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return cpus, nil
}

// refused adds to an error what would permit the event.
func refused(what string, o Options, err error) error {
	if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("%s: this kernel has none: %w", what, err)
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	want := 2
	switch {
	case o.AllTasks:
		want = 0
	case o.Kernel:
		want = 1
	}
	is := "not readable"
	if b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); err == nil {
		is = strings.TrimSpace(string(b))
	}
	if n, e := strconv.Atoi(is); e == nil && n <= want {
		return fmt.Errorf("%s: not permitted, though kernel.perf_event_paranoid is %s: another user's process, or a container's seccomp filter: run as root, or give the container CAP_PERFMON: %w", what, is, err)
	}
	return fmt.Errorf("%s: not permitted, kernel.perf_event_paranoid is %s: run as root, or permit it: sysctl kernel.perf_event_paranoid=%d: %w", what, is, want, err)
}
