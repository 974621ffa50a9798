package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/whystall/whystall/lab/witness"
)

// clients sends requests to the gateway over n connections, on each one 2 ms after the last answer.
// One more connection asks the store itself, for comparison.
func clients(url, storeAddr string, n int) error {
	through, direct := witness.NewSeries("requests"), witness.NewSeries("the store, asked directly")
	hc := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	for i := range n {
		go func() {
			for k := i; ; k += n {
				begin := time.Now()
				err := get(hc, fmt.Sprintf("%s/value/key-%d", url, k))
				through.Add(begin, err)
				time.Sleep(2 * time.Millisecond)
			}
		}()
	}
	if err := askStore(storeAddr, direct); err != nil {
		return err
	}
	witness.Ready(os.Stdout)
	return witness.Serve(os.Stdin, os.Stdout, through, direct)
}

func get(hc *http.Client, url string) error {
	resp, err := hc.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, resp.Status)
	}
	return nil
}

func askStore(addr string, s *witness.Series) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	go func() {
		defer c.Close()
		r, w := bufio.NewReader(c), bufio.NewWriter(c)
		for {
			begin := time.Now()
			err := writeBatch(w, []entry{{id: 1, data: []byte("key")}})
			if err == nil {
				_, err = readBatch(r, nil)
			}
			s.Add(begin, err)
			if err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return nil
}
