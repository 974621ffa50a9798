package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"runtime"
)

// startJob compresses and hashes blocks of data without a pause, as a reindexing or a backup does.
// It reuses its memory, so that the garbage collector plays no part in this case.
func startJob(goroutines int) {
	for i := range goroutines {
		go archive(rand.New(rand.NewPCG(1, uint64(i))))
	}
}

func archive(random *rand.Rand) {
	block := make([]byte, 64<<10)
	for i := range block {
		block[i] = byte('a' + random.IntN(16))
	}
	var out bytes.Buffer
	z := gzip.NewWriter(io.Discard)
	for {
		out.Reset()
		z.Reset(&out)
		z.Write(block)
		z.Close()
		sum := sha256.Sum256(out.Bytes())
		copy(block[random.IntN(len(block)-len(sum)):], sum[:]) // the next block differs
	}
}

// startSpinners starts goroutines which look for work again and again, and yield their P in
// between. Each P always has one of them to run next, and so never looks at the network. A runnable
// goroutine waits for only a few short turns.
func startSpinners(goroutines int) {
	for range goroutines {
		go spin()
	}
}

func spin() {
	var sum [32]byte
	for {
		for range 1000 { // some 100 us
			sum = sha256.Sum256(sum[:])
		}
		runtime.Gosched()
	}
}
