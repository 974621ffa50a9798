package main

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"net"
	"time"
)

// serveStore answers batches of keys with values made from them. Each connection has a goroutine.
func serveStore(ln net.Listener, delay time.Duration) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			r, w := bufio.NewReader(c), bufio.NewWriter(c)
			var batch []entry
			for {
				var err error
				if batch, err = readBatch(r, batch); err != nil {
					return
				}
				if delay > 0 && rand.IntN(100) == 0 {
					time.Sleep(delay)
				}
				for i := range batch {
					batch[i].data = bytes.Repeat(batch[i].data, 8)
				}
				if err := writeBatch(w, batch); err != nil {
					return
				}
			}
		}()
	}
}
