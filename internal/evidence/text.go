package evidence

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// The text twin of a record is one line that a person can write and check by eye:
//
//	/cgroup/cpu/throttled:ns t=0 v=0
//	/go/sched/gomaxprocs:threads sample t=5 v=4
//	/pprof/mutex/delay:ns sample t=9 v=1200 n=3 at="sync.(*Mutex).Unlock" at="main.f"
//	/go/version:text fact text="go1.26.1"
//	/trace gap t=10 end=20 text="lost"
//
// A counter may omit its shape, and any record its zero fields. A float is printed with all its
// digits, so that a record that is printed and parsed is the same.

var shapeNames = [...]string{Event: "event", Interval: "interval", Sample: "sample",
	Counter: "counter", Fact: "fact", GapShape: "gap"}

// String is the shape's name in the text twin.
func (s Shape) String() string {
	if s == 0 || int(s) >= len(shapeNames) {
		return "shape " + strconv.Itoa(int(s))
	}
	return shapeNames[s]
}

// Limits of one line of text: testdata is written by hand, so more than this is a mistake.
const (
	maxLine   = 1 << 20
	maxFrames = 1024
	maxTexts  = 1 << 20
)

// AppendText appends the text twin of r, without a newline.
func (r Record) AppendText(b []byte) []byte {
	b = append(b, r.Stream...)
	if r.Shape != Counter {
		b = append(append(b, ' '), r.Shape.String()...)
	}
	num := func(key string, v int64) {
		if v != 0 {
			b = append(append(b, ' '), key...)
			b = strconv.AppendInt(b, v, 10)
		}
	}
	if r.Shape == Fact {
		num("t=", r.Time)
	} else {
		b = strconv.AppendInt(append(b, " t="...), r.Time, 10)
	}
	num("end=", r.End)
	if r.Shape == Counter || r.Shape == Sample || r.Value != 0 {
		b = append(b, " v="...)
		// Whole numbers are plain digits up to where a float64 is exact.
		if r.Value == math.Trunc(r.Value) && math.Abs(r.Value) < 1<<53 {
			b = strconv.AppendInt(b, int64(r.Value), 10)
		} else {
			b = strconv.AppendFloat(b, r.Value, 'g', -1, 64)
		}
	}
	num("n=", r.N)
	if r.Text != "" {
		b = strconv.AppendQuote(append(b, " text="...), r.Text)
	}
	for _, f := range r.Stack {
		b = strconv.AppendQuote(append(b, " at="...), f)
	}
	return b
}

// String is the text twin.
func (r Record) String() string { return string(r.AppendText(nil)) }

// ParseRecord parses one line of text. Errors name what is wrong with it.
func ParseRecord(line string) (Record, error) {
	if len(line) > maxLine {
		return Record{}, fmt.Errorf("line of %d bytes: at most %d", len(line), maxLine)
	}
	r := Record{Shape: Counter}
	var rest string
	r.Stream, rest, _ = strings.Cut(strings.TrimSpace(line), " ")
	if err := checkStream(r.Stream); err != nil {
		return Record{}, err
	}
	seen := map[string]bool{}
	for first := true; ; first = false {
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			return r, nil
		}
		word, after, _ := strings.Cut(rest, " ")
		key, _, isField := strings.Cut(word, "=")
		if first && !isField {
			if r.Shape = shapeOf(word); r.Shape == 0 {
				return Record{}, fmt.Errorf("shape %q: want event, interval, sample, counter, fact or gap", word)
			}
			rest = after
			continue
		}
		if !isField {
			return Record{}, fmt.Errorf("field %q: want key=value", word)
		}
		if seen[key] && key != "at" {
			return Record{}, fmt.Errorf("field %s: given twice", key)
		}
		seen[key] = true
		value := rest[len(key)+1:]
		switch key {
		case "text", "at":
			q, err := strconv.QuotedPrefix(value)
			if err != nil {
				return Record{}, fmt.Errorf("field %s: want a quoted string", key)
			}
			s, err := strconv.Unquote(q)
			if err != nil {
				return Record{}, fmt.Errorf("field %s: %w", key, err)
			}
			if rest = value[len(q):]; rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				return Record{}, fmt.Errorf("field %s: text after the closing quote", key)
			}
			if key == "text" {
				r.Text = s
			} else if r.Stack = append(r.Stack, s); len(r.Stack) > maxFrames {
				return Record{}, fmt.Errorf("field at: more than %d frames", maxFrames)
			}
			continue
		}
		value, rest, _ = strings.Cut(value, " ")
		if err := r.setNumber(key, value); err != nil {
			return Record{}, err
		}
	}
}

func (r *Record) setNumber(key, value string) error {
	var err error
	switch key {
	case "t":
		r.Time, err = strconv.ParseInt(value, 10, 64)
	case "end":
		r.End, err = strconv.ParseInt(value, 10, 64)
	case "n":
		r.N, err = strconv.ParseInt(value, 10, 64)
	case "v":
		r.Value, err = strconv.ParseFloat(value, 64)
		if err == nil && (math.IsNaN(r.Value) || math.IsInf(r.Value, 0)) {
			err = errors.New("want a finite number")
		}
		r.Value += 0 // -0 is 0
	default:
		return fmt.Errorf("field %q: want t, end, v, n, text or at", key)
	}
	if err != nil {
		return fmt.Errorf("field %s: %w", key, err)
	}
	return nil
}

func shapeOf(word string) Shape {
	for s, name := range shapeNames {
		if name == word && name != "" {
			return Shape(s)
		}
	}
	return 0
}

func checkStream(s string) error {
	if len(s) < 2 || s[0] != '/' {
		return fmt.Errorf("stream %q: want /place/thing:unit", s)
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f {
			return fmt.Errorf("stream %q: want printable ASCII without blanks", s)
		}
	}
	return nil
}

// ParseText parses a record a line; empty lines and those that start with # are left out.
func ParseText(r io.Reader) ([]Record, error) {
	var out []Record
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		rec, err := ParseRecord(line)
		if err != nil {
			return out, fmt.Errorf("line %d: %w", n, err)
		}
		if out = append(out, rec); len(out) > maxTexts {
			return out, fmt.Errorf("line %d: more than %d records", n, maxTexts)
		}
	}
	return out, sc.Err()
}
