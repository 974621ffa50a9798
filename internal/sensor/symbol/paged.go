package symbol

import "io"

const (
	pageSize = 4096
	maxPages = 512 // 2 MiB
)

// paged keeps the pages of a file that were read: a look-up in Go's table is some twenty reads of a
// few bytes, most of them at the same places. It is for one goroutine at a time.
type paged struct {
	r     io.ReaderAt
	pages map[int64][]byte
}

// ReadAt is as io.ReaderAt's.
func (p *paged) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return p.r.ReadAt(b, off)
	}
	for n < len(b) {
		at := off + int64(n)
		page, err := p.page(at / pageSize)
		if skip := at % pageSize; skip < int64(len(page)) {
			n += copy(b[n:], page[skip:])
			if len(page) == pageSize {
				continue
			}
		}
		if n < len(b) && len(page) < pageSize {
			if err == nil {
				err = io.EOF
			}
			return n, err
		}
	}
	return n, nil
}

// page returns a page, which is short at the end of the file. A page that failed otherwise is not
// kept.
func (p *paged) page(i int64) ([]byte, error) {
	if b, ok := p.pages[i]; ok {
		return b, nil
	}
	b := make([]byte, pageSize)
	n, err := p.r.ReadAt(b, i*pageSize)
	b = b[:n]
	if err != nil && err != io.EOF {
		return b, err
	}
	if p.pages == nil || len(p.pages) >= maxPages {
		p.pages = map[int64][]byte{}
	}
	p.pages[i] = b
	return b, nil
}
