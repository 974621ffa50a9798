package collect

import (
	"os"
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/evidence"
)

// A process' own counters grow while it computes and reads.
func TestKernelCounter(t *testing.T) {
	c := newKernelCounter(os.Getpid(), func() int64 { return 0 })
	defer c.close()
	a := c.read()
	for range 100 {
		if _, err := os.ReadFile("/proc/self/stat"); err != nil {
			t.Fatal(err)
		}
	}
	b := c.read()
	d := difference(a.sums, b.sums)
	for _, n := range []evidence.Counted{evidence.CountedCPU, evidence.CountedQueued,
		evidence.CountedSwitches, evidence.CountedRead, evidence.CountedIdle} {
		if !a.seen[n] || !b.seen[n] {
			t.Errorf("%s is not read", n)
		}
	}
	if d.NS <= 0 || d.CPUNS <= 0 || d.Reads < 100 || d.ReadBytes <= 0 {
		t.Errorf("%+v", d)
	}
}

// The same of threads that are read one by one: a thread that ended takes nothing away.
func TestWaitsOneByOne(t *testing.T) {
	c := &kernelCounter{pid: os.Getpid(), tids: []int{os.Getpid(), 1 << 30}, last: map[int][2]int64{}}
	if queued, switches := c.waits(); queued != 0 || switches != 0 {
		t.Errorf("before anything was counted: %d, %d", queued, switches)
	}
	c.last[os.Getpid()] = [2]int64{-5, -7} // as if it had waited and switched since
	queued, switches := c.waits()
	if queued < 5 || switches < 7 {
		t.Errorf("%d, %d", queued, switches)
	}
	c.tids = c.tids[1:]
	if queued, _ := c.waits(); queued != -1 {
		t.Errorf("of no thread: %d", queued)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		of   []int
		n    int
		want []int
	}{{[]int{1, 2, 3}, 5, []int{1, 2, 3}}, {[]int{1, 2, 3, 4, 5, 6}, 3, []int{1, 3, 5}}, {nil, 3, nil}} {
		if got := spread(c.of, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d of %v: %v, want %v", c.n, c.of, got, c.want)
		}
	}
}

func TestPairsOf(t *testing.T) {
	const text = "TcpExt: A B\nTcpExt: 1 2\nIpExt: InOctets InNoECTPkts\nIpExt: 700 5\n"
	if got := pairsOf(text, "IpExt:"); got["InOctets"] != 700 || got["InNoECTPkts"] != 5 || len(got) != 2 {
		t.Errorf("%v", got)
	}
	if got := pairsOf("IpExt: InOctets\n", "IpExt:"); got != nil {
		t.Errorf("%v", got)
	}
}
