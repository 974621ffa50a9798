package report

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/report/conform"
)

// Every golden report conforms to the schema, and has no field that the schema does not describe.
func TestSchema(t *testing.T) {
	for name, s := range samples() {
		if errs := conform.Errors(Schema, render(t, New(s), "json")); len(errs) > 0 {
			t.Errorf("%s: %s", name, strings.Join(errs, "\n"))
		}
	}
}

// So does a report on what was attached, with every field.
func TestSchemaAttached(t *testing.T) {
	r := New(Source{Inputs: []Input{{Name: "a.txt", Kind: "attached text"}}, Attached: attachedSample()})
	good := string(render(t, r, "json"))
	if errs := conform.Errors(Schema, []byte(good)); len(errs) > 0 {
		t.Error(strings.Join(errs, "\n"))
	}
	for _, c := range []struct{ old, new, want string }{
		{`"state": "context"`, `"state": "fine"`, "state"},
		{`"grade": "found"`, `"grade": "proven"`, "grade"},
		{`"confidence": "possible"`, `"confidence": "proven"`, "confidence"},
		{`"first_line": 7`, `"first_line": -7`, "first_line"},
		{`"words": false`, `"word": false`, "words"},
		{`"unknown": [`, `"unknowns": [`, "unknown"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if bad == good {
			t.Errorf("sample has no %s", c.old)
		}
		if errs := conform.Errors(Schema, []byte(bad)); !strings.Contains(strings.Join(errs, "\n"), c.want) {
			t.Errorf("%s: %q, want an error about %s", c.new, errs, c.want)
		}
	}
}

func attachedSample() *Attached {
	at := Where{File: "a.txt", First: 7, Last: 9}
	return &Attached{
		State: AttachedIll,
		Parts: []AttachedPart{
			{Where: at, Kind: "cpu.stat", State: AttachedIll, Group: 1, Above: "before:",
				Command: "cat cpu.stat", Host: "a", Path: "/x/cpu.stat", PID: 7,
				Title: "cpu.stat", Figures: []string{"38 % of the periods"}, Means: "it is stopped",
				Not: "who pays", Flaws: []string{"line 8: cut"},
				SinceBoot: true, Glance: true, Facts: []Fact{{Name: "/x:y", Value: 1.5, Of: "z"}}},
			{Where: at, Kind: "lscpu", State: AttachedContext, Group: 1, Title: "lscpu",
				Figures: []string{}, Flaws: []string{}, Facts: []Fact{}},
		},
		Causes: []AttachedCause{
			{Cause: "cpu-throttled", Grade: GradeFound, Confidence: "possible", Share: 0.4,
				Title: "t", Proof: []string{"p"}, Remedy: "r", From: []Where{at, at}},
			{Grade: GradeOutside, Title: "in the database", Proof: []string{}, From: []Where{at}},
		},
		Unknown: []AttachedUnknown{{Where: at, Guess: "vmstat N"}, {Where: at, Words: true, Is: "words"}},
		Notes:   []string{"n"},
		Next:    []AttachedNext{{Command: "c", Why: "w"}},
	}
}

// A cause of two parts names both places. Parts that say nothing of health make nothing healthy.
func TestAttachedWords(t *testing.T) {
	a := attachedSample()
	r := New(Source{Inputs: []Input{{Name: "a.txt"}}, Attached: a})
	if text := string(render(t, r, "text")); !strings.Contains(text, "in a.txt:7-9, a.txt:7-9") {
		t.Errorf("no places of a cause:\n%s", text)
	}
	a.State, a.Parts, a.Causes, a.Unknown, a.Next = AttachedUnsure, a.Parts[1:], []AttachedCause{}, a.Unknown[1:], nil
	if text := string(render(t, r, "text")); !strings.Contains(text,
		"NOTHING IN IT SAYS WHETHER ANYTHING IS SLOW") || strings.Contains(text, "HEALTHY") {
		t.Errorf("context alone:\n%s", text)
	}
}

// A validator that accepts everything would prove nothing.
func TestSchemaRejects(t *testing.T) {
	good := string(render(t, New(ill()), "json"))
	for _, c := range []struct{ old, new, want string }{
		{`"schema": 1`, `"schema": 2`, "schema"},
		{`"confidence": "supported"`, `"confidence": "certain"`, "confidence"},
		{`"ns": 720000000`, `"ns": "720000000"`, "ns"},
		{`"ns": 720000000`, `"ns": -1`, "ns"},
		{`"share": 0.847`, `"share": 84.7`, "share"},
		{`"none_cause": ""`, `"none": ""`, "none"},
		{`"errors": []`, `"errors": null`, "errors"},
		{`"utc": "2026-11-21T`, `"utc": "2026-11-21 `, "utc"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if bad == good {
			t.Errorf("sample has no %s", c.old)
		}
		if errs := conform.Errors(Schema, []byte(bad)); !strings.Contains(strings.Join(errs, "\n"), c.want) {
			t.Errorf("%s: %q, want an error about %s", c.new, errs, c.want)
		}
	}
}
