package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"io"
	"math/rand/v2"
)

// startJob compresses and hashes blocks of data without a pause, as a reindexing or a backup does. It
// reuses its memory: the garbage collector has no part in this case.
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

// startRelays begins pairs of goroutines that hand a number to and fro, with a little work on it each time. A P that runs one always has the other to run
// next: it never comes to look at the network.
func startRelays(pairs int) {
	for range pairs {
		there, back := make(chan [32]byte), make(chan [32]byte)
		go relay(there, back)
		go relay(back, there)
		there <- [32]byte{}
	}
}

func relay(from, to chan [32]byte) {
	for sum := range from {
		for range 100 {
			sum = sha256.Sum256(sum[:])
		}
		to <- sum
	}
}
