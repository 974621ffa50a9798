package format

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

const gzipMagic = "\x1f\x8b"

// Gunzip unpacks at most limit bytes; data that is not gzip is returned as it is.
func Gunzip(data []byte, limit int64) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte(gzipMagic)) {
		return data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if int64(len(out)) > limit {
		return nil, fmt.Errorf("unpack: more than %d MiB", limit>>20)
	}
	return out, nil
}

// PeekGzip says what is in a gzip file whose first bytes are head, and returns a reader of its
// content. r reads the file from its start.
func PeekGzip(head []byte, r io.Reader) (Kind, io.Reader) {
	z, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return KindGzip, r
	}
	inner := make([]byte, HeadSize)
	n, _ := io.ReadFull(z, inner) // head may end in the middle of a block: what came is enough
	kind := Identify(inner[:n])
	if n == 0 {
		return KindGzip, r
	}
	return kind, &lazyGzip{r: r}
}

// lazyGzip opens the gzip stream at the first read: its reader reads ahead.
type lazyGzip struct {
	r io.Reader
	z *gzip.Reader
}

func (l *lazyGzip) Read(p []byte) (int, error) {
	if l.z == nil {
		z, err := gzip.NewReader(l.r)
		if err != nil {
			return 0, err
		}
		l.z = z
	}
	return l.z.Read(p)
}
