// Package witness measures what a case's clients see of a service from outside: how long each
// request takes. No detector reads it; diagnoses are compared with it.
//
// A client process records into Series and calls Serve, which answers the lab over standard input
// and output. The lab sends the line "mark" and gets a line of JSON: the figures since the last
// mark. "mark all" also gives every request, so that the lab can pick those of a stretch of time
// afterwards. The end of the input ends the process: when the lab dies, however it dies, its
// processes end.
package witness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Figures sum up one series between two marks.
type Figures struct {
	Name   string        `json:"name"`
	N      int           `json:"n"`
	Failed int           `json:"failed"`
	Wall   time.Duration `json:"wall_ns"` // between the marks
	Mean   time.Duration `json:"mean_ns"`
	Slow   time.Duration `json:"slow_ns"` // mean of the slowest 1 %, at least 10
	P50    time.Duration `json:"p50_ns"`
	P99    time.Duration `json:"p99_ns"`
	Max    time.Duration `json:"max_ns"`

	All []Request `json:"all,omitempty"` // for "mark all", from programs which can give it
}

// Request holds three numbers in ns: its start since the Unix epoch, how long it took, and how much
// of that it lost to the trouble of the case, as the service itself measures it; 0 where the
// service does not say.
type Request [3]int64

// LostHeader is the header in which a service says how many ns a request lost. They are measured
// where the trouble is injected.
const LostHeader = "Lost-Ns"

// String is the figures in words, without the name.
func (f Figures) String() string {
	if f.N == 0 {
		return fmt.Sprintf("no answer in %.1f s (%d failed)", f.Wall.Seconds(), f.Failed)
	}
	s := fmt.Sprintf("%.0f/s, p50 %s, p99 %s, max %s", float64(f.N)/f.Wall.Seconds(), ms(f.P50), ms(f.P99), ms(f.Max))
	if f.Failed > 0 {
		s += fmt.Sprintf(", %d failed", f.Failed)
	}
	return s
}

func ms(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.0f ms", float64(d)/1e6)
}

// Series records durations; many goroutines may.
type Series struct {
	name   string
	mu     sync.Mutex
	since  time.Time
	all    []Request
	failed int
}

// NewSeries makes an empty series.
func NewSeries(name string) *Series { return &Series{name: name, since: time.Now()} }

// Add records that a request which started at begin ends now.
func (s *Series) Add(begin time.Time, err error) { s.AddLost(begin, 0, err) }

// AddLost is Add for a request whose service says what it lost.
func (s *Series) AddLost(begin time.Time, lost time.Duration, err error) {
	d := time.Since(begin)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed++
		return
	}
	s.all = append(s.all, Request{begin.UnixNano(), int64(d), int64(lost)})
}

// Mark gives the figures since the last mark; with all, every request too. Quantiles are nearest
// ranks of the sorted durations.
func (s *Series) Mark(all bool) Figures {
	s.mu.Lock()
	taken, failed, since := s.all, s.failed, s.since
	s.all, s.failed, s.since = nil, 0, time.Now()
	s.mu.Unlock()
	f := Figures{Name: s.name, N: len(taken), Failed: failed, Wall: time.Since(since)}
	if all {
		f.All = taken
	}
	if len(taken) > 0 {
		took := make([]time.Duration, len(taken))
		for i, r := range taken {
			took[i] = time.Duration(r[1])
		}
		slices.Sort(took)
		f.Mean = mean(took)
		f.P50, f.P99, f.Max = took[(len(took)-1)/2], took[(len(took)-1)*99/100], took[len(took)-1]
		f.Slow = mean(took[len(took)-min(len(took), max(10, len(took)/100)):])
	}
	return f
}

func mean(l []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range l {
		sum += d
	}
	return sum / time.Duration(len(l))
}

// Few is how many clients there may be at most, as an emulated machine cannot serve more or a short
// recording cannot hold more; 0: any number.
func Few() int {
	n, _ := strconv.Atoi(os.Getenv("LAB_CLIENTS"))
	return n
}

// Ready says to the lab that this process serves, and where: pairs of key and value.
func Ready(w io.Writer, pairs ...string) {
	line := []string{"ready"}
	for i := 0; i+1 < len(pairs); i += 2 {
		line = append(line, pairs[i]+"="+pairs[i+1])
	}
	fmt.Fprintln(w, strings.Join(line, " "))
}

// Serve answers marks until r ends.
func Serve(r io.Reader, w io.Writer, series ...*Series) error {
	in := bufio.NewScanner(r)
	for in.Scan() {
		if in.Text() != "mark" && in.Text() != "mark all" {
			return fmt.Errorf("read command: %q, want mark or mark all", in.Text())
		}
		all := make([]Figures, 0, len(series))
		for _, s := range series {
			all = append(all, s.Mark(in.Text() == "mark all"))
		}
		if err := json.NewEncoder(w).Encode(all); err != nil {
			return err
		}
	}
	return in.Err()
}
