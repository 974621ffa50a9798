package kinds

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/whystall/whystall/internal/attach"
)

// damages are what happens to files on their way to a ticket. The other text is another sample.
var damages = []struct {
	name string
	do   func(r *rand.Rand, data, other []byte) []byte
}{
	{"start", func(r *rand.Rand, data, _ []byte) []byte { return data[:r.IntN(len(data))] }},
	{"end", func(r *rand.Rand, data, _ []byte) []byte { return data[r.IntN(len(data)):] }},
	{"middle", func(r *rand.Rand, data, _ []byte) []byte {
		at := r.IntN(len(data))
		return append(bytes.Clone(data[:at]), data[min(len(data), at+40):]...)
	}},
	{"bits", func(r *rand.Rand, data, _ []byte) []byte {
		out := bytes.Clone(data)
		for range 1 + len(out)/100 {
			out[r.IntN(len(out))] ^= 1 << r.IntN(8)
		}
		return out
	}},
	{"interleaved", func(r *rand.Rand, data, other []byte) []byte {
		var out []byte
		a, b := bytes.SplitAfter(data, []byte("\n")), bytes.SplitAfter(other, []byte("\n"))
		for len(a)+len(b) > 0 {
			if len(b) == 0 || len(a) > 0 && r.IntN(2) == 0 {
				out, a = append(out, a[0]...), a[1:]
			} else {
				out, b = append(out, b[0]...), b[1:]
			}
		}
		return out
	}},
	{"shuffled", func(r *rand.Rand, data, _ []byte) []byte {
		lines := bytes.SplitAfter(data, []byte("\n"))
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		return bytes.Join(lines, nil)
	}},
	{"utf-16, cut", func(r *rand.Rand, data, _ []byte) []byte {
		out := []byte("\xff\xfe")
		for _, u := range utf16.Encode([]rune(string(data))) {
			out = append(out, byte(u), byte(u>>8))
		}
		return out[:len(out)-r.IntN(len(out)/2)]
	}},
	{"one line", func(_ *rand.Rand, data, _ []byte) []byte { return bytes.ReplaceAll(data, []byte("\n"), []byte(" ")) }},
	{"zeros", func(r *rand.Rand, data, _ []byte) []byte {
		out := bytes.Clone(data)
		for range 1 + len(out)/50 {
			out[r.IntN(len(out))] = 0
		}
		return out
	}},
	{"numbers without end", func(r *rand.Rand, data, _ []byte) []byte {
		digits := func(c rune) rune {
			if c >= '0' && c <= '9' && r.IntN(3) == 0 {
				return '9'
			}
			return c
		}
		return bytes.ReplaceAll(bytes.Map(digits, data), []byte("9"), []byte("99999999"))
	}},
	{"repeated", func(r *rand.Rand, data, _ []byte) []byte {
		lines := bytes.SplitAfter(data, []byte("\n"))
		at := r.IntN(len(lines))
		return bytes.Join(append(lines[:at:at], bytes.Repeat(lines[at], 500)), nil)
	}},
	{"a line without end", func(_ *rand.Rand, data, _ []byte) []byte {
		line, _, _ := bytes.Cut(data, []byte("\n"))
		return bytes.Repeat(append(line, ' '), 20_000/(len(line)+1)+1)
	}},
	{"wrapped at 80", func(_ *rand.Rand, data, _ []byte) []byte {
		var out []byte
		for line := range bytes.Lines(data) {
			for len(line) > 81 {
				out, line = append(append(out, line[:80]...), '\n'), line[80:]
			}
			out = append(out, line...)
		}
		return out
	}},
}

// Whatever happened to a file on its way, nothing panics or hangs, every range of lines is one
// of the file, and every reading can be printed.
func TestDamaged(t *testing.T) {
	all := samples(t)
	// The other text is the next by hash: of a new sample only the one before it sees anything.
	slices.SortStableFunc(all, func(a, b sample) int { return cmp.Compare(a.hash(), b.hash()) })
	n, each := 0, uint64(4) // all of them take 10 s
	if testing.Short() {
		each = 16
	}
	for i, s := range all {
		if len(s.paste) < 2 {
			continue
		}
		for d, damage := range damages {
			if (s.hash()+uint64(d))%each != 0 {
				continue
			}
			r := rand.New(rand.NewPCG(s.hash(), uint64(d)))
			data := damage.do(r, s.paste, all[(i+1)%len(all)].paste)
			n++
			started := time.Now()
			examine(t, s.name+", "+damage.name, data)
			if took := time.Since(started); took > time.Minute { // each takes 5 ms on a machine of its own
				t.Errorf("%s, %s: took %v for %d bytes", s.name, damage.name, took, len(data))
			}
		}
	}
	if n < 300 && !testing.Short() {
		t.Errorf("only %d damaged inputs", n)
	}
}

func examine(t *testing.T, name string, data []byte) {
	defer func() {
		if e := recover(); e != nil {
			t.Errorf("%s: panic: %v", name, e)
		}
	}()
	parts, ranges, _, err := attach.Stream("x", bytes.NewReader(data), Table())
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	last := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
	for _, p := range parts {
		if len(p.Lines) == 0 || p.First() < 1 || p.Last() < p.First() || p.Last() > last {
			t.Errorf("%s: part %s of lines %d-%d of %d", name, p.Kind.Name, p.First(), p.Last(), last)
		}
	}
	a := attach.Explain(parts, attach.Leftovers("x", ranges, parts, Table()))
	for _, told := range a.Told {
		if told.Title == "" || told.State == "" {
			t.Errorf("%s: %s has no title or no state", name, told.Part.Kind.Name)
		}
		for _, f := range told.Flaws {
			if strings.Contains(f, "its reader failed") {
				t.Errorf("%s: %s: %s", name, told.Part.Kind.Name, f)
			}
		}
		for _, f := range told.Figures {
			if strings.Contains(f, "NaN") || strings.Contains(f, "Inf ") {
				t.Errorf("%s: %s: %s", name, told.Part.Kind.Name, f)
			}
		}
	}
}

// A part of a healthy text is no ill one: what was cut off is no evidence.
func TestHealthyCutShort(t *testing.T) {
	for _, s := range some(samples(t)) {
		parts, _, _, _ := attach.Stream("x", bytes.NewReader(s.paste), Table())
		if len(parts) == 0 || attach.Explain(parts, nil).State != attach.Healthy {
			continue
		}
		r := rand.New(rand.NewPCG(s.hash(), 1))
		for range 4 {
			at := r.IntN(len(s.paste))
			parts, _, _, _ := attach.Stream("x", bytes.NewReader(s.paste[:at]), Table())
			for _, v := range attach.Explain(parts, nil).Causes {
				if v.Grade == attach.Found {
					t.Errorf("%s, the first %d bytes: found %s: %q", s.name, at, v.Cause, v.Proof)
				}
			}
		}
	}
}
