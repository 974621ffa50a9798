package format

import (
	"bytes"
	"strings"
	"unicode/utf8"
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
	}
	if looksLikeProto(head) {
		return KindPprof
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return KindUnknown
	}
	return identifyText(head)
}

// looksLikeProto recognises an uncompressed profile: field 1, a ValueType of which the first field is an index.
func looksLikeProto(head []byte) bool {
	return len(head) > 4 && head[0] == 0x0a && head[1] >= 2 && head[1] <= 22 && (head[2] == 0x08 || head[2] == 0x10)
}

// identifyText looks at the first lines. A log may begin with anything before its first gctrace line, so all of head is looked at.
func identifyText(head []byte) Kind {
	text := string(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	if !utf8.ValidString(text[:max(0, len(text)-utf8.UTFMax)]) {
		text = strings.ToValidUTF8(text, "?")
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
		case strings.HasPrefix(line, "/") && streamLine(line):
			return KindRecords
		}
		if _, ok := parseSample(line); ok {
			return KindMetrics
		}
	}
	return KindUnknown
}
