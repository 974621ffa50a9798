// Package detect holds the causes that whystall knows: how each is found in the accounts, and the
// manual page that explains it. A detector is one file named for its cause: data, a function that
// claims time, and a function that puts what it was granted in words.
//
// The room refuses to correct an account, to claim more than one holds, and to call a setting a
// cause: only lost time, CPU or memory makes one. It says what it could not look at.
//
// The files in reading order:
//
//	detect.go                   Detector, Run, and the steps of a run; start here
//	scopes.go                   the rounds: slow requests, usual ones, the process; their floors
//	order.go                    the order in which detectors look, with the reasons
//	pass.go                     Pass: what a detector sees, and the verbs with which it speaks
//	board.go                    where claims meet: who is granted what, who is whose mechanism
//	pool.go                     the same where CPU or memory is claimed instead of requests' time
//	floors.go                   how much counts, for a fast service as well
//	bounds.go                   what a cause that is ruled out can cost at most
//	work.go                     claims of CPU time by samples
//	result.go                   what a detector said in all rounds; how findings are ranked
//	grade.go                    how sure a finding is
//	needs.go                    what a detector lacks, and what would bring it
//	manual.go, chapters.go      the manual, as whystall causes prints it
//	remedy.go                   the first remedy of a cause, for who has no measurement
//
// What several detectors share begins with shared_:
//
//	shared_text.go              numbers and names in words
//	shared_work.go              CPU time by samples: what work it was, and from where
//	shared_gc_process.go        frequent-gc of the process, whoever its requests are
//	shared_sites.go             where in the code calls were made, and files waited for
//	shared_kernel.go            the kernel's records: what is unseen, who had the CPUs
//	shared_holders.go           goroutines that wait for a P whose own thread was held up
//	shared_run_queue.go         the part of Go's run queue that work for nothing makes
//	shared_renewal.go           memory that is given back and touched anew
//	shared_by_shares.go         the same in sums, where trace and records have no common time
//	shared_nameless.go          stop-the-worlds that old traces do not name
//	shared_neighbours.go        who else had the CPUs
//	shared_quota.go             throttling that only cpu.stat counts: an ordinary user sees no more
//	shared_short_of_cpu.go      whether the process lacked CPU, where a trace alone must say
//	shared_late.go              netpoll-late, timer-late: the runtime notices late
//	shared_locks.go             lock-contention, logger-lock: locks of goroutines
//	shared_thread_locks.go      lock-contention: locks of threads
//	shared_convoy.go            lock-contention of a Go process whose work is not in requests
//	shared_tasks.go             runtimes of tasks, whose waits no thread shows
//
// All other files are causes, by name:
//
//	thread_churn.go, gomaxprocs_over_quota.go, gomaxprocs.go, cpu_steal.go, softirq.go,
//	tlb_shootdown.go, kernel_lock.go, spinning.go, runqueue_saturation.go, cpu_throttled.go,
//	cpu_contention.go, direct_reclaim.go, numa_balancing.go, mmap_lock.go, frequent_gc.go,
//	page_fault.go, disk_wait.go, syscall_stall.go, netpoll_late.go, timer_late.go,
//	stw_pause.go, sweep_assist.go, mark_assist.go, gc_queue.go, sched_latency.go,
//	logger_lock.go, thp_bloat.go, jvm_safepoint.go, interpreter_lock.go, lock_contention.go,
//	pool_exhaustion.go, event_loop.go
package detect
