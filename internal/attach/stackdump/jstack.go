package stackdump

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// jstack reads the JVM's thread dumps: jstack, jcmd Thread.print, and what SIGQUIT prints, from
// JDK 5 to 24. Locks have addresses and holders there.
var jstack = &attach.Kind{
	Name: "jstack",
	Hints: []string{"Full thread dump", "\"", "java.lang.Thread.State: ", "\tat ",
		"Found one Java-level deadlock", "Threads class SMR", " at ", ":"},
	Claim: claimJVM,
	When: func(p *attach.Part) time.Time {
		t, _ := time.Parse(time.DateTime, p.Lines[0].Text) // zero where it is something else
		return t
	},
	Read: func(p *attach.Part) attach.Reading { return readJVM(p.Lines) },
}

var (
	jvmHeader = pattern.New(`^"(.*)"(?: #(\d+))?(?: \[(\d+)\])?(?: (?:daemon|virtual))* (?:.*\b)?(?:prio=\d+|os_prio=\S+|tid=0x[0-9a-f]+|nid=\S+|Id=\d+|id=\d+ in [A-Z_]+\b|- Thread t@\d+|virtual\b|#\d+)`)
	// jvmUnnamed is a header whose name stands in another line, or is lost.
	jvmUnnamed = pattern.New(`^os_prio=\d+ (?:cpu=\S+ elapsed=\S+ )?tid=0x[0-9a-f]+ nid=\S+ `)
	// jvmTorn is a header whose name lost its first quote, or all but its end.
	jvmTorn = pattern.New(`^[^"\s][^"]{0,120}"(?: #\d+)?(?: \[\d+\])?(?: (?:daemon|virtual))* (?:prio=\d+|os_prio=\S+|tid=0x[0-9a-f]+|nid=\S+).* nid=\S+`)
	jvmIn   = pattern.New(`" id=(\d+) in ([A-Z_]+)\b|" - Thread t@(\d+)`) // of profilers and VisualVM
	// jvmWord is what profilers and Android's runtime say of a thread in its header.
	jvmWord  = pattern.New(`\btid=(?:0x[0-9a-f]+|(\d+)) (?:in )?(RUNNABLE|BLOCKED|WAITING|TIMED_WAITING|Blocked|Waiting|TimedWaiting|Sleeping)$`)
	jvmOwner = pattern.New(`<((?:0x)?[0-9a-f]+)> .*\bheld by thread (\d+)$`)
	jvmNID   = pattern.New(`\bnid=(0x[0-9a-f]+|\d+)`)
	jvmState = pattern.New(`^\s*java\.lang\.Thread\.State: (\w+)(?: \((.*)\))?`)
	jvmFrame = pattern.New(`^\s+at ([\w$.@/<>:-]+)\((.*)\)\s*$`)
	jvmBare  = pattern.New(`^at ([\w$.@/<>:-]+\.[\w$<>]+)\((.*(?:\.\w+:\d+|Native Method|Unknown Source|\.java|\.gen|<generated>))\)\s*$`)
	jvmLock  = pattern.New(`^\s*- (waiting to lock|locked|waiting on|parking to wait for|waiting to re-lock in wait\(\)|eliminated|lock is eliminated|waiting on the Class initialization monitor for|Class initialization lock of|<no)\s*(?:<((?:0x)?[0-9a-f]+)>|<no object reference available>|(\S+))?(?: \(a (.*)\)| \(owned by \d+\))?`)
	jvmOwned = pattern.New(`^\s*- <(0x[0-9a-f]+)> \(a (.*)\)`)
	jvmBits  = pattern.New(`^(Full thread dump|Threads class SMR|_java_thread_list|0x[0-9a-f]{8,}[, 0xa-f0-9]*$|\}$|JNI global ref|Found (one|\d+) (Java-level )?deadlock|=====|Java stack information|which is held by|waiting to lock monitor|waiting for ownable|JNI|Heap$)`)
	jvmStart = pattern.New(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d+:)$`)
	jvmInner = pattern.New(`^(?:Blocked: \d+\[|User CPU: |- synchronizer <)|^\s+(--? |\| |native: #|#\d\d pc |\^-- |java\.lang\.Thread\.State|Locked ownable|No compile task|Compiling:|Locked synchronizers|which is held by|waiting (to lock|for)|in object 0x|Carrying virtual|Mounted on carrier|- |at |JavaThread state|Thread:|Number of locked|total|space|Metaspace|class space|region size|PSYoungGen|ParOldGen|PSOldGen|PSPermGen|par new|concurrent|def new|tenured|eden|from|to |the space|compacting|garbage-first|object space|None$|\.\.\. \d+ more|Caused by)`)
)

// jrockitState is the end of a header of JRockit: "tid=77 prio=5 alive, in native, native_waiting".
var jrockitState = pattern.New(`\bidx=0x[0-9a-f]+ tid=\d+ prio=\d+ alive((?:, [\w ]+)*)$`)

// jrockitWord is HotSpot's word for what JRockit says of a thread; "": it runs.
func jrockitWord(words string) string {
	switch {
	case strings.Contains(words, "blocked"):
		return "BLOCKED"
	case strings.Contains(words, "sleeping"):
		return "TIMED_WAITING"
	case strings.Contains(words, "waiting"), strings.Contains(words, "parked"):
		return "WAITING"
	}
	return ""
}

// threadDump reads what jcmd's Thread.dump_to_file writes: virtual threads too, without locks.
var threadDump = &attach.Kind{
	Name:  "JVM Thread.dump_to_file",
	Hints: []string{"#"},
	Claim: func(lines []paste.Line) int {
		return claimStacks(lines, toFileTask.MatchString,
			func(t string) bool { return toFileFrame.MatchString(t) || toFileNote.MatchString(t) })
	},
	Read: func(p *attach.Part) attach.Reading {
		d := parseStacks(p.Lines, "JVM threads by Thread.dump_to_file", toFileTask, toFileFrame)
		for _, t := range d.threads {
			for i := range t.frames {
				t.frames[i].fn = modless(t.frames[i].fn)
			}
			t.state = "RUNNABLE" // the dump has no states: only names can tell
			placeJVM(t)
		}
		r := d.read()
		r.Not = "This dump has no states and no locks: jcmd PID Thread.print has them, for platform threads."
		if r.State == attach.Healthy {
			r.State = attach.CannotTell
		}
		return r
	},
}

var (
	toFileTask  = pattern.New(`^#(\d+) "(.*)"(?: virtual)?(?: [A-Z_]+)?(?: \d{4}-\d\d-\d\dT\S+)?$`)
	toFileFrame = pattern.New(`^\s{4,}([\w$.@/<>:-]+)\([^()]*\)$`)
	toFileNote  = pattern.New(`^\s{4,}- (?:locked|waiting|parked|blocked|waiting to lock)`)
)

func claimJVM(lines []paste.Line) int {
	first := lines[0].Text
	if jvmStart.MatchString(first) {
		for _, l := range lines[1:min(3, len(lines))] {
			if strings.HasPrefix(l.Text, "Full thread dump") {
				first = l.Text
			}
		}
	}
	if !fullDump(first) && !isJVMHeader(first) && !jvmState.MatchString(first) &&
		!jvmFrame.MatchString(first) && !jvmBare.MatchString(first) &&
		!strings.HasPrefix(first, deadlockHead) && !strings.HasPrefix(first, "Threads class SMR") {
		return 0
	}
	n, frames, heads := 0, 0, 0
	for i, l := range lines {
		text := l.Text
		switch {
		case i > 0 && (l.Command != "" || heads > 0 && strings.HasPrefix(text, "Full thread dump")):
			return doneJVM(n, frames, heads)
		case i < 2 && jvmStart.MatchString(text):
		case heads > 0 && jvmStart.MatchString(text) && i+1 < len(lines) &&
			strings.HasPrefix(lines[i+1].Text, "Full thread dump"):
			return doneJVM(n, frames, heads)
		case jvmFrame.MatchString(text), jvmBare.MatchString(text):
			frames++
			n = i + 1
		case isJVMHeader(text), fullDump(text), i == 0 && jvmState.MatchString(text):
			heads++ // a state is as sure a start as the header that was cut off above it
			n = i + 1
		case strings.TrimSpace(text) == "", strings.TrimSpace(text) == "...":
		case jvmBits.MatchString(strings.TrimSpace(text)), jvmInner.MatchString(text),
			jvmLock.MatchString(text), jvmOwned.MatchString(text):
			n = i + 1
		case inDeadlock(text) != "":
			if strings.HasPrefix(first, deadlockHead) {
				heads++
			}
			n = i + 1
		case strings.Contains(text, "java.lang.Thread.State: "), heads > 0 && jvmUnnamed.MatchString(text):
			n = i + 1
		default:
			return doneJVM(n, frames, heads)
		}
	}
	return doneJVM(n, frames, heads)
}

// fullDump reports whether a line is the head of a dump, and no sentence about one.
func fullDump(text string) bool {
	return strings.HasPrefix(text, "Full thread dump") && (strings.HasSuffix(text, ":") || strings.Contains(text, "VM"))
}

// isJVMHeader reports whether a line is a thread's header.
func isJVMHeader(text string) bool { return jvmHeader.MatchString(text) || jvmTorn.MatchString(text) }

// doneJVM refuses a lone exception's frames: a dump has threads' headers, or the first frames cut
// off before at least one.
func doneJVM(n, frames, heads int) int {
	return attach.ClaimIf(heads > 0, n)
}

func readJVM(lines []paste.Line) attach.Reading {
	d := parseJVM(lines)
	d.tool, d.whole = "JVM thread dump", "jcmd PID Thread.print -l"
	if strings.HasPrefix(lines[0].Text, deadlockHead) &&
		!slices.ContainsFunc(lines, func(l paste.Line) bool { return isJVMHeader(l.Text) }) {
		d = parseDeadlock(lines)
	}
	said := d.mounted()
	for _, t := range d.threads {
		placeJVM(t)
	}
	r := d.read()
	d.few(&r)
	d.cpuUse(&r)
	r.Figures = append(said, r.Figures...)
	return r
}

// parseJVM reads threads up to the section about deadlocks, which repeats some of them.
func parseJVM(lines []paste.Line) *dump {
	d := &dump{owners: map[string]int{}}
	var t *thread
	for _, l := range lines {
		text := l.Text
		trimmed := strings.TrimSpace(text)
		if strings.HasPrefix(trimmed, "Found") && strings.Contains(trimmed, "deadlock") {
			d.cycle = true
			if len(d.threads) > 0 {
				break
			}
		}
		if jvmTorn.MatchString(text) {
			text = "\"" + text
		} else if jvmUnnamed.MatchString(text) {
			text = "\"\" " + text
		}
		if m := jvmHeader.FindStringSubmatch(text); m != nil {
			t = &thread{name: m[1], n: 1, id: atoi(m[2]), number: atoi(m[2]),
				virtual: jvmVirtual.MatchString(text[len(m[1])+2:])}
			if n := jvmNID.FindStringSubmatch(text); n != nil {
				t.id = hex(n[1])
			}
			d.info(t, text)
			t.used(text)
			if n := jvmIn.FindStringSubmatch(text); n != nil {
				t.id, t.state = atoi(n[1]+n[3]), n[2]
			}
			if n := jvmWord.FindStringSubmatch(strings.TrimSpace(text)); n != nil {
				t.id, t.state = max(t.id, atoi(n[1])), jvmWords[n[2]]
			}
			if n := jrockitState.FindStringSubmatch(text); n != nil {
				t.state = jrockitWord(n[1])
			}
			d.threads = append(d.threads, t)
			continue
		}
		if t == nil {
			if !jvmFrame.MatchString(text) && !jvmState.MatchString(text) {
				continue
			}
			t = &thread{n: 1, cropped: jvmFrame.MatchString(text)}
			d.threads = append(d.threads, t)
		}
		if m := jvmOwner.FindStringSubmatch(trimmed); m != nil && len(d.owners) < 4096 {
			d.owners[m[1]] = atoi(m[2])
		}
		if m := jvmCarries.FindStringSubmatch(trimmed); m != nil {
			t.carries = atoi(m[1])
		}
		t.line(text, trimmed)
	}
	return d
}

var (
	jvmVirtual = pattern.New(`^[^"]*\bvirtual\b`)
	jvmCarries = pattern.New(`^Carrying virtual thread #(\d+)`)
)

// mounted leaves out virtual threads whose carrier is in the dump with their frames: the two are
// one thread that runs. It says so.
func (d *dump) mounted() (said []string) {
	for _, c := range d.threads {
		if c.carries == 0 || len(c.frames) == 0 {
			continue
		}
		i := slices.IndexFunc(d.threads, func(t *thread) bool {
			return t.virtual && t.number == c.carries && len(t.frames) > 0 && t.frames[0] == c.frames[0]
		})
		if i >= 0 {
			said = append(said, fmt.Sprintf("%q runs the virtual thread #%d, in %s", c.name, c.carries, c.frames[0].fn))
			d.threads = slices.Delete(slices.Clone(d.threads), i, i+1)
		}
	}
	return said
}

// jvmWords are HotSpot's words for those of other runtimes.
var jvmWords = map[string]string{"RUNNABLE": "RUNNABLE", "BLOCKED": "BLOCKED", "WAITING": "WAITING",
	"TIMED_WAITING": "TIMED_WAITING",
	"Blocked":       "BLOCKED", "Waiting": "WAITING", "TimedWaiting": "TIMED_WAITING", "Sleeping": "TIMED_WAITING"}

// line takes what a line says of the thread that it stands under.
func (t *thread) line(text, trimmed string) {
	if m := jvmState.FindStringSubmatch(text); m != nil {
		t.state = m[1]
		return
	}
	if m := jvmFrame.FindStringSubmatch(text); m != nil && len(t.frames) < 400 {
		t.frames = append(t.frames, frame{fn: modless(m[1]), file: m[2]})
		return
	}
	if m := jvmBare.FindStringSubmatch(trimmed); m != nil && len(t.frames) < 400 {
		t.frames = append(t.frames, frame{fn: modless(m[1]), file: m[2]})
		return
	}
	if m := jvmOwned.FindStringSubmatch(text); m != nil {
		t.holds = append(t.holds, m[1])
		return
	}
	if m := infoLock.FindStringSubmatch(text); m != nil {
		if _, of := object(m[2]); m[1] == "locked" && of != t.wants {
			t.holds = append(t.holds, of)
		}
		return
	}
	m := jvmLock.FindStringSubmatch(text)
	if m == nil {
		return
	}
	if m[1] == "waiting to re-lock in wait()" && t.wait.call == "waiting on" && t.state != "BLOCKED" {
		return // JDK 11 prints it of every thread in Object.wait: it has not been notified yet
	}
	switch m[1] {
	case "waiting to lock", "waiting to re-lock in wait()", "parking to wait for",
		"waiting on the Class initialization monitor for":
		t.wants, t.what = m[2]+m[3], m[4]
		t.wait.call = m[1]
	case "waiting on":
		t.wants, t.what, t.wait.call = m[2], m[4], m[1]
	case "locked", "Class initialization lock of":
		// A thread in Object.wait has given back the monitor that it lists as locked.
		if strings.Contains(m[4], "ProcessPipeInputStream") {
			t.pipe = true
		}
		if len(t.frames) > 0 && len(t.frames) <= 3 && t.wants == "" && m[2] != "" &&
			strings.HasPrefix(t.frames[0].fn, "java.lang.Object.wait") {
			// Before JDK 7 only its caller's frame shows the monitor that it gave back.
			t.wants, t.what, t.wait.call = m[2], m[4], "waiting on"
			return
		}
		if t.state == "BLOCKED" && len(t.frames) == 1 && t.wait.call == "" && m[2] != "" {
			// HotSpot before JDK 7 prints the monitor that a thread waits to enter as locked by it.
			t.wants, t.what, t.wait.call = m[2], m[4], "waiting to lock"
			return
		}
		if m[2] != "" && m[2] != t.wants {
			t.holds = append(t.holds, m[2])
		}
	}
}

// modless takes a module's name and version off a frame: java.base@17/java.lang.Thread.sleep.
func modless(fn string) string {
	if i := strings.LastIndex(fn, "/"); i >= 0 && !strings.Contains(fn[i:], "$$Lambda") {
		return fn[i+1:]
	}
	return fn
}

func hex(s string) int {
	if h, ok := strings.CutPrefix(s, "0x"); ok {
		n := 0
		for _, c := range h {
			n = n<<4 | strings.IndexRune("0123456789abcdef", c)
			if n < 0 || n > 1<<31 {
				return 0
			}
		}
		return n
	}
	return atoi(s)
}

// placeJVM says what a Java thread does. What the JVM prints of locks counts before names.
func placeJVM(t *thread) {
	how := t.wait.call
	t.wait = wait{}
	if len(t.frames) > 0 {
		t.call = t.frames[0].fn
	}
	t.site, t.from = siteOf(t.frames, 0)
	has := func(depth int, names ...string) bool {
		return rule{depth: depth, names: names}.find(t.frames, anything) >= 0
	}
	blocked := how == "waiting to lock" || strings.HasPrefix(how, "waiting to re-lock") ||
		strings.HasPrefix(how, "waiting on the Class")
	if t.state == "BLOCKED" && how == "" { // some dumps leave the line of the lock out
		blocked, t.what = true, "a monitor that the dump does not name"
	}
	locker := how == "parking to wait for" &&
		(strings.Contains(t.what, "Lock$") || strings.Contains(t.what, "StampedLock") ||
			strings.HasSuffix(t.what, "Sync")) &&
		!strings.Contains(t.what, "Condition") && !strings.Contains(t.what, "Latch") &&
		!strings.Contains(t.what, "Semaphore")
	for _, r := range jvmRules {
		i := r.find(t.frames, anything)
		if i < 0 || (r.doing == idle || r.doing == remote || r.doing == disk) && (blocked || locker) {
			continue
		}
		if r.doing == lock && !blocked && !locker || r.doing == idle && r.depth > 0 &&
			slices.ContainsFunc(t.frames[:i], restless) {
			continue
		}
		if r.doing == pooled && (blocked || locker || restless(t.frames[0])) {
			continue // it opens a connection, or waits for a lock on the way to one
		}
		if r.doing == disk && (t.pipe || has(8, "java.lang.System$In.*")) { // a pipe or a terminal
			t.doing = idle
			return
		}
		t.doing, t.kind = r.doing, r.kind
		if r.doing == idle && r.depth == 0 && !has(0, "java.lang.Thread.sleep*") &&
			workMarks.find(t.frames[i:], anything) >= 0 {
			t.doing = signal // within a request it waits for what others do
			return
		}
		t.joins = r.doing == idle && has(4, "java.lang.Thread.join")
		if r.doing == remote || r.doing == pooled || r.doing == room {
			t.call = short(t.frames[i].fn)
		}
		if r.doing == lock {
			t.addr = t.wants
		}
		return
	}
	switch {
	case blocked, locker:
		t.doing, t.addr = lock, t.wants
	case how == "waiting on", how == "parking to wait for", t.state == "WAITING":
		t.doing = signal
	case has(1, "Unsafe.park", "Object.wait", "Object.wait0"): // the frames that say for what are cut off
		t.doing = signal
	case t.state == "TIMED_WAITING", len(t.frames) == 0:
		t.doing = idle
	case has(2, "java.net.SocketInputStream.socketRead0", "sun.nio.ch.SocketDispatcher.read0",
		"sun.nio.ch.Net.poll", "sun.nio.ch.NioSocketImpl.park", "sun.nio.ch.NioSocketImpl.timedRead"):
		t.doing = remote
		if !slices.ContainsFunc(t.frames, clientFrame) {
			t.doing = idle // a connection that waits for its client's next request
			t.socket = ownFunction(t.frames)
		}
	}
}

// restless reports whether a frame is of anything but the JVM's own ways to wait: above a thread's
// first function it is work.
func restless(f frame) bool {
	return !strings.HasPrefix(f.fn, "java.lang.Object.wait") &&
		!strings.HasSuffix(f.fn, ".Unsafe.park") &&
		!strings.HasPrefix(f.fn, "java.util.concurrent.locks.LockSupport.park") &&
		!strings.HasPrefix(f.fn, "java.lang.ref.Reference.") &&
		!strings.HasPrefix(f.fn, "java.util.concurrent.ForkJoinPool.")
}

// ownFunction is the innermost function that is not of Java's own packages.
func ownFunction(frames []frame) string {
	for _, f := range frames {
		if !slices.ContainsFunc([]string{"java.", "javax.", "jdk.", "sun.", "com.sun."},
			func(p string) bool { return strings.HasPrefix(f.fn, p) }) {
			return short(f.fn)
		}
	}
	return frames[0].fn
}

// clientFrame reports whether a frame is one of a client that waits for an answer.
func clientFrame(f frame) bool {
	for _, word := range []string{"jdbc", "mysql", "postgresql", "oracle", "HttpClient",
		"httpclient", "HttpURLConnection", "okhttp", "jedis", "redis", "mongodb",
		"Client.", "ojdbc", "mariadb", "cassandra", "elasticsearch.client", "thrift.TServiceClient",
		"memcached", "RestTemplate", "feign", "sqlserver", "executeQuery", "amqp"} {
		if strings.Contains(f.fn, word) {
			return true
		}
	}
	return false
}

var jvmRules = []rule{
	{lock, loggerLock, anything, 10, []string{"org.apache.log4j.*", "ch.qos.logback.*",
		"org.apache.logging.log4j.*", "java.util.logging.*", "java.io.PrintStream.*", "org.slf4j.*"}},
	{pooled, 0, anything, 16, []string{"com.zaxxer.hikari.*", "org.apache.commons.pool.*",
		"org.apache.commons.pool2.*", "org.apache.commons.dbcp.*", "com.mchange.v2.resourcepool.*",
		"com.alibaba.druid.pool.DruidDataSource.*", "org.apache.tomcat.jdbc.pool.*",
		"org.apache.http.pool.*", "AbstractConnPool.*", "getConnection", "borrowObject",
		"getPoolEntryBlocking", "org.apache.http.impl.conn.*leaseConnection", "redis.clients.util.Pool.getResource"}},
	{idle, 0, anything, 4, []string{"java.util.concurrent.ForkJoinPool.runWorker",
		"java.util.TimerThread.mainLoop", "java.lang.ref.Reference$ReferenceHandler.run",
		"java.lang.ref.NativeReferenceQueue.await", "java.lang.ref.NativeReferenceQueue.remove*",
		"javax.swing.TimerQueue.run", "sun.awt.AWTAutoShutdown.run"}},
	{idle, 0, anything, 0, []string{"java.util.concurrent.ThreadPoolExecutor.getTask",
		"java.util.concurrent.ForkJoinPool.awaitWork",
		"java.lang.ref.ReferenceQueue.remove",
		"java.lang.ref.Reference.waitForReferencePendingList", "java.lang.Thread.sleep*",
		"sun.nio.ch.EPoll*", "sun.nio.ch.KQueue*", "sun.nio.ch.SelectorImpl.*", "socketAccept",
		"java.net.ServerSocket.*", "sun.nio.ch.ServerSocketChannelImpl.accept*", "sun.nio.ch.NioSocketImpl.accept",
		"org.eclipse.jetty.util.thread.QueuedThreadPool.*idleJobPoll", "java.lang.Object.wait0_",
		"java.awt.EventQueue.getNextEvent", "sun.awt.X11.XToolkit.waitForEvents",
		"sun.awt.windows.WToolkit.eventLoop", "io.netty.channel.epoll.Native.*",
		"org.apache.tomcat.util.threads.TaskQueue.*", "java.util.concurrent.DelayQueue.take",
		"ScheduledThreadPoolExecutor$DelayedWorkQueue.take", "java.lang.Thread.join",
		"UNIXProcess.waitForProcessExit*", "ProcessImpl.waitFor*", "ProcessHandleImpl.waitForProcessExit*",
		"LinkedBlockingQueue.take", "LinkedBlockingQueue.poll", "ArrayBlockingQueue.take",
		"SynchronousQueue.take", "SynchronousQueue.poll", "LinkedTransferQueue.poll",
		"PriorityBlockingQueue.take", "ArrayBlockingQueue.poll", "LinkedBlockingDeque.take",
		"java.util.concurrent.CountDownLatch.await_", "sun.misc.Signal*"}},
	{room, 0, anything, 8, []string{"ArrayBlockingQueue.put", "LinkedBlockingQueue.put",
		"LinkedBlockingDeque.put*", "SynchronousQueue.put", "ArrayBlockingQueue.offer"}},
	{disk, 0, anything, 3, []string{"sun.nio.ch.FileDispatcherImpl.*", "java.io.RandomAccessFile.*",
		"java.io.FileOutputStream.write*", "java.io.FileInputStream.read*", "java.io.FileDescriptor.sync",
		"java.nio.MappedByteBuffer.force0", "sun.nio.ch.UnixFileDispatcherImpl.*",
		"java.io.UnixFileSystem.*", "sun.nio.fs.UnixNativeDispatcher.*"}},
}
