package archive

import (
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// unpack opens a packed stream. The caller calls done when it has read what it wants.
func unpack(k kind, r *bufio.Reader) (out io.Reader, done func(), err error) {
	done = func() {}
	switch k {
	case gzipped:
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, packError(err)
		}
		return z, done, nil
	case bzipped: // at most 900 kB a block
		return bzip2.NewReader(r), done, nil
	case zstded:
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(MaxDictionary),
			zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, packError(err)
		}
		return z, z.Close, nil
	default:
		x, err := xz.NewReader(bufio.NewReader(&xzFrame{r: r}))
		if err != nil {
			return nil, nil, packError(err)
		}
		return x, done, nil
	}
}

// packError says what to do about what went wrong with a packed stream.
func packError(err error) error {
	var large *dictionaryError
	switch {
	case errors.As(err, &large):
		return large
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("zstd: it needs a window of more than %d MiB: unpack it first, with zstd -d --long=31", MaxDictionary>>20)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is cut off: what comes before is read; copy it again for the rest")
	}
	return err
}

type dictionaryError struct{ bytes int64 }

func (e *dictionaryError) Error() string {
	return fmt.Sprintf("xz: it needs a dictionary of %d MiB, and at most %d MiB are given: unpack it first, with xz -d", e.bytes>>20, MaxDictionary>>20)
}
