package stackdump

import "strings"

// does is what a thread does, in words.
func (t *thread) does() string {
	in := func(fn string) string {
		if fn == "" {
			return ""
		}
		return " in " + fn
	}
	switch t.doing {
	case lock:
		if t.addr != "" {
			return "it waits for another lock, " + t.addr + in(t.site)
		}
		return "it waits for another lock" + in(t.site)
	case disk:
		if strings.Contains(t.call, "FileInputStream.read") {
			return "it reads a file, or what comes from a pipe or a terminal," + in(t.call)
		}
		if t.after {
			return "it waits for another thread's call on a file" + in(t.call)
		}
		return "it is in a call on a file" + in(t.call)
	case remote:
		return "it waits for another server" + in(t.call)
	case tableLock:
		return "it waits for a lock of the database's tables" + in(t.call)
	case pooled:
		return "it waits for a free object of a pool" + in(t.call)
	case room:
		return "it waits for room in a full queue" + in(t.call)
	case idle, signal:
		switch {
		case t.socket != "":
			return "it reads a socket, in " + t.socket
		case t.child:
			return "it waits for another process, a child or one that it traces," + in(t.call)
		case t.joins:
			return "it waits for another thread to end" + in(t.call)
		case len(t.frames) == 0:
			return "no frames of it could be read"
		}
		return "it sleeps or waits" + in(t.call)
	}
	switch p, at := sleepsIn(t.frames); {
	case t.cropped && len(t.frames) > 0:
		return "the innermost frames are left out; it is below" + in(short(t.frames[0].fn))
	case p == inRead:
		return "it waits in " + t.call + t.calledBy(at) +
			" for what comes from a pipe, a socket or a terminal, or reads a file"
	case p == inWrite:
		return "it is in " + t.call + t.calledBy(at) +
			": it writes, or waits until the other end of a pipe or socket takes it"
	}
	if len(t.frames) > 0 && dumpers.find(t.frames[:1], anything) >= 0 {
		return "it takes this dump" + in(short(t.frames[0].fn))
	}
	if len(t.frames) > 0 && systemCall(short(t.frames[0].fn)) {
		call := "a system call"
		if fn := short(t.frames[0].fn); fn == "ioctl" {
			call = "ioctl, a call of a device"
		}
		return strings.TrimSuffix("it is in "+call+t.calledBy(0), ",")
	}
	if t.atZero() {
		return "its innermost frame is at address 0, where no code is"
	}
	if len(t.frames) > 0 {
		return "it computes or is in a call" + in(short(t.frames[0].fn))
	}
	return "it runs"
}

// dumpers are functions by which a program takes a dump of its own threads.
var dumpers = rule{names: []string{"sun.management.ThreadImpl.dumpThreads0",
	"sun.management.ThreadImpl.getThreadInfo1", "java.lang.Thread.dumpThreads",
	"*:in `backtrace'", "*Thread#backtrace'"}}

// calledBy names the function that called the library's call at a place.
func (t *thread) calledBy(at int) string {
	if fn, _ := siteOf(t.frames, at+1); fn != "" {
		return ", called from " + fn + ","
	}
	return ""
}
