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
	d.holders = true
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
	locker := how == "parking to wait for" && lockType(t.what)
	if (blocked || locker) && accepts.find(t.frames[:min(len(t.frames), 6)], anything) >= 0 ||
		locker && has(10, "java.util.concurrent.ThreadPoolExecutor.getTask") {
		t.doing = idle // it waits for its turn to accept a connection, or to take work
		return
	}
	if has(10, "*SocketIOWithTimeout") { // Hadoop's, which polls a socket
		t.reads()
		return
	}
	for _, r := range jvmRules {
		i := r.find(t.frames, anything)
		if i < 0 || r.doing != lock && r.doing != pooled && (blocked || locker) {
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
			(workMarks.find(t.frames[i:], anything) >= 0 || t.deep() && takes.find(t.frames[i:i+1], anything) >= 0) {
			t.doing = signal // within its work it waits for what others do
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
	case has(1, "Unsafe.park", "Object.wait", "Object.wait0", "java.lang.VirtualThread.park*", "Continuation.yield*"):
		// The frames that say for what are cut off.
		t.doing = signal
	case t.state == "TIMED_WAITING", len(t.frames) == 0:
		t.doing = idle
	case has(2, "java.net.SocketInputStream.socketRead0", "sun.nio.ch.SocketDispatcher.read0",
		"sun.nio.ch.Net.poll", "sun.nio.ch.NioSocketImpl.park", "sun.nio.ch.NioSocketImpl.timedRead"):
		t.reads()
	}
}

// reads says what a thread does that reads a socket: a loop takes what comes, a server's connection
// waits for its client's next request, a client for its server. Deep in other work it is not known.
func (t *thread) reads() {
	at := max(0, slices.IndexFunc(t.frames, func(f frame) bool { return !javasOwn(f.fn) }))
	t.doing, t.socket = idle, short(t.frames[at].fn)
	switch {
	case standing.find(t.frames, anything) >= 0, serving.find(t.frames[at:min(len(t.frames), at+3)], anything) >= 0:
	case slices.ContainsFunc(t.frames, clientFrame):
		t.doing, t.socket = remote, ""
	case t.deep():
		t.doing = signal
	}
}

// takes are ways to take from a queue: a pool's thread waits so for work, and others for an answer.
var takes = rule{names: []string{"LinkedBlockingQueue.take", "LinkedBlockingQueue.poll", "ArrayBlockingQueue.take",
	"ArrayBlockingQueue.poll", "SynchronousQueue.take", "SynchronousQueue.poll", "LinkedTransferQueue.poll",
	"LinkedTransferQueue.take", "PriorityBlockingQueue.take", "LinkedBlockingDeque.take", "LinkedBlockingDeque.poll"}}

// standing are the loops of clients' libraries that read whatever comes, also while nobody waits.
var standing = rule{names: []string{"*JedisPubSub.", "*ServerMonitor", "*AMQConnection$MainLoop", "*BinaryLogClient.",
	"*PGReplicationStream", "*getNotifications", "com.sun.jndi.ldap.Connection.run"}}

// serving are functions of servers that read a request.
var serving = rule{names: []string{"*Http11", "*.ajp.", "*.coyote.", "org.eclipse.jetty.server.*",
	"org.eclipse.jetty.http.*", "io.undertow.*", "*parseRequest",
	"*readRequest", "*TThreadPoolServer", "*ServerConnection."}}

// lockType reports whether the object that a thread parks for is a lock's. Futures, latches,
// semaphores and conditions have a Sync of their own, and are none.
func lockType(what string) bool {
	for _, other := range []string{"Condition", "Latch", "Semaphore", "Future", "Barrier", "Phaser"} {
		if strings.Contains(what, other) {
			return false
		}
	}
	return strings.Contains(what, "Lock$") || strings.Contains(what, "StampedLock") ||
		strings.Contains(what, "Lock") && strings.HasSuffix(what, "Sync")
}

// restless reports whether a frame is of anything but the JVM's own ways to wait: above a thread's
// first function it is work.
func restless(f frame) bool {
	return !strings.HasPrefix(f.fn, "java.lang.Object.wait") &&
		!strings.HasSuffix(f.fn, ".Unsafe.park") && !strings.HasPrefix(f.fn, "java.lang.VirtualThread.park") &&
		!strings.HasPrefix(f.fn, "java.util.concurrent.locks.LockSupport.park") &&
		!strings.HasPrefix(f.fn, "java.lang.ref.Reference.") &&
		!strings.HasPrefix(f.fn, "java.util.concurrent.ForkJoinPool.")
}

// javasOwn reports whether a function is of Java's own packages.
func javasOwn(fn string) bool {
	return slices.ContainsFunc([]string{"java.", "javax.", "jdk.", "sun.", "com.sun."},
		func(p string) bool { return strings.HasPrefix(fn, p) })
}

// clientFrame reports whether a frame is one of a client that waits for an answer.
func clientFrame(f frame) bool {
	for _, word := range []string{"jdbc", "mysql", "postgresql", "oracle.net.", "HttpClient",
		"httpclient", "HttpURLConnection", "okhttp", "jedis", "redis", "mongodb", ".db2.jcc.",
		"Client.", "mariadb", "com.datastax.", "elasticsearch.client", "thrift.TServiceClient",
		"memcached", "RestTemplate", "feign", "sqlserver", "executeQuery", "javax.mail", ".ldap.", ".hdfs."} {
		if strings.Contains(f.fn, word) && !strings.HasSuffix(f.fn, ".run") {
			return true // but a server's threads may be called Client.run
		}
	}
	return false
}

var jvmRules = []rule{
	{lock, loggerLock, anything, atSite, []string{"org.apache.log4j.*", "ch.qos.logback.*",
		"org.apache.logging.log4j.*", "java.util.logging.*", "java.io.PrintStream.*", "org.slf4j.*"}},
	{pooled, 0, anything, 16, []string{"com.zaxxer.hikari.*", "org.apache.commons.pool.*",
		"org.apache.commons.pool2.*", "org.apache.commons.dbcp.*", "com.mchange.v2.resourcepool.*",
		"com.alibaba.druid.pool.DruidDataSource.*", "org.apache.tomcat.jdbc.pool.*",
		"org.apache.http.pool.*", "AbstractConnPool.*", "getPoolEntryBlocking",
		"org.apache.http.impl.conn.*leaseConnection", "redis.clients.util.Pool.getResource"}},
	{pooled, 0, anything, nearSite, []string{"getConnection", "borrowObject", "borrow"}},
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
		"org.eclipse.jetty.util.thread.QueuedThreadPool.*idleJobPoll",
		"java.awt.EventQueue.getNextEvent", "sun.awt.X11.XToolkit.waitForEvents",
		"sun.awt.windows.WToolkit.eventLoop", "*netty.channel.epoll.Native.", "*netty.channel.kqueue.Native.",
		"PlainDatagramSocketImpl.receive*", "PlainDatagramSocketImpl.peekData", "DatagramChannelImpl.receive*",
		"sun.nio.ch.UnixDomainSockets.accept*", "sun.nio.fs.LinuxWatchService.poll", "org.apache.tomcat.jni.Poll.poll",
		"org.apache.tomcat.jni.Socket.accept*", "sun.nio.ch.Iocp.getQueuedCompletionStatus",
		"org.apache.tomcat.util.threads.TaskQueue.*", "java.util.concurrent.DelayQueue.take",
		"ScheduledThreadPoolExecutor$DelayedWorkQueue.take", "java.lang.Thread.join",
		"UNIXProcess.waitForProcessExit*", "ProcessImpl.waitFor*", "ProcessHandleImpl.waitForProcessExit*",
		"LinkedBlockingQueue.take", "LinkedBlockingQueue.poll", "ArrayBlockingQueue.take",
		"SynchronousQueue.take", "SynchronousQueue.poll", "LinkedTransferQueue.poll",
		"PriorityBlockingQueue.take", "ArrayBlockingQueue.poll", "LinkedBlockingDeque.take",
		"sun.misc.Signal*"}},
	{room, 0, anything, 8, []string{"ArrayBlockingQueue.put", "LinkedBlockingQueue.put",
		"LinkedBlockingDeque.put*", "SynchronousQueue.put", "ArrayBlockingQueue.offer"}},
	{disk, 0, anything, 3, []string{"sun.nio.ch.FileDispatcherImpl.*", "java.io.RandomAccessFile.*",
		"java.io.FileOutputStream.write*", "java.io.FileInputStream.read*", "java.io.FileDescriptor.sync",
		"java.nio.MappedByteBuffer.force0", "sun.nio.ch.UnixFileDispatcherImpl.*",
		"java.io.UnixFileSystem.*", "sun.nio.fs.UnixNativeDispatcher.*"}},
}
