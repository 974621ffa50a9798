package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/metrics"

	"github.com/whystall/whystall/exectrace"
	"golang.org/x/exp/trace"
)

// child reads a trace in this process. It prints what the table needs besides rusage: the number of
// events, and the bytes of heap which the runtime took from the system. No process has less memory
// than that.
func child(reader, name string) error {
	if f := helpers[reader]; f != nil {
		return f(name)
	}
	read := map[string]func(string) (int64, error){
		"xexp": readXExp, "totals": readTotals, "events": readEvents, "records": readRecords,
	}[reader]
	if read == nil {
		return fmt.Errorf("no reader %q", reader)
	}
	events, err := read(name)
	if err != nil {
		return fmt.Errorf("read %s with %s: %w", name, reader, err)
	}
	heap := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(heap)
	var bytes uint64
	for _, s := range heap {
		bytes += s.Value.Uint64()
	}
	fmt.Printf("events=%d heap=%d\n", events, bytes)
	return nil
}

// readXExp has the reference reader do its least: it orders and decodes events, and keeps nothing.
func readXExp(name string) (events int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, err := trace.NewReader(f)
	if err != nil {
		return 0, err
	}
	for {
		if _, err := r.ReadEvent(); errors.Is(err, io.EOF) {
			return events, nil
		} else if err != nil {
			return events, err
		}
		events++
	}
}

// readTotals adds up the states of all actors. It asks for each goroutine's sums, so that the
// reader has to make them.
func readTotals(name string) (events int64, err error) {
	t, err := exectrace.Open(name, exectrace.Options{})
	if err != nil {
		return 0, err
	}
	defer t.Close()
	goroutines := 0
	totals := t.Totals(func(*exectrace.GoroutineTotal) { goroutines++ })
	if goroutines == 0 || len(totals.Procs) == 0 {
		return 0, errors.New("no goroutines or no Ps")
	}
	return t.Stats().Events, t.Err()
}

// readEvents does what the reference reader's loop does: each event is decoded and in order, here
// with states.
func readEvents(name string) (events int64, err error) {
	t, err := exectrace.Open(name, exectrace.Options{})
	if err != nil {
		return 0, err
	}
	defer t.Close()
	for block := range t.Blocks() {
		events += int64(len(block))
	}
	return events, t.Err()
}

// readRecords reads the same events in their small form, as explain does.
func readRecords(name string) (events int64, err error) {
	t, err := exectrace.Open(name, exectrace.Options{})
	if err != nil {
		return 0, err
	}
	defer t.Close()
	for batch := range t.Batches() {
		events += int64(len(batch.Records))
	}
	return events, t.Err()
}
