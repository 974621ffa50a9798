package exectrace_test

import (
	"fmt"
	"log"
	"time"

	"github.com/whystall/whystall/exectrace"
)

// How long did goroutines wait for a P, by the function that they started with?
func ExampleTrace_Totals() {
	tr, err := exectrace.Open("testdata/srv-go1.26.trace", exectrace.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer tr.Close()
	sum := tr.Totals(nil)
	if err := tr.Err(); err != nil {
		log.Fatal(err)
	}
	for _, e := range sum.Entries[:3] {
		fmt.Printf("%-24s %5d goroutines: %v runnable, %v running\n", tr.String(e.Entry), e.Goroutines,
			time.Duration(e.NS[exectrace.Runnable]).Round(time.Millisecond),
			time.Duration(e.NS[exectrace.Running]).Round(time.Millisecond))
	}
	fmt.Println(len(sum.Pauses), "pauses,", len(sum.GCs), "GC cycles")
	for _, g := range tr.Gaps() {
		fmt.Println("lost:", g.Reason)
	}
	// Output:
	// net/http.(*conn).serve      64 goroutines: 1m31.149s runnable, 2.271s running
	// runtime.gcBgMarkWorker       2 goroutines: 160ms runnable, 1.477s running
	// main.main.func3.1        51817 goroutines: 3m27.347s runnable, 1.422s running
	// 219 pauses, 109 GC cycles
}

// Which call sites block longest on a channel? A goroutine's Slot is a small number, so a slice
// holds what is known of each.
func ExampleTrace_Events() {
	tr, err := exectrace.Open("testdata/srv-go1.26.trace", exectrace.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer tr.Close()
	type wait struct {
		since exectrace.Time
		stack exectrace.StackID
	}
	var waits []wait
	total := map[exectrace.StackID]time.Duration{}
	for ev := range tr.Events() {
		switch ev.Kind {
		case exectrace.KindGap:
			clear(waits) // what was known is not any more
		case exectrace.KindGoroutine:
			for int(ev.Slot) >= len(waits) {
				waits = append(waits, wait{})
			}
			w := &waits[ev.Slot]
			if w.stack != 0 && ev.From == exectrace.Waiting {
				total[w.stack] += time.Duration(ev.Time - w.since)
			}
			*w = wait{}
			if ev.Reason == exectrace.ReasonChanRecv {
				*w = wait{ev.Time, ev.Stack}
			}
		}
	}
	if err := tr.Err(); err != nil {
		log.Fatal(err)
	}
	var worst exectrace.StackID
	for s, d := range total {
		if d > total[worst] {
			worst = s
		}
	}
	fmt.Println(total[worst].Round(time.Millisecond), "at")
	for _, f := range tr.Frames(nil, worst) {
		fmt.Println(" ", f.Func)
	}
	// Output:
	// 28.343s at
	//   runtime.chanrecv2
	//   main.main.func1
}
