package symbol

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
)

// TestPaged: it reads what the file's own ReadAt reads, at its end too.
func TestPaged(t *testing.T) {
	file := make([]byte, 3*pageSize+100)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range file {
		file[i] = byte(rnd.Uint32())
	}
	for _, size := range []int{0, 1, pageSize, 2*pageSize - 1, len(file)} {
		want := bytes.NewReader(file[:size])
		p := &paged{r: want}
		for range 500 {
			off, n := rnd.Int64N(int64(size)+10), rnd.IntN(2*pageSize)
			a, b := make([]byte, n), make([]byte, n)
			gotA, errA := want.ReadAt(a, off)
			gotB, errB := p.ReadAt(b, off)
			if n > 0 && (gotA != gotB || (errA == io.EOF) != (errB == io.EOF)) || !bytes.Equal(a, b) {
				t.Fatalf("%d bytes at %d of %d: got %d, %v, want %d, %v", n, off, size, gotB, errB, gotA, errA)
			}
		}
	}
}
