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
