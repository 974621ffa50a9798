package collect

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/need"
)

// procMembers are the collectors of this machine's /proc and cgroups, which write readings.
func procMembers() (out []*Local) {
	for _, c := range Locals() {
		if c.Tier == TierSystem {
			out = append(out, c)
		}
	}
	return out
}

// What the collectors bring of a live process is read back without an error, and has what each is
// for.
func TestProcLive(t *testing.T) {
	need.Linux(t)
	ctx, cancel := context.WithTimeout(context.Background(), 1200*time.Millisecond)
	defer cancel()
	p := Process{PID: os.Getpid(), NSPID: os.Getpid()}
	var items []format.Item
	for _, c := range procMembers() {
		if err := c.Probe(p); err != nil {
			t.Logf("%s: %v", c.Name, err)
			continue
		}
		var b bytes.Buffer
		var cost *evidence.Cost
		done := make(chan error, 1)
		go func() { x, err := c.Record(ctx, p, &b); cost = x; done <- err }()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		t.Logf("%s: %d bytes, %d files, %.2f ms of CPU", c.Name, b.Len(), cost.Records, float64(cost.CPUNS)/1e6)
		if dir := os.Getenv("WHYSTALL_KEEP"); dir != "" {
			os.WriteFile(dir+"/"+c.Member, b.Bytes(), 0o600)
		}
		items = append(items, format.Item{Name: c.Member, Data: b.Bytes()})
	}
	set, kinds, problems := format.Gather(items)
	for i, p := range problems {
		if p != nil || kinds[i] != format.KindReadings {
			t.Errorf("%s: %s: %v", items[i].Name, kinds[i], p)
		}
	}
	for _, s := range strings.Fields(`/process/cpu:ns /process/rss:bytes /process/threads:threads /process/rss/anon:bytes /process/cpus-allowed:cpus
		/process/run:ns /process/switches/voluntary:switches /host/cpus:cpus /host/steal:ns /host/vmstat/faults:faults /host/memory/free:bytes /host/kernel:text`) {
		if !set.Has(s) {
			t.Errorf("nothing of %s", s)
		}
	}
	if g, _, ok := set.Delta("/host/cpu/idle:ns"); !ok || g < 0 {
		t.Errorf("idle grew by %v, %v", g, ok)
	}
}
