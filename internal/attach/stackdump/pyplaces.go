package stackdump

import (
	"slices"
	"strings"
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

// has reports whether a frame is of this place. A file of the standard library stands in Python's
// own folder, or py-spy prints it without one: a program may have a queue.py of its own.
func (p pyPlace) has(f frame) bool {
	name := f.fn[strings.LastIndexByte(f.fn, '.')+1:]
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
	return at > 0 && at+1 < len(path) && f.file == path[at+1:] && f.file != "__init__.py" && !strings.Contains(f.file, "connection") &&
		f.file != "client.py" && f.file != "sync.py" && f.file != "impl.py"
}

// placeKnown takes what a thread does from a library's function in its stack, and reports whether
// there is one.
func (t *thread) placeKnown() bool {
	for i, f := range t.frames[:min(len(t.frames), 12)] {
		for _, p := range pyPlaces {
			if !p.has(f) || p.does == lock && i > 0 && (i > 1 || strings.Contains(t.frames[0].file, ".py")) || p.base && slices.ContainsFunc(t.frames[:i], worksAbove) {
				continue
			}
			t.doing, t.call = p.does, f.fn[strings.LastIndexByte(f.fn, '.')+1:]
			t.joins = p.file == "threading.py"
			if p.does == remote && slices.ContainsFunc(t.frames[i+1:min(len(t.frames), i+4)], servesFrame) {
				t.doing = idle // a connection that waits for its client's next request
			}
			if p.file == "queue.py" && slices.ContainsFunc(t.frames[i+1:min(len(t.frames), i+4)], poolFrame) {
				t.doing = pooled // the pool keeps its free connections in a queue
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

// worksAbove reports whether a frame is of other code than the libraries that wait for work.
func worksAbove(f frame) bool {
	path := "/" + strings.ReplaceAll(f.path, "\\", "/")
	for _, p := range []string{"/threading.py", "/queue.py", "/selectors.py", "/celery/", "/kombu/", "/amqp/", "/billiard/",
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
	for _, p := range []string{"http/server.py", "socketserver.py", "gunicorn/http/", "gunicorn/workers/", "cheroot/", "wsgiref/",
		"werkzeug/serving.py", "gevent/pywsgi.py", "eventlet/wsgi.py"} {
		if strings.Contains(f.path, p) || f.file == p {
			return true
		}
	}
	return false
}
