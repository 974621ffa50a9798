package export

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Source is what is exported.
type Source struct {
	Ledger   *account.Result // with its stories; nil: no recording could be read
	Findings []finding.Finding
	Service  string // the target's name; "" not known
	Host     string
	PID      int
	Version  string // of whystall
}

// Format is one of the formats.
type Format struct {
	Name  string // of the flag
	Write func(*Source, io.Writer) error
	// Dated: its readers take times for those of a wall clock.
	Dated bool
}

// Formats lists them.
func Formats() []Format {
	return []Format{
		{Name: "perfetto", Write: writePerfetto},
		{Name: "pprof", Write: writePprof},
		{Name: "folded", Write: writeFolded},
		{Name: "otlp", Write: writeOTLP, Dated: true},
	}
}

// service is the target's name for a person.
func (s *Source) service() string {
	if s.Service == "" {
		return "service"
	}
	return clean(s.Service)
}

// slow is the slow column's time, and what of it the requests were on CPUs themselves.
func (s *Source) slow() (wall, own int64) {
	for i := range s.Ledger.Slow.Accounts {
		if a := &s.Ledger.Slow.Accounts[i]; !waited(a) {
			own += a.NS
		}
	}
	return s.Ledger.Slow.WallNS, own
}

// mostName bounds a name in bytes, mostText a sentence or a stack.
const (
	mostName = 512
	mostText = 16 << 10
)

// clean makes a name valid UTF-8 on one line, without characters that cannot be seen.
func clean(s string) string { return cut(s, mostName, ' ') }

// text does so with what may have several lines.
func text(s string) string { return cut(s, mostText, '\n') }

// cut replaces what cannot be printed but keep, and ends after at most so many bytes.
func cut(s string, most int, keep rune) string {
	short := s
	if len(short) > most {
		short = short[:most]
		for i := 0; i < utf8.UTFMax && !utf8.ValidString(short[max(0, len(short)-utf8.UTFMax):]); i++ {
			short = short[:len(short)-1] // the cut may have split a character
		}
	}
	short = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == keep, r == utf8.RuneError, unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(short, "\uFFFD")))
	if len(s) > most {
		short += "…"
	}
	return short
}
