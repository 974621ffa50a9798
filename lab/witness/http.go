package witness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Load is what clients send to an HTTP service. The moments come from the same seed in every run,
// so that ill and cured get the same load.
type Load struct {
	URL     string
	Clients int           // each with one request at a time; with Rate: how many requests there may be at once
	Think   time.Duration // mean pause of a client after an answer
	// Rate is how many requests start each second, whatever happens to earlier ones, as with many
	// users. Clients which wait for their answers send less while the service stalls, and so hardly
	// see the stall. A request counts from the moment at which it was due. 0: requests come from
	// Clients and Think.
	Rate float64
	// SlowReaders is how many of the clients read an answer at ReadRate bytes a second, as over a
	// bad link. The service waits for them where its answer is larger than the kernel's buffers.
	SlowReaders, ReadRate int
}

// HTTP sends the load, and answers marks. It returns at the end of standard input.
func HTTP(name string, l Load) error {
	quick := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.Clients}, Timeout: time.Minute}
	slow := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.Clients, DialContext: smallBuffer}, Timeout: time.Minute}
	one := func(i int) (lost time.Duration, err error) {
		client, rate := quick, 0
		if i < l.SlowReaders {
			client, rate = slow, l.ReadRate
		}
		resp, err := client.Get(l.URL)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		if err := take(resp.Body, rate); err != nil {
			return 0, err
		}
		if resp.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("answer %s", resp.Status)
		}
		ns, _ := strconv.ParseInt(resp.Header.Get(LostHeader), 10, 64)
		return time.Duration(ns), nil
	}
	// The first answer shows that the service is there.
	if _, err := one(l.Clients); err != nil {
		return err
	}
	series := NewSeries(name)
	add := func(begin time.Time, i int) {
		lost, err := one(i)
		series.AddLost(begin, lost, err)
	}
	if l.Rate > 0 {
		go arrive(l, add, series)
	} else {
		for i := range l.Clients {
			go func() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				time.Sleep(time.Duration(random.Float64() * float64(l.Think)))
				for {
					add(time.Now(), i)
					if l.Think > 0 {
						time.Sleep(time.Duration(random.ExpFloat64() * float64(l.Think)))
					}
				}
			}()
		}
	}
	Ready(os.Stdout)
	return Serve(os.Stdin, os.Stdout, series)
}

// take reads an answer at bytesPerSecond; 0: as fast as it comes.
func take(r io.Reader, bytesPerSecond int) error {
	const piece = 16 << 10
	for {
		n, err := io.CopyN(io.Discard, r, piece)
		if bytesPerSecond > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(bytesPerSecond))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// smallBuffer connects with a small receive buffer, so that what a slow client has not read yet
// stays with the service.
func smallBuffer(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 32<<10) }); cerr != nil {
			return cerr
		}
		return err
	}}
	return d.DialContext(ctx, network, addr)
}

// arrive starts requests at the moments of a Poisson process. A request without a free place fails.
func arrive(l Load, add func(time.Time, int), series *Series) {
	random := rand.New(rand.NewPCG(1, 0))
	places := make(chan struct{}, l.Clients)
	for due := time.Now(); ; {
		due = due.Add(time.Duration(random.ExpFloat64() / l.Rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		select {
		case places <- struct{}{}:
			go func() {
				add(due, l.Clients)
				<-places
			}()
		default:
			series.Add(due, fmt.Errorf("more than %d at once", l.Clients))
		}
	}
}
