package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// entry is a part of a batch. A batch is a count of 16 bits, and as many entries. An entry is an id
// of 64 bits, a length of 16 bits, and a key (to the store) or a value (from the store).
type entry struct {
	id   uint64
	data []byte
}

const maxBatch = 128

func writeBatch(w *bufio.Writer, batch []entry) error {
	var b [10]byte
	binary.BigEndian.PutUint16(b[:2], uint16(len(batch)))
	w.Write(b[:2])
	for _, e := range batch {
		binary.BigEndian.PutUint64(b[:8], e.id)
		binary.BigEndian.PutUint16(b[8:], uint16(len(e.data)))
		w.Write(b[:])
		w.Write(e.data)
	}
	return w.Flush() // gives the first error of the writes before it
}

func readBatch(r *bufio.Reader, batch []entry) ([]entry, error) {
	var b [10]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(b[:2]))
	if n > maxBatch {
		return nil, fmt.Errorf("read batch: %d entries, at most %d", n, maxBatch)
	}
	batch = batch[:0]
	for range n {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, err
		}
		e := entry{id: binary.BigEndian.Uint64(b[:8]), data: make([]byte, binary.BigEndian.Uint16(b[8:]))}
		if _, err := io.ReadFull(r, e.data); err != nil {
			return nil, err
		}
		batch = append(batch, e)
	}
	return batch, nil
}
