package attach

import (
	"bytes"
	"io"
)

// window is a stretch of a long text. It is read on as it is used up.
type window struct {
	r    io.Reader
	buf  []byte
	at   int   // what is used up
	off  int64 // where buf starts in the text
	own  bool  // buf is the window's, and may be written over
	done bool  // nothing follows
	err  error
}

// more reads until n bytes are there, or the text's end.
func (w *window) more(n int) {
	rest := len(w.buf) - w.at
	if w.done || rest >= n {
		return
	}
	n = max(n, windowSize)
	into := w.buf[:0]
	if !w.own || cap(into) < n || cap(into) > 2*n { // a large one is not kept for small needs
		into, w.own = make([]byte, 0, n), true
	}
	into = append(into, w.buf[w.at:]...)
	w.off += int64(w.at)
	w.at = 0
	got, err := io.ReadFull(w.r, into[rest:n])
	w.buf = into[:rest+got]
	if err != nil {
		w.done = true
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			w.err = err
		}
	}
}

// lines are the whole lines that are there. A line that is longer than the window is cut.
func (w *window) lines() []byte {
	data := w.buf[w.at:]
	if w.done {
		return data
	}
	if end := bytes.LastIndexByte(data, '\n') + 1; end > 0 {
		return data[:end]
	}
	return data
}

// pos is where the window's next byte stands in the text.
func (w *window) pos() int64 { return w.off + int64(w.at) }

// most returns how many bytes of data the first lines of it are: at most so many lines and bytes,
// and at least one line.
func most(data []byte, lines, size int) int {
	end := 0
	for n := 0; n < lines && end < len(data); n++ {
		i := bytes.IndexByte(data[end:], '\n') + 1
		if i == 0 {
			i = len(data) - end
		}
		if end > 0 && end+i > size {
			break
		}
		end += i
	}
	return end
}
