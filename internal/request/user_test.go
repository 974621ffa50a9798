package request

import (
	"context"
	"runtime/trace"
	"sync"
	"testing"
	"time"
)

// What a program marks as its tasks are its requests, whatever goroutines do in them. The requests
// of a queue's worker that marks regions are those.
func TestUser(t *testing.T) {
	const n = 40
	f, as := record(t, Options{}, func() {
		jobs := make(chan int)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range jobs {
				trace.WithRegion(context.Background(), "job", func() {
					trace.WithRegion(context.Background(), "part", func() { time.Sleep(100 * time.Microsecond) })
				})
			}
		})
		for range n {
			ctx, task := trace.NewTask(context.Background(), "resize")
			var parts sync.WaitGroup
			for range 3 {
				parts.Go(func() {
					trace.WithRegion(ctx, "part", func() { time.Sleep(time.Millisecond) })
				})
			}
			parts.Wait()
			task.End()
			jobs <- 1
		}
		// Tasks that end on the goroutine that did the work, while this one waits for it.
		for range n {
			_, task := trace.NewTask(context.Background(), "handed")
			done := make(chan bool)
			go func() {
				time.Sleep(100 * time.Microsecond)
				task.End()
				close(done)
			}()
			<-done
		}
		close(jobs)
		wg.Wait()
	})
	report(t, f, as)
	wellFormed(t, as)
	got := map[string]int64{}
	for _, id := range shown(f) {
		g := f.Groups()[id]
		got[g.Kind+" "+g.Name] = g.Count
		if ds := kept(as, id); g.Name == "resize" && ds[0] < time.Millisecond {
			t.Errorf("a task of a millisecond took %v", ds[0])
		}
	}
	if len(got) != 3 || got["task resize"] != n || got["task handed"] != n || got["region job"] != n {
		t.Errorf("got %v", got)
	}
}
