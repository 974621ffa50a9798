package witness

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"time"
)

// HTTP runs n clients of an HTTP service, each with a request at a time and a pause of think on average after it, and answers
// marks. It returns at the end of standard input.
func HTTP(name, url string, n int, think time.Duration) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}, Timeout: time.Minute}
	one := func() error {
		resp, err := client.Get(url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("answer %s", resp.Status)
		}
		return nil
	}
	// The first answer shows that the service is there.
	if err := one(); err != nil {
		return err
	}
	series := NewSeries(name)
	for range n {
		go func() {
			time.Sleep(time.Duration(rand.Float64() * float64(think)))
			for {
				begin := time.Now()
				series.Add(begin, one())
				if think > 0 {
					time.Sleep(time.Duration(rand.ExpFloat64() * float64(think)))
				}
			}
		}()
	}
	Ready(os.Stdout)
	return Serve(os.Stdin, os.Stdout, series)
}
