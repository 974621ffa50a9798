package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// readyLoop counts calls of epoll_wait that return events at once, with no other call of the thread
// between them: nobody deals with what they report, and the program goes round.
type readyLoop struct {
	n    map[int]int     // in a row, by thread
	at   map[int]float64 // when the last one was entered
	most int             // of any thread
}

// "epoll_wait(4, [{events=EPOLLIN, data={u32=30, u64=30}}], 64, 500) = 1"
var epollReady = pattern.New(`^epoll_p?wait2?\(.*\)\s*= [1-9]\d*(?: |$)`)

// atOnceAgain is within how many seconds the next call must follow: the first one did not wait.
const atOnceAgain = 0.005

// line takes a call. Only traces with times tell that nothing waited.
func (l *readyLoop) line(text string, c *tracedCall) {
	if l.n == nil {
		l.n, l.at = map[int]int{}, map[int]float64{}
	}
	if !strings.HasPrefix(c.name, "epoll_") || c.name == "epoll_ctl" || c.open || c.resumed || c.at < 0 ||
		c.relative || !epollReady.MatchString(bare(text)) || len(l.n) >= most {
		delete(l.n, c.tid)
		return
	}
	if d := c.at - l.at[c.tid]; l.n[c.tid] > 0 && (d < 0 || d > atOnceAgain) {
		l.n[c.tid] = 0
	}
	l.n[c.tid]++
	l.at[c.tid] = c.at
	l.most = max(l.most, l.n[c.tid])
}

// leastReady is how many such calls in a row are no chance.
const leastReady = 4

// loops says that a program goes round in epoll_wait, if the trace shows all of its calls.
func (t *callTrace) loops(r *attach.Reading, command string) bool {
	if t.ready.most < leastReady || strings.Contains(command, " -e") || strings.Contains(command, "--trace") {
		return false
	}
	line := fmt.Sprintf("epoll_wait returned events %d times in a row within milliseconds, and the thread made no other call between", t.ready.most)
	r.Figures = append([]string{line}, r.Figures...)
	r.Signs = append(r.Signs, attach.Sign{Cause: "spinning", Grade: attach.Candidate, Proof: []string{line}})
	r.Means = "What epoll_wait reports is not read, written or closed, so the next one returns at once as well: the program goes round, unless the trace leaves other calls out."
	r.Next = append(r.Next, ask("strace -f -T -tt -p PID", t.pid, "all calls, and how long each took"))
	return true
}
