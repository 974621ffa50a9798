package format

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindReadings is a recorder's member of readings.
const KindReadings Kind = "readings of the kernel's files"

var _ = register(&row{
	kind: KindReadings, name: "readings", rank: rankKernel,
	looks: func(h head) bool { return strings.HasPrefix(h.text, readingsHead) },
	parse: parseReadings,
})

// A member of readings is text: a head line, then each reading of a file under a line with its time
// and path.
//
//	# whystall readings 1 pagesize=4096 hz=100
//	=== 5123456789 /proc/4121/stat
//	4121 (server) S ...
//	=== 5123467890 /proc/pressure/cpu unread "permission denied"
//
// A line of a file that starts like a reading gets a blank in front.
const (
	readingsHead = "# whystall readings 1 "
	readingMark  = "=== "
)

// AppendReadingsHead starts a member with the units of its files: bytes a page, ticks a second.
func AppendReadingsHead(b []byte, page int, hz int64) []byte {
	return fmt.Appendf(b, "%spagesize=%d hz=%d\n", readingsHead, page, hz)
}

// AppendReading adds a file's content as read at t, CLOCK_MONOTONIC ns.
func AppendReading(b []byte, t int64, path string, content []byte) []byte {
	b = fmt.Appendf(b, "%s%d %s\n", readingMark, t, cleanPath(path))
	at := len(b)
	b = append(b, content...)
	if bytes.HasPrefix(content, []byte(readingMark)) || bytes.Contains(content, []byte("\n"+readingMark)) {
		kept := bytes.ReplaceAll(append([]byte("\n"), content...), []byte("\n"+readingMark), []byte("\n "+readingMark))
		b = append(b[:at], kept[1:]...)
	}
	if len(b) > at && b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	return b
}

// AppendUnread adds a line that says why a file could not be read.
func AppendUnread(b []byte, t int64, path, why string) []byte {
	return fmt.Appendf(b, "%s%d %s unread %q\n", readingMark, t, cleanPath(path), why)
}

// cleanPath escapes blanks and the like as the kernel does in mountinfo: a path ends at a blank
// here.
func cleanPath(path string) string {
	if !strings.ContainsAny(path, " \n\t") {
		return path
	}
	return strings.NewReplacer(" ", `\040`, "\n", `\012`, "\t", `\011`).Replace(path)
}

var dirtyPath = strings.NewReplacer(`\040`, " ", `\012`, "\n", `\011`, "\t")

// reading is one reading of a member, or a file that stands alone.
type reading struct {
	time   int64
	path   string
	text   string
	unread string // why there is no text
}

func parseReadings(g *gatherer, it Item) ([]evidence.Record, error) {
	s := jointOf(g, rankKernel, newKernelFiles)
	s.page, s.hz = 0, 100
	err := eachReading(it.Data, func(page, hz int64) {
		if page > 0 {
			s.page = page
		}
		if hz > 0 {
			s.hz = hz
		}
	}, s.member)
	return nil, s.bounded(rowOf(KindReadings), err)
}

// eachReading calls f for each reading of a member, in order. It stops with an error at a line that
// should start a reading and does not.
func eachReading(data []byte, head func(page, hz int64), f func(reading) error) error {
	text := string(data)
	first, text, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, readingsHead) {
		return fmt.Errorf("read readings: line 1: want %q", readingsHead)
	}
	var page, hz int64
	fmt.Sscanf(first[len(readingsHead):], "pagesize=%d hz=%d", &page, &hz)
	head(page, hz)
	var problem error
	for n := 1; text != ""; n++ {
		if !strings.HasPrefix(text, readingMark) {
			return fmt.Errorf("read readings: reading %d: want %q, got %.40q", n, readingMark, text)
		}
		end := strings.Index(text, "\n"+readingMark)
		one := text
		if end >= 0 {
			one, text = text[:end+1], text[end+1:]
		} else {
			text = ""
		}
		line, content, _ := strings.Cut(one, "\n")
		r := reading{text: content}
		when, rest, _ := strings.Cut(line[len(readingMark):], " ")
		t, err := strconv.ParseInt(when, 10, 64)
		if err != nil || t < 0 {
			return fmt.Errorf("read readings: reading %d: want a time, got %.40q", n, when)
		}
		path, tail, _ := strings.Cut(rest, " ")
		r.time, r.path = t, dirtyPath.Replace(path)
		if why, ok := strings.CutPrefix(tail, "unread "); ok {
			if r.unread, err = strconv.Unquote(why); err != nil || r.unread == "" {
				r.unread = "no reason given"
			}
		}
		if err := f(r); err != nil && problem == nil {
			problem = fmt.Errorf("%s: %w", r.path, err)
		}
	}
	return problem
}
