package goruntime

import "strings"

// waitKind is what a goroutine is doing, by its stack and state.
type waitKind int

const (
	waitOther waitKind = iota
	waitRun            // on a P, or runnable
	waitLock
	waitCond
	waitGroup
	waitChan // receive, send or select
	waitNet  // a socket or a pipe is not ready
	waitSleep
	waitSyscall
	waitRuntime // the runtime's own goroutines, which SIGQUIT prints
	waitC       // in C code, with a thread of its own
	waitAssist  // GC has to mark before it may allocate
	waitSema    // a lock or a WaitGroup: the stack that would tell is cut off
)

// wait is what one stack waits for.
type wait struct {
	kind waitKind
	// Of a lock.
	read   bool   // RLock
	addr   uint64 // of the lock; 0: not printed
	vague  bool   // the compiler is not sure of the address
	either bool   // a Mutex or an RWMutex
	site   frame  // who called Lock
	logger bool   // the lock is a logger's, or that of the file it writes
	fd     bool   // the lock is that of a file descriptor
	once   bool   // sync.Once
	pool   string // a limited thing that it waits for a turn of; "": none is known
	likely bool   // by the names of the pool's type and method only
	down   string // another server that it waits for; "": none is known
}

// classify says what a stack waits for.
func classify(s *stack) (w wait) {
	w.kind = stateKind(s)
	lockKind(s, &w)
	if w.kind == waitLock || w.kind == waitRun {
		return w
	}
	if w.pool = poolOf(s); w.pool == "" {
		w.pool = poolNamed(s, w.kind)
		w.likely = w.pool != ""
	}
	if w.pool == "" && w.kind != waitSleep {
		w.down = downstream(s)
	}
	return w
}

// stateKind goes by the state of the header, else by the frames of the runtime on top.
func stateKind(s *stack) waitKind {
	state := s.state
	if (state == "" || state == "syscall") && inC(s) {
		return waitC
	}
	switch {
	case strings.HasPrefix(state, "GC assist "):
		return waitAssist
	case strings.HasPrefix(state, "GC "), strings.HasSuffix(state, " (idle)"), state == "idle",
		strings.HasPrefix(state, "finalizer wait"), strings.HasPrefix(state, "cleanup wait"),
		strings.HasPrefix(state, "trace reader"):
		return waitRuntime
	case state == "running", state == "runnable", state == "copystack", state == "preempted":
		return waitRun
	case strings.HasPrefix(state, "chan "), strings.HasPrefix(state, "select"):
		return waitChan
	case state == "IO wait":
		return waitNet
	case state == "sleep":
		return waitSleep
	case state == "syscall":
		return waitSyscall
	case state == "sync.Cond.Wait":
		return waitCond
	case state == "sync.WaitGroup.Wait":
		return waitGroup
	}
	if s.writer() {
		return waitRun
	}
	for i, f := range s.frames {
		if i > 12 {
			break
		}
		switch fn := f.fn; {
		case fn == "runtime.chanrecv" || strings.HasPrefix(fn, "runtime.chanrecv") ||
			strings.HasPrefix(fn, "runtime.chansend") || fn == "runtime.selectgo" || fn == "runtime.block":
			return waitChan
		case pollWait(fn):
			return waitNet
		case fn == "time.Sleep":
			return waitSleep
		case fn == "sync.(*Cond).Wait":
			return waitCond
		case fn == "sync.(*WaitGroup).Wait":
			return waitGroup
		case strings.HasPrefix(fn, "syscall.Syscall"), strings.HasPrefix(fn, "syscall.syscall"),
			strings.HasPrefix(fn, "syscall.RawSyscall"),
			strings.HasPrefix(fn, "internal/runtime/syscall."), strings.HasPrefix(fn, "runtime/internal/syscall."):
			return waitSyscall
		}
	}
	if strings.HasPrefix(state, "semacquire") {
		if s.has("runtime.gcMarkDone", "runtime.gcAssistAlloc") {
			return waitAssist
		}
		return waitSema
	}
	if s.parked {
		return waitChan // all other waits have named frames
	}
	if s.pc != "" && len(s.frames) > 0 && s.count < manyRunning {
		return waitRun
	}
	return waitOther
}

// pollWait reports whether a function waits for a connection. Until Go 1.8 it was in net.
func pollWait(fn string) bool {
	return fn == "internal/poll.runtime_pollWait" || fn == "net.runtime_pollWait" || fn == "runtime.netpollblock"
}

// writer reports whether a stack without a state is of who writes the profile.
func (s *stack) writer() bool {
	return s.state == "" && len(s.frames) > 0 && strings.HasPrefix(s.frames[0].fn, "runtime/pprof.")
}

// inC reports whether a goroutine called C: cgo's calls have a stub in Go, below the runtime's.
func inC(s *stack) bool {
	for i, f := range s.frames {
		if i > 2 {
			break
		}
		if f.fn == "runtime.cgocall" || strings.Contains(f.fn, "._Cfunc_") || strings.Contains(f.fn, "._C2func_") {
			return true
		}
	}
	return false
}

// lockKind looks for a lock on top of the stack. Which argument has its address is by the
// runtime's sources: lockSlow's first one is the mutex. Those of inlined calls are not printed. A
// reader's semaphore is 12 bytes into its RWMutex, a writer's 8.
func lockKind(s *stack, w *wait) {
	at := -1
	var sema uint64
	unsure := false // of the semaphore's address
	for i, f := range s.frames {
		if i > 12 || at < 0 && i > 4 {
			break
		}
		arg := uint64(0)
		if len(f.args) > 0 {
			arg = f.args[0]
		}
		note := func(arg, offset uint64) { w.note(arg, offset, f.vague) }
		switch fn := strings.TrimPrefix(f.fn, "internal/"); {
		case fn == "sync.(*Mutex).lockSlow", fn == "sync.(*Mutex).Lock":
			at = i
			note(arg, 0)
		case fn == "sync.(*RWMutex).RLock":
			at, w.read = i, true
			note(arg, 0)
			w.note(sema, 12, unsure)
		case fn == "sync.(*RWMutex).Lock":
			at = i
			note(arg, 0)
			w.note(sema, 8, unsure)
		case fn == "sync.runtime_SemacquireMutex", fn == "sync.runtime_Semacquire":
			sema, unsure = arg, f.vague
			if fn == "sync.runtime_SemacquireMutex" && i == len(s.frames)-1 { // who calls it is cut off
				at, w.either = i, true
			}
		case fn == "sync.runtime_SemacquireRWMutexR":
			at, w.read = i, true
			note(arg, 12)
			sema, unsure = arg, f.vague
		case fn == "sync.runtime_SemacquireRWMutex":
			at = i
			note(arg, 8)
			sema, unsure = arg, f.vague
		case strings.HasPrefix(fn, "sync.(*Once)."):
			w.once = true
			at = max(at, i)
		case fn == "poll.(*fdMutex).rwlock", fn == "poll.(*FD).writeLock", fn == "poll.(*FD).readLock":
			at, w.fd = i, true
			note(arg, 0)
		}
	}
	isState := strings.HasPrefix(s.state, "sync.Mutex.") || strings.HasPrefix(s.state, "sync.RWMutex.")
	if at < 0 && !isState || w.once && w.addr == 0 && !s.has("sync.(*Mutex)", "internal/sync.(*Mutex)") {
		*w = wait{kind: w.kind}
		return
	}
	if w.kind == waitRun { // it is awake: it spins, or has just got it
		return
	}
	w.kind = waitLock
	w.read = w.read || s.state == "sync.RWMutex.RLock"
	for _, f := range s.frames[max(0, at+1):] {
		if !library(f.fn) {
			w.site = f
			break
		}
	}
	w.logger = loggers(s.frames[max(0, at+1):])
}

// firstHeap is below the addresses of Go's heap on 64 bits, and above those of a program's own
// variables.
const firstHeap = 1 << 36

// note keeps an address, given that of a part of the lock. Those that the compiler is not sure of
// count where no other is known, and only if they may be of the heap.
func (w *wait) note(arg, offset uint64, vague bool) {
	if arg <= 1<<16 || vague && arg < firstHeap || w.addr != 0 && (vague || !w.vague) {
		return
	}
	w.addr, w.vague = arg-offset, vague
}

// loggerParts are the parts of functions' names of loggers that serialise their callers.
var loggerParts = []string{
	"log.(*Logger).", "log/slog.", "log/syslog.", "go.uber.org/zap", "github.com/sirupsen/logrus",
	"github.com/rs/zerolog", "gopkg.in/natefinch/lumberjack",
	"k8s.io/klog", "github.com/golang/glog", "github.com/go-kit/log", "github.com/go-kit/kit/log",
	"github.com/cihub/seelog", "github.com/hashicorp/go-hclog",
	"github.com/inconshreveable/log15", "github.com/op/go-logging", "github.com/pingcap/log",
	"github.com/charmbracelet/log", "github.com/apex/log",
}

// loggers reports whether one of the first frames is a logger's: what waits there waits to log.
func loggers(frames []frame) bool {
	n := 0
	for _, f := range frames {
		if library(f.fn) {
			continue
		}
		if n++; n > 3 {
			return false
		}
		for _, p := range loggerParts {
			if strings.HasPrefix(f.fn, p) {
				return true
			}
		}
		if t := receiver(f.fn); strings.HasSuffix(t, "Logger)") || strings.HasSuffix(t, "logger)") {
			return true
		}
	}
	return false
}

// named maps the start of a function's name to words for people.
type named struct{ fn, words string }

// pools are calls that wait for their turn of something limited.
var pools = []named{
	{"database/sql.(*DB).conn", "a free database connection (database/sql)"},
	{"golang.org/x/sync/semaphore.(*Weighted).Acquire", "a permit of a semaphore"},
	{"github.com/jackc/puddle", "a free connection of pgx's pool"},
	{"github.com/go-redis/redis/internal/pool.(*ConnPool).waitTurn", "a free Redis connection"},
	{"github.com/go-redis/redis/v8/internal/pool.(*ConnPool).waitTurn", "a free Redis connection"},
	{"github.com/redis/go-redis/v9/internal/pool.(*ConnPool).waitTurn", "a free Redis connection"},
	{"github.com/gomodule/redigo/redis.(*Pool).waitVacantConn", "a free Redis connection"},
	{"golang.org/x/net/netutil.(*limitListener).acquire", "a place among the listener's connections"},
	{"golang.org/x/net/http2.(*ClientConn).awaitOpenSlotFor", "a free stream of an HTTP/2 connection"},
	{"net/http.(*http2ClientConn).awaitOpenSlotFor", "a free stream of an HTTP/2 connection"},
	{"golang.org/x/sync/errgroup.(*Group).Go", "a place in an errgroup with a limit"},
	{"go.mongodb.org/mongo-driver/x/mongo/driver/topology.(*pool).checkOut", "a free MongoDB connection"},
}

// poolOf looks at the first frames that are not the runtime's: below them the turn has come. A
// closure that such a call started runs: errgroup's Go.func1 has its place.
func poolOf(s *stack) string {
	n := 0
	for _, f := range s.frames {
		if library(f.fn) {
			continue
		}
		if n++; n > 3 {
			break
		}
		for _, p := range pools {
			if rest, ok := strings.CutPrefix(f.fn, p.fn); ok && !strings.HasPrefix(rest, ".func") &&
				(rest == "" || !strings.HasSuffix(p.fn, ".conn") || !isLetter(rest[0])) &&
				(n == 1 || !strings.HasPrefix(p.fn, "database/sql")) {
				return p.words
			}
		}
	}
	return ""
}

// http2Peer is who gives the permits to send on an HTTP/2 connection, by reading.
const http2Peer = "the other side of an HTTP/2 connection, which has to read before more may be sent (flow control)"

// childProcess is who ends a wait for one.
const childProcess = "a child process"

// servers are clients' calls that wait for an answer of another process.
var servers = []named{
	{"google.golang.org/grpc/transport.(*http2Server).Write", http2Peer},
	{"google.golang.org/grpc/internal/transport.(*http2Server).Write", http2Peer},
	{"google.golang.org/grpc/internal/transport.(*http2Server).write", http2Peer},
	{"google.golang.org/grpc/transport.(*http2Client).Write", http2Peer},
	{"google.golang.org/grpc/internal/transport.(*http2Client).Write", http2Peer},
	{"google.golang.org/grpc/internal/transport.(*http2Client).write", http2Peer},
	{"golang.org/x/net/http2.(*serverConn).writeDataFromHandler", http2Peer},
	{"net/http.(*http2serverConn).writeDataFromHandler", http2Peer},
	{"golang.org/x/net/http2.(*clientStream).awaitFlowControl", http2Peer},
	{"net/http.(*http2clientStream).awaitFlowControl", http2Peer},
	{"net/http.(*persistConn).roundTrip", "an HTTP server that this program calls"},
	{"net/http.(*http2ClientConn).RoundTrip", "an HTTP/2 server that this program calls"},
	{"net/http.(*http2ClientConn).roundTrip", "an HTTP/2 server that this program calls"},
	{"golang.org/x/net/http2.(*ClientConn).RoundTrip", "an HTTP/2 server that this program calls"},
	{"golang.org/x/net/http2.(*ClientConn).roundTrip", "an HTTP/2 server that this program calls"},
	{"net/http.(*Transport).dialConn", "an HTTP server that this program connects to"},
	{"net/http.(*Transport).getConn", "a connection to an HTTP server"},
	{"google.golang.org/grpc/internal/transport.(*Stream).waitOnHeader", "a gRPC server that this program calls"},
	{"google.golang.org/grpc/internal/transport.(*ClientStream).waitOnHeader", "a gRPC server that this program calls"},
	{"google.golang.org/grpc/internal/transport.(*recvBufferReader).readClient",
		"a gRPC server that this program calls"},
	{"google.golang.org/grpc.(*ClientConn).Invoke", "a gRPC server that this program calls"},
	{"google.golang.org/grpc.(*clientStream).RecvMsg", "a gRPC server that this program calls"},
	{"github.com/go-sql-driver/mysql.", "the MySQL server"},
	{"github.com/lib/pq.", "the PostgreSQL server"},
	{"github.com/jackc/pgx", "the PostgreSQL server"},
	{"github.com/jackc/pgconn", "the PostgreSQL server"},
	{"github.com/go-redis/redis", "the Redis server"},
	{"github.com/redis/go-redis", "the Redis server"},
	{"github.com/gomodule/redigo", "the Redis server"},
	{"go.mongodb.org/mongo-driver", "the MongoDB server"},
	{"go.etcd.io/etcd/client", "the etcd server"},
	{"github.com/tikv/client-go", "TiKV"},
	{"github.com/pingcap/tidb/store/tikv", "TiKV"},
	{"github.com/Shopify/sarama", "the Kafka broker"},
	{"github.com/IBM/sarama", "the Kafka broker"},
	{"github.com/segmentio/kafka-go", "the Kafka broker"},
	{"github.com/aws/aws-sdk-go", "an AWS service"},
	{"net._C2func_getaddrinfo", "the C library's resolution of names (getaddrinfo), which asks a name server"},
	{"net._C2func_getnameinfo", "the C library's resolution of names (getnameinfo), which asks a name server"},
	{"net._Cfunc_getaddrinfo", "the C library's resolution of names (getaddrinfo), which asks a name server"},
	{"net.(*Resolver).lookup", "a name server"},
	{"net.(*netFD).connect", "a server that it connects to"},
	{"net.(*sysDialer).", "a server that it connects to"},
	{"os/exec.(*Cmd).Wait", childProcess},
	{"os.(*Process).Wait", childProcess},
}

// downstream names the other side that a call waits for. A client's helper that reads in a loop is
// no call: its outermost frame is the client's own.
func downstream(s *stack) string {
	if len(s.frames) == 0 {
		return ""
	}
	last := s.frames[len(s.frames)-1].fn
	for _, d := range servers {
		if strings.HasPrefix(last, d.fn) {
			return ""
		}
	}
	for _, f := range s.frames {
		for _, d := range servers {
			if strings.HasPrefix(f.fn, d.fn) {
				return d.words
			}
		}
	}
	return ""
}

// idle reports whether a stack waits for somebody to come: an accept loop, a connection between two
// requests, a helper of a client, a signal.
func idle(s *stack) bool {
	return s.has("internal/poll.(*FD).Accept", "net.(*netFD).accept", "net/http.(*connReader).backgroundRead",
		"os/signal.", "net/http.(*persistConn).readLoop", "net/http.(*persistConn).writeLoop",
		"net/http.(*http2clientConnReadLoop)",
		"google.golang.org/grpc/internal/transport.(*controlBuffer).get", "net/http.readRequest",
		"net/http.(*conn).readRequest",
		"database/sql.(*DB).connectionOpener", "database/sql.(*DB).connectionCleaner",
		"database/sql.(*DB).connectionResetter", "runtime.goparkunlock", "runtime.bgsweep")
}
