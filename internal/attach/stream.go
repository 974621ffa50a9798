package attach

import (
	"bytes"
	"fmt"
	"io"
)

// Bounds of a file that is too long to be read whole.
const (
	WholeText   = 4 << 20 // a text of this size is cut as a whole
	wholeLines  = 40_000  // unless it has more lines: one takes more memory than its text
	windowSize  = 256 << 10
	largeWindow = 4 << 20 // of one part that goes on
	largeLines  = 35_000  // of it
	logLines    = 4096    // of a scattered one, which later lines are added to
	behindMark  = 10      // lines behind one with a mark that may belong to it
	mostLines   = 30_000  // of one scattered part
	mostRows    = 28_000  // of a kind with rows that are read
	mostOthers  = 60_000  // lines of all other parts of a long file
	mostParts   = 100     // of one kind of a long file
	longestLine = 1 << 20
	utf16Text   = 2 << 20 // what is read of a long text in UTF-16
)

// Stream cuts a text of any length. One of up to 4 MiB is cut as Cut does; Long has the rules for a
// longer one. The notes say what was not looked at.
func Stream(file string, r io.Reader, kinds *Kinds) (parts []*Part, unknown []Range, notes []string, err error) {
	head, err := Head(r)
	if err != nil || Whole(head) {
		parts, unknown = cutAll(file, head, kinds)
		return parts, unknown, nil, err
	}
	parts, notes, err = Long(file, head, r, kinds)
	return parts, nil, notes, err
}

// Whole reports whether a text, of which head is what Head has read, is cut as a whole.
func Whole(head []byte) bool {
	return len(head) <= WholeText && bytes.Count(head, []byte("\n")) <= wholeLines
}

// Head reads a text that is held as a whole, or one byte more than that of a longer one. Where it
// ends with an error, what came before is returned as well.
func Head(r io.Reader) ([]byte, error) {
	const all = WholeText + 1
	var head []byte
	for size := 4 << 10; ; size *= 8 { // most members of archives are small
		head = append(make([]byte, 0, min(size, all)), head...)
		n, err := io.ReadFull(r, head[len(head):cap(head)])
		head = head[:len(head)+n]
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			if len(head) < cap(head)/2 { // it may be held for long
				head = append(make([]byte, 0, len(head)), head...)
			}
			return head, nil
		case err != nil, len(head) == all:
			return head, err
		}
	}
}

// leftText says that a part is not all of its file's lines; "" where it is.
func (p *Part) leftText() string {
	switch {
	case p.Left > 0:
		return fmt.Sprintf("a long file: its lines from %d on are left out", p.Last()+1)
	case p.Left < 0:
		return fmt.Sprintf("a long file: this part goes on behind line %d, which is not read", p.Last())
	}
	return ""
}
