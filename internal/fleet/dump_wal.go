package fleet

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// The write-ahead log of a Prometheus holds what is in no block yet: up to three hours. Its format
// is told in Prometheus' tsdb/docs/format/wal.md and tsdb/record: segments of pages, in which
// records lie in fragments.
const (
	walPage        = 32 << 10
	walHead        = 7 // of a fragment: what it is, its length, its checksum
	walFragment    = 7 // mask: which part of a record it is
	walSnappy      = 8
	walZstd        = 16
	walFull        = 1
	walFirst       = 2
	walLast        = 4
	walSamples     = 2       // the kind of a record
	walLargest     = 8 << 20 // bytes of a record
	walSegmentMost = 256 << 20
	walSeriesMost  = 1 << 40 // a number of a series; in other programs' logs of this shape it is text
)

var walSegment = regexp.MustCompile(`^[0-9]{8,}$`)

// span is from the first sample to the last one; zero: there is none.
type span struct{ first, last time.Time }

func (s *span) add(first, last time.Time) {
	if s.last.IsZero() || first.Before(s.first) {
		s.first = first
	}
	if last.After(s.last) {
		s.last = last
	}
}

// walSpan reads the oldest and the newest segments of a log; ok: it is one, with samples.
func walSpan(dir string) (s span, ok bool) {
	segments, _ := filepath.Glob(filepath.Join(dir, "checkpoint.*", "*"))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return s, false
	}
	for _, e := range entries {
		segments = append(segments, filepath.Join(dir, e.Name()))
	}
	read := 0
	each := func(name string) (found bool) {
		if st, err := os.Stat(name); read > mostSegments || err != nil || !st.Mode().IsRegular() ||
			st.Size() == 0 || !walSegment.MatchString(filepath.Base(name)) {
			return false
		}
		f, err := os.Open(name)
		if err != nil {
			return false
		}
		defer f.Close()
		read++
		found = segmentSpan(f, &s)
		ok = ok || found
		return found
	}
	for i := 0; i < len(segments) && !each(segments[i]); i++ {
	}
	for i := len(segments) - 1; i >= 0 && !each(segments[i]); i-- {
	}
	return s, ok
}

// mostSegments is how many segments are read to find samples.
const mostSegments = 20

// segmentSpan adds the times of a segment's samples; found: there are some. It reads as far as
// checksums hold: the newest segment ends where the engine was stopped.
func segmentSpan(r io.Reader, s *span) (found bool) {
	b := bufio.NewReaderSize(io.LimitReader(r, walSegmentMost), walPage)
	page := make([]byte, walPage)
	var record []byte
	for {
		n, err := io.ReadFull(b, page)
		for left := page[:n]; len(left) > walHead && left[0] != 0; {
			size := int(binary.BigEndian.Uint16(left[1:]))
			if size > len(left)-walHead {
				return found
			}
			part := left[walHead : walHead+size]
			if binary.BigEndian.Uint32(left[3:]) != crc32.Checksum(part, castagnoli) {
				return found
			}
			kind := left[0] & walFragment
			if kind == walFull || kind == walFirst {
				record = record[:0]
			}
			if record = append(record, part...); len(record) > walLargest {
				return found
			}
			if kind == walFull || kind == walLast {
				found = recordSpan(left[0], record, s) || found
			}
			left = left[walHead+size:]
		}
		if err != nil {
			return found
		}
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var walUnzstd = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderMaxMemory(walLargest), zstd.WithDecoderConcurrency(1))
})

// recordSpan adds the times of a record, if it has samples: the number of the first series
// and the first time, and then of each sample its differences to these and its value.
func recordSpan(flags byte, record []byte, s *span) (found bool) {
	switch {
	case flags&walSnappy != 0:
		if n, err := snappy.DecodedLen(record); err != nil || n > walLargest {
			return false
		}
		record, _ = snappy.Decode(nil, record)
	case flags&walZstd != 0:
		d, err := walUnzstd()
		if err != nil {
			return false
		}
		record, _ = d.DecodeAll(record, nil)
	}
	if len(record) < 17 || record[0] != walSamples || binary.BigEndian.Uint64(record[1:]) > walSeriesMost {
		return false
	}
	base := int64(binary.BigEndian.Uint64(record[9:]))
	for rest := record[17:]; len(rest) > 0; {
		_, n := binary.Varint(rest)
		if n <= 0 {
			return found
		}
		after, m := binary.Varint(rest[n:])
		ms := base + after
		if m <= 0 || len(rest) < n+m+8 || ms < 1e11 || ms > latestSecond*1000 {
			return found
		}
		at := time.UnixMilli(ms).UTC()
		s.add(at, at)
		found, rest = true, rest[n+m+8:]
	}
	return found
}
