package export

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// writeFolded writes a line a stack: its frames, the outermost first, and nanoseconds.
func writeFolded(s *Source, w io.Writer) error {
	b := bufio.NewWriter(w)
	part := strings.NewReplacer(";", ":")
	for _, x := range s.waits() {
		for i, f := range x.frames {
			if i > 0 {
				b.WriteByte(';')
			}
			b.WriteString(part.Replace(f))
		}
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(x.ns, 10))
		b.WriteByte('\n')
	}
	return b.Flush()
}
