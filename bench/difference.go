package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// schema is what the comparison needs of a JSON Schema: its shape, and two marks which other
// readers of the schema pass over.
type schema struct {
	Ref        string             `json:"$ref"`
	Defs       map[string]*schema `json:"$defs"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	Prose      bool               `json:"x-prose"`  // a sentence for people: its wording may change
	Varies     bool               `json:"x-varies"` // measured on the program itself: differs from run to run
}

func readSchema(b []byte) (*schema, error) {
	var s schema
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read the report's schema: %w", err)
	}
	if !s.marked() {
		return nil, fmt.Errorf("read the report's schema: no field in it is marked x-prose")
	}
	return &s, nil
}

func (s *schema) marked() bool {
	if s == nil {
		return false
	}
	for _, m := range []map[string]*schema{s.Properties, s.Defs} {
		for _, f := range m {
			if f.marked() {
				return true
			}
		}
	}
	return s.Prose || s.Items.marked()
}

// difference is a place in two reports with different values, as JSON; Was or Is is "" where the
// place is not there.
type difference struct {
	Path string `json:"path"` // as jq writes it
	Was  string `json:"was"`
	Is   string `json:"is"`
}

func (d difference) String() string {
	short := func(s string) string {
		const most = 100
		if s == "" {
			return "(nothing)"
		}
		if r := []rune(s); len(r) > most {
			return string(r[:most]) + "..."
		}
		return s
	}
	return fmt.Sprintf("%s: %s, was %s", d.Path, short(d.Is), short(d.Was))
}

// differ collects what differs between two reports.
type differ struct {
	root      *schema
	found     []difference
	figures   []difference // sentences with different numbers in them
	sentences int          // worded differently
}

// compare goes down both values and the schema at once. What the schema does not describe is
// compared like everything else. Sentences are compared only in being there or empty.
func (d *differ) compare(path string, s *schema, was, is any) {
	if s != nil && strings.HasPrefix(s.Ref, "#/$defs/") {
		s = d.root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
	}
	if s == nil {
		s = &schema{}
	}
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			d.compareObjects(path, s, was, is)
			return
		}
	case []any:
		if is, ok := is.([]any); ok {
			d.compareArrays(path, s, was, is)
			return
		}
	}
	a, b := compact(was), compact(is)
	if a == b || s.Varies {
		return
	}
	x, ok := was.(string)
	y, both := is.(string)
	if s.Prose && ok && both && (x == "") == (y == "") {
		d.sentences++
		if !slices.Equal(numbers(x), numbers(y)) {
			d.figures = append(d.figures, difference{path, a, b})
		}
		return
	}
	d.found = append(d.found, difference{path, a, b})
}

func (d *differ) compareObjects(path string, s *schema, was, is map[string]any) {
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := path + "." + key
		a, there := was[key]
		b, here := is[key]
		switch {
		case there && here:
			d.compare(at, s.Properties[key], a, b)
		case there:
			d.found = append(d.found, difference{Path: at, Was: compact(a)})
		default:
			d.found = append(d.found, difference{Path: at, Is: compact(b)})
		}
	}
}

// compareArrays compares entry by entry: the order of entries is a part of the report.
func (d *differ) compareArrays(path string, s *schema, was, is []any) {
	if len(was) != len(is) {
		d.found = append(d.found, difference{path + " | length", fmt.Sprint(len(was)), fmt.Sprint(len(is))})
	}
	for i := range min(len(was), len(is)) {
		d.compare(fmt.Sprintf("%s[%d]", path, i), s.Items, was[i], is[i])
	}
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // no value that was decoded from JSON
		return err.Error()
	}
	return string(b)
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// numbers are the numbers in a sentence, in any order.
func numbers(sentence string) []string {
	return slices.Sorted(slices.Values(number.FindAllString(sentence, -1)))
}
