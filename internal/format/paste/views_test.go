package paste_test

import (
	"strings"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/format/paste"
)

// TestViewKeepsTime: a script's times before each line say which of two readings was first.
func TestViewKeepsTime(t *testing.T) {
	lines := paste.Lines([]byte("2024-03-02 08:10:12.10220   MemTotal: 1 kB\n2024-03-02 08:10:12.10220   MemFree: 1 kB\n"))
	want := time.Date(2024, 3, 2, 8, 10, 12, 102200000, time.UTC)
	for _, v := range paste.Views(lines) {
		if strings.TrimSpace(v[1].Text) == "MemFree: 1 kB" && v[1].Time.Equal(want) {
			return
		}
	}
	t.Errorf("no view of %q has the time %v", lines[1].Text, want)
}

// TestBold: the marks of a line whose first words are bold are taken off, and no others.
func TestBold(t *testing.T) {
	for text, want := range map[string]string{
		"**Cpu(s): 64.2%us, 34.8%sy**,  0.0%st": "Cpu(s): 64.2%us, 34.8%sy,  0.0%st",
		"*** 1 error ***":                       "*** 1 error ***",
		"** not bold ** 2":                      "** not bold ** 2",
		"a ** b ** c":                           "a ** b ** c",
	} {
		if got := paste.Lines([]byte(text))[0].Text; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestRemarkBehindFigure: an arrow may stand right behind what a person remarks on.
func TestRemarkBehindFigure(t *testing.T) {
	lines := paste.Lines([]byte("cache 1\nrss 2\nlimit 10485760<- 10M\nswap 0\n"))
	for _, v := range paste.Views(lines) {
		if v[2].Text == "limit 10485760" {
			return
		}
	}
	t.Errorf("no view of %q is without its remark", lines[2].Text)
}
