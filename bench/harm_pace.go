package main

import (
	"context"
	"sync"
	"time"
)

// clock is the time by which requests are due, ns; tests have one of their own.
type clock interface {
	now() int64
	until(at int64) // returns at that time or soon after
}

// patience is how long a request waits in the clients' own queue before it is given up. Its latency
// is that much at least, and it is no answer.
const patience = 2 * time.Second

// pace is an open loop: a request is due at its time, whether the server has answered the others or
// not. A request for which no connection is free waits in the clients' queue, and that counts.
type pace struct {
	clock clock
	log   *log
	queue chan due

	mu   sync.Mutex
	rate float64 // requests a second
}

type due struct {
	number int
	at     int64
}

func newPace(c clock) *pace {
	return &pace{clock: c, log: &log{}, queue: make(chan due, 1<<16), rate: 100}
}

func (p *pace) setRate(r float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = r
}

func (p *pace) period() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(1e9 / max(p.rate, 1))
}

// run makes requests due until ctx ends. After a moment in which it did not run itself, those that
// were due meanwhile are late, not left out.
func (p *pace) run(ctx context.Context) {
	for at := p.clock.now(); ctx.Err() == nil; at += p.period() {
		p.clock.until(at)
		d := due{p.log.add(at), at}
		select {
		case p.queue <- d:
		default:
			p.log.end(d.number, at+int64(patience), failed)
		}
	}
}

// client sends requests one after another by send, which returns when the answer is there.
func (p *pace) client(ctx context.Context, send func() error) {
	for ctx.Err() == nil {
		var d due
		select {
		case <-ctx.Done():
			return
		case d = <-p.queue:
		}
		if p.clock.now()-d.at > int64(patience) {
			p.log.end(d.number, d.at+int64(patience), failed)
			continue
		}
		state := answered
		if err := send(); err != nil {
			state = failed
		}
		p.log.end(d.number, p.clock.now(), state)
	}
}
