package profiler

import "strings"

// waitKind is what a system call, or a library's function, waits for.
type waitKind int

const (
	waitNothing waitKind = iota // it computes, or is not known to wait
	waitIdle                    // for work or for time to pass: nothing is lost
	waitLock                    // a futex: a lock, or a pool's thread that waits for work
	waitSync                    // for a disk to have written
	waitDisk                    // for a disk, if a file's pages are not in memory
	waitNetwork                 // for a peer
	waitChild                   // for a process
)

var callWaits = func() map[string]waitKind {
	m := map[string]waitKind{}
	for kind, names := range map[waitKind]string{
		waitIdle: `epoll_wait epoll_pwait epoll_pwait2 poll ppoll select _newselect pselect6 pselect nanosleep clock_nanosleep pause rt_sigsuspend
			rt_sigtimedwait sigsuspend io_getevents io_pgetevents io_uring_enter accept accept4 restart_syscall sleep usleep kevent flock mq_timedreceive
			msgrcv inotify_read`,
		waitLock: `futex futex_wait futex_waitv semtimedop semop _umtx_op pthread_mutex_lock pthread_cond_wait sem_wait`,
		waitSync: `fsync fdatasync sync syncfs sync_file_range msync io_submit`,
		waitDisk: `pread pread64 preadv preadv2 pwrite pwrite64 pwritev pwritev2 open openat openat2 stat lstat newfstatat statx unlink unlinkat
			rename renameat getdents getdents64 truncate ftrunctate fallocate mkdir rmdir readlink access close`,
		waitNetwork: "recvfrom recvmsg recvmmsg recv sendto sendmsg sendmmsg connect",
		waitChild:   "wait4 waitid waitpid wait vfork",
	} {
		for _, name := range strings.Fields(names) {
			m[name] = kind
		}
	}
	return m
}()
