// Package stackdump knows stacks of all threads: gdb, jstack, py-spy, and the convoys in them. It
// refuses to call a pool that waits for work a convoy, and to see one in a single thread.
//
// Files in reading order:
//
//	stack.go     threads and frames, and how functions' names are compared
//	wait.go      what a thread does, by the call that it sleeps in and who called it
//	prims.go     the library's calls in which threads sleep
//	native.go    the rules of C, C++ and the kernel: which function means which wait
//	convoy.go    threads that wait for one lock, and who holds it
//	chain.go     queues that end at one thread; deadlocks that the runtime reports
//	read.go      what a dump says, as signs and in words
//	does.go      what a thread does, in words
//	lone.go      a dump of one thread: what it does and who called that
//	elsewhere.go other waits: servers, tables, pools, disks, nothing
//	census.go    how many threads do what
//	commit.go    threads that wait for the leader of a group that commits
//	ended.go     programs that ended
//	spin.go      threads that spin
//	calls.go     a few threads in calls; dumps without frames
//	gdb.go       gdb, pstack, eu-stack
//	gdbcore.go   of it: core files, and frames that gdb guessed
//	gdbsession.go  of it: threads and frames that a person chose one by one; wrapped frames
//	corestacks.go what systemd-coredump writes
//	gdbinfo.go   gdb's info threads
//	pmp.go       pt-pmp
//	jstack.go    the JVM's dumps
//	jvmplace.go  what a Java thread does
//	jvmcpu.go    what its threads used of CPUs, where the JVM says it
//	jvmdeadlock.go  what the JVM says of a deadlock, where it stands alone
//	jvmother.go  ThreadInfo's text and jstack -F
//	javacore.go  the dumps of IBM's JVMs and of OpenJ9
//	pystack.go   pystack of a process or of a core
//	actuator.go  a JVM's threads in JSON
//	phpslow.go   where slow requests of PHP stood
//	safepoint.go the JVM's log of stops of all threads
//	gclog.go     the JVM's log of collections, of all versions
//	gcclock.go   of it: the time that its lines cover
//	gcpieces.go  of it: collections that somebody broke into pieces; ZGC's statistics
//	gcphases.go  parts of its pauses: objects without room, a remark's rescan; Shenandoah's table
//	gcjudge.go   what follows from its pauses
//	gcmonitor.go Elasticsearch's log of time that went into collections
//	v8gc.go      Node.js' collections, and its end where the heap is full
//	jstat.go     jstat; what is in the heap
//	nodereport.go  Node.js' diagnostic report
//	pyspy.go     py-spy
//	faulthandler.go  Python's faulthandler; a traceback is refused
//	pyplaces.go  of it: functions of Python's libraries that wait
//	pytimeout.go pytest-timeout
//	pylone.go    of it: a dump of one thread
//	pyspytop.go  py-spy top
//	pybt.go      gdb's py-bt
//	watchdog.go  the stack of Redis' watchdog
//	watchdogdump.go  the threads that a Minecraft server's watchdog logs
//	lldb.go      LLVM's debugger
//	macsample.go macOS' sample
//	dotnetdump.go  monitors and stacks as dotnet-dump prints them
//	gdbmutex.go  a mutex that gdb printed
//	partial.go   threads that have numbers and are not in the text
//	puma.go      threads that the server puma logs
//	more.go      crash, dotnet-stack, Ruby; a crash's backtrace is refused
//	foreign.go   stacks of Windows, Erlang's crash dump
//	kinds.go     Kinds: the table of this room
package stackdump
