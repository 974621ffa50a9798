package stackdump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// pyPlace is a function of a library in which a Python thread waits.
type pyPlace struct {
	file string // its path ends so; a folder: its path has it
	fns  string // separated by blanks; "": any
	does doing
	base bool // other code runs above it as well: it counts only where nothing but waits does
}

// pyPlaces tell what a Python thread waits for, from the libraries' functions.
var pyPlaces = []pyPlace{
	{"queue.py", "get _get", idle, false},
	{"queue.py", "put", room, false},
	{"logging/handlers.py", "dequeue", idle, false}, // of QueueListener: it waits for records
	{"concurrent/futures/thread.py", "_worker", idle, true},
	{"selectors.py", "select", idle, false},
	{"green/select.py", "", idle, false},
	{"gevent/select.py", "", idle, false},
	{"socketserver.py", "serve_forever", idle, true},
	{"socket.py", "accept", idle, false},
	{"threading.py", "_wait_for_tstate_lock join", idle, false},
	{"gunicorn/arbiter.py", "sleep wait_workers", idle, true},
	{"multiprocessing/connection.py", "_recv recv poll wait accept", idle, false},
	{"subprocess.py", "wait _wait _try_wait communicate", idle, false},
	{"asyncio/base_events.py", "run_forever _run_once", idle, true},
	{"apscheduler/", "", idle, true},
	{"celery/", "", idle, true},
	{"kombu/", "", idle, true},
	{"sqlalchemy/pool/impl.py", "_do_get", pooled, false},
	{"urllib3/connectionpool.py", "_get_conn", pooled, false},
	{"logging/__init__.py", "acquire handle", lock, false},
	{"socket.py", "readinto recv recv_into create_connection connect", remote, false},
	{"ssl.py", "read recv recv_into do_handshake", remote, false},
	{"http/client.py", "_read_status readinto", remote, false},
	{"pymysql/connections.py", "", remote, false},
	{"redis/connection.py", "", remote, false},
	{"psycopg2/", "", remote, false},
	{"httpcore/_backends/sync.py", "read connect_tcp start_tls", remote, false},
}

// pyBase is a function's name without its class, which newer versions of py-spy print.
func pyBase(f frame) string { return f.fn[strings.LastIndexByte(f.fn, '.')+1:] }

// has reports whether a frame is of this place. A file of the standard library stands in Python's
// own folder, or py-spy prints it without one: a program may have a queue.py of its own.
func (p pyPlace) has(f frame) bool {
	name := pyBase(f)
	if p.fns != "" && !strings.Contains(" "+p.fns+" ", " "+name+" ") {
		return false
	}
	if f.shortOf(p.file) {
		return true
	}
	path := "/" + strings.ReplaceAll(f.path, "\\", "/")
	if strings.HasSuffix(p.file, "/") {
		return strings.Contains(path, "/"+p.file)
	}
	before, ok := strings.CutSuffix(path, "/"+p.file)
	if !ok || strings.Contains(p.file, "/") || before == "" {
		return ok
	}
	folder := strings.ToLower(before[strings.LastIndexByte(before, '/')+1:])
	return strings.HasPrefix(folder, "python") || strings.HasPrefix(folder, "pypy") || folder == "lib"
}

// shortOf reports whether a frame's file is this one without its folder: some builds of py-spy
// print no more.
func (f frame) shortOf(path string) bool {
	at := strings.LastIndexByte(path, '/')
	return at > 0 && at+1 < len(path) && f.file == path[at+1:] && f.file != "__init__.py" &&
		!strings.Contains(f.file, "connection") &&
		f.file != "client.py" && f.file != "sync.py" && f.file != "impl.py"
}

// placeKnown takes what a thread does from a library's function in its stack, and reports whether
// there is one.
func (t *thread) placeKnown() bool {
	if t.joinsChild() >= 0 && !t.active() {
		t.doing, t.call, t.child = idle, "join", true
		return true
	}
	for i, f := range t.frames[:min(len(t.frames), 12)] {
		for _, p := range pyPlaces {
			if !p.has(f) || p.does == lock && i > 0 &&
				(i > 1 || strings.Contains(t.frames[0].file, ".py")) || p.base &&
				slices.ContainsFunc(t.frames[:i], worksAbove) {
				continue
			}
			t.doing, t.call = p.does, f.fn[strings.LastIndexByte(f.fn, '.')+1:]
			t.joins, t.child = p.file == "threading.py", p.file == "subprocess.py"
			if p.file == "multiprocessing/connection.py" && !ownLoop(t.frames[i+1:]) {
				t.doing = signal // within its work it waits for what another process sends
			}
			if p.does == remote && slices.ContainsFunc(t.frames[i+1:min(len(t.frames), i+4)], servesFrame) {
				t.doing = idle // a connection that waits for its client's next request
			}
			if p.file == "queue.py" && slices.ContainsFunc(t.frames[i+1:min(len(t.frames), i+4)], poolFrame) {
				t.doing = pooled // the pool keeps its free connections in a queue
			}
			if p.file == "queue.py" && t.doing == idle && !ownLoop(t.frames[i+1:]) {
				t.doing, t.shared = signal, "what a queue gives"
				t.site = t.pyCaller()
			}
			if p.does == lock {
				t.kind, t.site = loggerLock, "logging"
			}
			if t.active() && p.does != lock {
				t.doing = running
			}
			return true
		}
	}
	return false
}

// childJoin and childWait are where multiprocessing waits for a process that it started.
var (
	childJoin = pyPlace{"multiprocessing/process.py", "join", idle, false}
	childWait = []string{"popen_fork.py", "popen_forkserver.py", "popen_spawn_posix.py", "popen_spawn_win32.py"}
)

// joinsChild is the frame in which a thread waits for a child process to end; -1: it does not.
func (t *thread) joinsChild() int {
	at := slices.IndexFunc(t.frames[:min(len(t.frames), 8)], childJoin.has)
	if at > 0 && slices.Contains(childWait, baseName(t.frames[at-1].file)) {
		return at
	}
	return -1
}

// baseName is a file without its folders.
func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// ownLoop reports whether a queue's callers are a thread's own loop: one function of the program at
// most, above the thread's first. Whoever takes from a queue deeper than that is at work.
func ownLoop(callers []frame) bool {
	n := 0
	for i, f := range callers {
		switch first := i+1 < len(callers) && pyBase(callers[i+1]) == "_bootstrap_inner"; {
		case tail(f.path) == "logging/handlers.py" || f.file == "queue.py":
		case f.file == "threading.py" || strings.HasSuffix(f.file, "/threading.py"), first, f.fn == "<module>":
			return n <= 1
		case !worksAbove(f), slices.ContainsFunc(pyPlaces, func(p pyPlace) bool { return p.does == idle && p.has(f) }):
			return n <= 1
		default:
			n++
		}
	}
	return n <= 1
}

// pythonsOwn reports whether a frame is of the modules in which Python's threads start and wait.
func pythonsOwn(f frame) bool {
	switch f.file[strings.LastIndexByte(f.file, '/')+1:] {
	case "threading.py", "queue.py", "selectors.py":
		return true
	}
	return false
}

// pyCaller is the innermost function that is not of Python's own waits, with its place.
func (t *thread) pyCaller() string {
	for _, f := range t.frames {
		if !pythonsOwn(f) {
			return fmt.Sprintf("%s (%s:%s)", f.fn, f.file, f.args)
		}
	}
	return t.where()
}

// worksAbove reports whether a frame is of other code than the libraries that wait for work.
func worksAbove(f frame) bool {
	path := "/" + strings.ReplaceAll(f.path, "\\", "/")
	for _, p := range []string{"/threading.py", "/queue.py", "/selectors.py", "/celery/", "/kombu/",
		"/amqp/", "/billiard/",
		"/apscheduler/", "/gunicorn/arbiter.py"} {
		if strings.Contains(path, p) && !strings.HasSuffix(path, "/trace.py") {
			return false
		}
	}
	return true
}

// poolFrame reports whether a frame is of a pool of connections.
func poolFrame(f frame) bool {
	return slices.ContainsFunc(pyPlaces, func(p pyPlace) bool { return p.does == pooled && p.has(f) })
}

// servesFrame reports whether a frame is of a server that reads a request.
func servesFrame(f frame) bool {
	for _, p := range []string{"http/server.py", "socketserver.py", "gunicorn/http/",
		"gunicorn/workers/", "cheroot/", "wsgiref/",
		"werkzeug/serving.py", "gevent/pywsgi.py", "eventlet/wsgi.py"} {
		if strings.Contains(f.path, p) || f.file == p {
			return true
		}
	}
	return false
}

// permit takes a thread that waits in the function at a place for a semaphore's permit, and reports
// whether it does. Python 3's locks are in C and have no such frame; Python 2's have. A semaphore's
// __enter__ is its acquire, so that above a frame of that name something else waits.
func (t *thread) permit(at int) bool {
	if at+1 >= len(t.frames) || pyBase(t.frames[at]) != "acquire" ||
		strings.Contains(t.frames[at].fn, "RLock") || pyBase(t.frames[at+1]) == "__enter__" ||
		!strings.HasSuffix(t.frames[at].file, "threading.py") ||
		at == 0 && (t.old || strings.Contains(t.frames[at].path, "python2")) {
		return false
	}
	t.doing, t.shared, t.site = signal, "a semaphore's permit", t.pyCaller()
	return true
}

// permits adds what fits an empty pool: threads that wait within their work for a permit, or for
// what a queue gives. It reports whether there is one.
func (d *dump) permits(r *attach.Reading) bool {
	n, of := 0, map[string]int{}
	for _, t := range d.threads {
		if t.doing == signal && t.shared != "" {
			n++
			of[t.shared+", in "+t.site]++
		}
	}
	if n == 0 {
		return false
	}
	r.State = attach.CannotTell
	most := attach.Largest(of)[0]
	line := fmt.Sprintf("%s for %s", waits(of[most]), most)
	r.Figures = append([]string{line}, r.Figures...)
	r.Means = "Within their work, threads wait for a permit or for what a queue gives: look at what those do that have it, or put into it."
	if of[most] > 2 {
		r.Signs = append(r.Signs, attach.Sign{Cause: "pool-exhaustion", Grade: attach.Candidate,
			Share: share(of[most], d.total()), Proof: []string{line}})
	}
	return true
}
