package witness

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"
)

// Load is what clients ask of an HTTP service. Its moments are drawn from the same seed in every run, so that ill and cured have the same.
type Load struct {
	URL     string
	Clients int           // each with one request at a time, or at most so many requests at once with Rate
	Think   time.Duration // mean pause of a client after an answer
	// Rate is how many requests begin a second, whatever became of those before, as those of many people do: clients that wait for their
	// answers ask less while the service is stalled, and so hardly see it. A request counts from the moment it was due. 0: by Clients and Think.
	Rate float64
}

// HTTP makes the load, and answers marks. It returns at the end of standard input.
func HTTP(name string, l Load) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.Clients}, Timeout: time.Minute}
	one := func() (lost time.Duration, err error) {
		resp, err := client.Get(l.URL)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return 0, err
		}
		if resp.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("answer %s", resp.Status)
		}
		ns, _ := strconv.ParseInt(resp.Header.Get(LostHeader), 10, 64)
		return time.Duration(ns), nil
	}
	// The first answer shows that the service is there.
	if _, err := one(); err != nil {
		return err
	}
	series := NewSeries(name)
	add := func(begin time.Time) {
		lost, err := one()
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
					add(time.Now())
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

// arrive begins requests at the moments of a Poisson process. One for which there is no place fails.
func arrive(l Load, add func(time.Time), series *Series) {
	random := rand.New(rand.NewPCG(1, 0))
	places := make(chan struct{}, l.Clients)
	for due := time.Now(); ; {
		due = due.Add(time.Duration(random.ExpFloat64() / l.Rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		select {
		case places <- struct{}{}:
			go func() {
				add(due)
				<-places
			}()
		default:
			series.Add(due, fmt.Errorf("more than %d at once", l.Clients))
		}
	}
}
