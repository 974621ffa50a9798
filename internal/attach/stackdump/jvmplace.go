package stackdump

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// readJVM says what each of the Java threads does, and then what follows.
func (d *dump) readJVM() attach.Reading {
	for _, t := range d.threads {
		placeJVM(t)
	}
	return d.read()
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
		if r.doing == idle && r.depth == 0 {
			t.call = t.frames[i].fn
		}
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
