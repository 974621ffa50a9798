package format

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/whystall/whystall/internal/evidence"
)

// Kind is what a file is, known by its content. Its text is for people.
type Kind string

// What this room knows. The execution trace is only recognised here: exectrace parses it.
const (
	KindUnknown   Kind = "not known"
	KindEmpty     Kind = "empty"
	KindTrace     Kind = "a Go execution trace"
	KindPprof     Kind = "a pprof profile"
	KindGzip      Kind = "gzip"
	KindZip       Kind = "a zip"
	KindMutexText Kind = "a mutex profile as text"
	KindHeapText  Kind = "a heap profile as text"
	KindMetrics   Kind = "Prometheus metrics"
	KindVars      Kind = "expvar JSON"
	KindGCTrace   Kind = "gctrace lines"
	KindHTML      Kind = "a web page"
	KindRecords   Kind = "records as text"
)

// HeadSize is how many first bytes Identify wants to see; fewer are enough where the file is shorter.
const HeadSize = 8 << 10

// Identify tells what a file is by its first bytes. A gzip file is KindGzip: what is in it is for the caller to look
// at, with Gunzip.
func Identify(head []byte) Kind {
	switch {
	case len(head) == 0:
		return KindEmpty
	case bytes.HasPrefix(head, []byte("go 1.")) && len(head) >= 16 && bytes.HasPrefix(bytes.TrimLeft(head[5:16], "0123456789"), []byte(" trace")):
		return KindTrace
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return KindGzip
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return KindZip
	case bytes.HasPrefix(head, []byte("--- mutex:\n")):
		return KindMutexText
	case bytes.HasPrefix(head, []byte("heap profile: ")), bytes.HasPrefix(head, []byte(memStatsHead)):
		return KindHeapText
	}
	if looksLikeProto(head) {
		return KindPprof
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return KindUnknown
	}
	return identifyText(head)
}

// looksLikeProto recognises an uncompressed profile: all fields that head has room for are those of profile.proto, and a ValueType
// is among them. Go writes that first or, of a CPU profile, second.
func looksLikeProto(head []byte) bool {
	const valueTypes = 1<<1 | 1<<11
	const lengths, numbers = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<11 | 1<<13, 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<12 | 1<<13 | 1<<14 | 1<<15
	typed := false
	for n := 0; n < 32 && len(head) > 0; n++ {
		field, wire := head[0]>>3, head[0]&7
		size, used := binary.Uvarint(head[1:])
		switch {
		case head[0]&0x80 != 0 || used <= 0:
			return typed && len(head) < 10 // cut where head ends
		case wire == 2 && lengths>>field&1 == 1:
			if valueTypes>>field&1 == 1 {
				if !isValueType(head[1:]) {
					return false
				}
				typed = true
			}
			used += int(min(size, HeadSize))
		case wire == 0 && numbers>>field&1 == 1:
		default:
			return false
		}
		head = head[min(len(head), 1+used):]
	}
	return typed
}

// isValueType recognises a short message of two indexes, its length in front.
func isValueType(b []byte) bool {
	if len(b) == 0 || b[0] < 2 || b[0] > 22 || int(b[0]) >= len(b) {
		return false
	}
	return fields(b[1:1+b[0]], func(num uint64, wire int, _ uint64, _ []byte) error {
		if wire != 0 || num > 2 {
			return errWire
		}
		return nil
	}) == nil
}

// identifyText looks at the first lines. A log may begin with anything before its first gctrace line, so all of head is looked at.
func identifyText(head []byte) Kind {
	text := string(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	if !utf8.ValidString(text[:max(0, len(text)-utf8.UTFMax)]) {
		text = strings.ToValidUTF8(text, "?")
	}
	if kind := identifyProc(text); kind != KindUnknown {
		return kind
	}
	start := strings.ToLower(strings.TrimLeft(text, " \t\r\n"))
	if strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html") || strings.HasPrefix(start, "<?xml") || strings.HasPrefix(start, "<head") {
		return KindHTML
	}
	if strings.HasPrefix(start, "{") {
		if strings.Contains(text, `"memstats"`) || strings.Contains(text, `"cmdline"`) {
			return KindVars
		}
		return KindUnknown
	}
	for n := 0; n < 64 && text != ""; n++ {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "# HELP "), strings.HasPrefix(line, "# TYPE "):
			return KindMetrics
		case gctraceStart(line) >= 0:
			return KindGCTrace
		case isRecord(line):
			return KindRecords
		}
		if _, ok := parseSample(line); ok {
			return KindMetrics
		}
	}
	return KindUnknown
}

func isRecord(line string) bool {
	_, err := evidence.ParseRecord(line)
	return err == nil
}

// PeekGzip tells what is in a gzip file of which head are the first bytes, and gives a reader of its content if r reads it from its begin.
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
