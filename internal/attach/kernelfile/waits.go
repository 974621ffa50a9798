package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/sched"
)

// wait is what one thread sleeps in.
type wait struct {
	at    string // the kernel's function, the one that says most
	block sched.Block
	place string   // a server of a file system over the network; "": none
	page  string   // likewise, for a page of it that somebody else has locked
	fills bool     // a pipe, which is full
	cond  bool     // a condition variable of a module, in which its threads also rest
	io    bool     // a function is on the stack in which the kernel waits for blocks
	open  bool     // the journal's thread waits until nobody has the transaction open
	frees bool     // the kernel's own thread that frees memory: nobody's direct reclaim
	held  bool     // it frees memory, and on its way waits for what somebody else has locked
	asks  bool     // a program in user space, which the kernel itself started for an answer
	whole bool     // nothing that was cut off the stack can change what it waits for
	from  []string // who called the function at, the next ones: of a lock they say which one
}

// waitOf classifies a kernel stack, innermost function first.
func waitOf(functions []string) wait {
	var frames []kernel.Frame
	for _, f := range functions {
		frames = append(frames, kernel.Frame{Func: f})
	}
	w := wait{block: sched.BlockOf(frames), frees: slices.ContainsFunc(functions, freesMemory),
		whole: slices.ContainsFunc(functions, func(f string) bool { return startsStack(f) || decides(f) })}
	// What such a thread frees memory for is nobody's wait: it waits for what lies below.
	for n := len(frames) - 1; w.frees && n >= 0 && causeOf(w.block) == "direct-reclaim"; n-- {
		w.block = sched.BlockOf(frames[:n])
	}
	for _, f := range functions {
		name, _, _ := strings.Cut(f, ".")
		switch {
		case w.at == "" && !schedules(name):
			w.at = name
		case w.at != "" && len(w.from) < 2 && name != w.at && !takesLock(name):
			w.from = append(w.from, name)
		}
		if name == "pipe_write" || name == "anon_pipe_write" {
			w.at, w.fills = name, true
		}
		w.asks = w.asks || w.place == "" && asksHelper(name)
		if w.place == "" && !w.asks {
			w.place = remotePlace(name)
		}
		w.io = w.io || waitsForBlocks(name)
		w.cond = w.cond || strings.HasPrefix(name, "__cv_") || strings.HasPrefix(name, "cv_wait") ||
			strings.HasPrefix(name, "cv_timedwait")
		switch {
		case w.block != sched.BlockOther && w.block != sched.BlockUnknown:
		case moduleRests(name):
		case diskModule(name):
			w.block = sched.BlockDisk
		case strings.HasPrefix(name, "percpu_rwsem_") || strings.HasPrefix(name, "__percpu_down_"):
			w.block = sched.BlockKernelLock
		}
		// Who wants to write waits for this lock as long as the file system is frozen.
		// Before Linux 5.7 it sleeps as any other that waits for a rw-semaphore.
		if percpu := strings.HasPrefix(functions[0], "percpu_") || w.at == "percpu_rwsem_wait" ||
			w.at == "percpu_down_read" || w.at == name; percpu &&
			(name == "mnt_want_write" || name == "__sb_start_write" || name == "sb_start_write") {
			w.place = "a frozen file system (fsfreeze, or a snapshot that is being taken)"
		}
	}
	if w.at == "" && len(functions) > 0 {
		w.at = functions[0]
	}
	w.held = !w.frees && causeOf(w.block) == "direct-reclaim" && (locksPage(w.at) || locks(w.at))
	if w.asks || w.block == sched.BlockIdle && worksOn(functions, w.at) {
		w.block = sched.BlockOther
	}
	if w.place != "" && locksPage(w.at) {
		w.page, w.place, w.block = w.place, "", sched.BlockOther
	}
	if w.open = !w.io && w.at != "" && endsTransaction(w.at); w.open {
		w.block = sched.BlockOther
	}
	return w
}

// where is the function that a thread waits in, and of a lock who wants it.
func (w wait) where() string {
	if len(w.from) > 0 && takesLock(w.at) && (w.block == sched.BlockKernelLock || w.block == sched.BlockMmapLock) {
		return fmt.Sprintf("%s (called by %s)", w.at, strings.Join(w.from, ", by "))
	}
	return w.at
}

// blockWaits start the names of functions in which the kernel itself waits for blocks. A file
// system that waits without one of them waits for its journal or a lock: as a rule for a disk, too,
// which another thread waits for, but a deadlock looks the same.
var blockWaits = []string{"io_schedule", "bit_wait_io", "folio_wait_", "wait_on_page_",
	"__lock_page", "lock_page", "__folio_lock", "sleep_on_page", "sleep_on_buffer", "sync_page", "sync_buffer",
	"blk_", "submit_bio_wait", "wbt_wait", "rq_qos_", "__rq_qos_", "get_request",
	"__wait_on_buffer", "wait_on_buffer", "__sync_dirty_buffer", "balance_dirty_pages", "dio_await",
	"do_blockdev_direct_IO",
	"filemap_fdatawait", "__filemap_fdatawait", "file_fdatawait", "filemap_write_and_wait",
	"file_write_and_wait", "wb_wait_for_completion", "wait_sb_inodes", "blkdev_issue_flush",
	"xfs_buf_iowait", "xlog_wait_on_iclog", "xfs_log_force", "_xfs_log_force", "__xfs_log_force",
	"iomap_dio_rw", "__iomap_dio_rw", "swap_read", "zio_wait", "md_", "raid1_", "raid10_", "raid5_", "dm_", "bch_"}

func waitsForBlocks(name string) bool {
	return slices.ContainsFunc(blockWaits, func(p string) bool { return strings.HasPrefix(name, p) })
}

// remotePlace says whose answer a function of a network file system waits for.
func remotePlace(name string) string {
	for prefix, place := range map[string]string{
		"nfs_": "the NFS server", "nfs4_": "the NFS server", "nfs3_": "the NFS server",
		"rpc_": "the NFS server", "__rpc_": "the NFS server",
		"ceph_": "the Ceph cluster", "cifs_": "the SMB server", "smb2_": "the SMB server", "SMB2_": "the SMB server",
		"fuse_":               "the program behind a FUSE file system",
		"request_wait_answer": "the program behind a FUSE file system",
		"__fuse_request":      "the program behind a FUSE file system",
		"gfs2_":               "the cluster's lock manager", "dlm_": "the cluster's lock manager",
		"p9_client": "the 9P server", "drbd_": "the other node of DRBD",
	} {
		if strings.HasPrefix(name, prefix) && name != "rpc_async_schedule" {
			return place
		}
	}
	return ""
}

// moduleRests knows functions in which threads of a module wait for work.
func moduleRests(name string) bool {
	return name == "txg_thread_wait" || name == "zthr_procedure" || name == "spa_async_thread"
}

// diskModule knows file systems and block drivers outside of the kernel's own tree, or stacked.
func diskModule(name string) bool {
	for _, p := range []string{"zio_", "txg_", "zil_", "dmu_", "zfs_", "spa_", "md_", "raid5_",
		"raid1_", "raid10_", "dm_", "bch_", "btree_", "vdev_", "reiserfs_", "ocfs2_"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// causeOf is the cause that a kind of wait is the mechanism of; "" for a wait that is no fault.
func causeOf(b sched.Block) string {
	switch b {
	case sched.BlockDisk:
		return "disk-wait"
	case sched.BlockKernelLock:
		return "kernel-lock"
	case sched.BlockMmapLock:
		return "mmap-lock"
	case sched.BlockReclaim, sched.BlockMemcg, sched.BlockCompaction:
		return "direct-reclaim"
	case sched.BlockNUMA:
		return "numa-balancing"
	case sched.BlockTLB:
		return "tlb-shootdown"
	case sched.BlockFault:
		return "page-fault"
	}
	return ""
}

func waitWords(w wait) string {
	if w.place != "" {
		return w.place
	}
	if w.page != "" {
		return "a page that somebody else has locked, of a file system that depends on " + w.page
	}
	if w.fills && w.block == sched.BlockPipe {
		return "room in a pipe"
	}
	if w.asks {
		return "a program in user space that the kernel has started for an answer (a user-mode helper)"
	}
	if w.held {
		what := "a lock that somebody else holds"
		if locksPage(w.at) {
			what = "a page that somebody else has locked"
		}
		return what + map[bool]string{true: ", while it compacts memory",
			false: ", while it frees memory"}[w.block == sched.BlockCompaction]
	}
	if w.open {
		return "other tasks to close a transaction of its file system (no disk on its stack)"
	}
	switch w.block {
	case sched.BlockDisk:
		if w.frees {
			return "the disk, or the file system over a network, that a page is on (the kernel's own thread that frees memory)"
		}
		if !w.io {
			return "the journal or a lock of its file system"
		}
		if w.at == "blk_mq_get_tag" || w.at == "get_request_wait" {
			return "a free place in a disk's full queue of requests"
		}
		if !w.whole && waitsForPage(w.at) {
			return "the disk, or a file system over a network (which of them, no function here says)"
		}
		return "the disk"
	case sched.BlockKernelLock:
		return "a lock of the kernel"
	case sched.BlockMmapLock:
		return "the lock of an address space (mmap_lock)"
	case sched.BlockReclaim:
		return "memory that it frees itself"
	case sched.BlockMemcg:
		return "memory of its cgroup"
	case sched.BlockCompaction:
		return "memory that it compacts"
	case sched.BlockNUMA:
		return "a migration between NUMA nodes"
	case sched.BlockTLB:
		return "other CPUs to flush their TLBs"
	case sched.BlockFault:
		return "a page"
	case sched.BlockFutex:
		return "a futex (a lock or a condition of the program)"
	case sched.BlockNetwork:
		if strings.HasPrefix(w.at, "do_poll") || strings.HasPrefix(w.at, "do_select") ||
			strings.HasPrefix(w.at, "do_sys_poll") || strings.HasPrefix(w.at, "poll_schedule") {
			return "a socket, a pipe or another file that it polls"
		}
		return "a socket"
	case sched.BlockTimer:
		return "a timer"
	case sched.BlockPipe:
		return "a pipe or a terminal"
	case sched.BlockChild:
		return "a child process"
	case sched.BlockIdle:
		return "work (an idle kernel thread)"
	}
	if w.cond {
		return "a condition of a kernel module, in which its threads rest, too"
	}
	return unknownWait
}

// unknownWait is what is waited for where no table knows the functions.
const unknownWait = "something that is not known here"

// waitCount is how many threads wait for the same.
type waitCount struct {
	words string
	wait  wait
	n     int
	in    []string // functions, the most frequent first
}

func countWaits(all []wait) []waitCount {
	var out []waitCount
	in := map[string]map[string]int{}
	for _, w := range all {
		words := waitWords(w)
		i := slices.IndexFunc(out, func(c waitCount) bool { return c.words == words })
		if i < 0 {
			i = len(out)
			out = append(out, waitCount{words: words, wait: w})
			in[words] = map[string]int{}
		}
		out[i].n++
		if w.at != "" {
			in[words][w.where()]++
		}
	}
	for i := range out {
		out[i].in = attach.Largest(in[out[i].words])
	}
	lock := func(c waitCount) int {
		if b := c.wait.block; c.wait.place == "" && (b == sched.BlockKernelLock || b == sched.BlockMmapLock) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out,
		func(a, b waitCount) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(lock(a), lock(b))) })
	return out
}

func (c waitCount) String() string {
	var in []string
	for _, f := range c.in[:min(3, len(c.in))] {
		in = append(in, printed(f))
	}
	if len(in) == 0 {
		return fmt.Sprintf("%s, most likely for %s (no function on the stacks is sure)",
			plural(c.n, "thread waits", "threads wait"), c.words)
	}
	return fmt.Sprintf("%s for %s, in %s", plural(c.n, "thread waits", "threads wait"), c.words, strings.Join(in, ", "))
}

// waitSigns says what threads' waits mean. Where long is set, each has been measured to last: the
// kernel's own report of a task that hung.
//
// A lock whose holder waits for the disk is the disk's: where both are there, the lock's waits are
// a mechanism and no cause of their own. Alone they are a candidate: nobody says what the holder
// does. The same holds for the journal of a file system.
func waitSigns(counts []waitCount, total int, long bool) (signs []attach.Sign, outside []string) {
	var causes []string
	blocks := slices.ContainsFunc(counts, func(c waitCount) bool { return c.wait.io && !c.wait.frees })
	open := slices.ContainsFunc(counts, func(c waitCount) bool { return c.wait.open })
	whole := slices.ContainsFunc(counts, func(c waitCount) bool { return c.wait.whole })
	held := slices.ContainsFunc(counts, func(c waitCount) bool { return c.wait.held })
	for _, c := range counts {
		if c.wait.place != "" {
			outside = append(outside, c.wait.place)
			signs = append(signs, attach.Sign{Grade: attach.Outside, Where: c.wait.place,
				Share: ratio(float64(c.n), float64(total)), Proof: []string{c.String()}})
			continue
		}
		if cause := causeOf(c.wait.block); cause != "" && !(cause == "disk-wait" && open && !blocks && !c.wait.frees) {
			if !slices.Contains(causes, cause) {
				causes = append(causes, cause)
				signs = append(signs, attach.Sign{Cause: cause, Grade: attach.Candidate,
					Share: ratio(float64(c.n), float64(total)), Proof: []string{c.String()}})
			}
		}
	}
	lock := func(c string) bool { return c == "kernel-lock" || c == "mmap-lock" }
	other := slices.ContainsFunc(causes, func(c string) bool { return !lock(c) }) || len(outside) > 0
	for i := range signs {
		s := &signs[i]
		switch {
		case s.Grade == attach.Outside:
		case lock(s.Cause) && other:
			s.BecauseOf = firstOther(causes, lock)
		case s.Cause == "disk-wait" && !blocks, !whole:
		case s.Cause == "direct-reclaim" && held: // what the holder waits for is the cause
		case long && !lock(s.Cause) &&
			!slices.ContainsFunc(causes, func(c string) bool { return !lock(c) && c != s.Cause }) && len(outside) == 0:
			s.Grade, s.Sure = attach.Found, finding.Possible
		}
	}
	return signs, outside
}

func firstOther(causes []string, not func(string) bool) string {
	for _, c := range causes {
		if !not(c) {
			return c
		}
	}
	return ""
}

// idleOnly reports whether no wait is one that costs anybody time, as far as its place tells.
func idleOnly(counts []waitCount) bool {
	return !slices.ContainsFunc(counts, func(c waitCount) bool {
		return c.wait.place != "" || c.wait.fills || causeOf(c.wait.block) != "" ||
			c.wait.block == sched.BlockOther || c.wait.block == sched.BlockUnknown
	})
}
