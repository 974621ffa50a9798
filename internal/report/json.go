package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

var _ = registerOutput(&Output{Name: "json", Order: 20, Ext: "json", Print: func(r *Report, w io.Writer, _ TextOptions) error { return r.JSON(w) }})

// Schema is the JSON Schema (draft 2020-12) of what JSON prints.
//
//go:embed schema.json
var Schema []byte

// JSON prints the report for programs, complete.
func (r *Report) JSON(w io.Writer) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("print report as JSON: %w", err)
	}
	_, err := w.Write(escapeUnprintable(b.Bytes()))
	return err
}

// escapeUnprintable writes what a terminal might act upon as \u escapes. encoding/json does so only
// for the first 32 characters. Outside strings JSON has no such characters, so the value stays the
// same.
func escapeUnprintable(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range string(b) {
		switch {
		case c == '\n' || unicode.IsPrint(c):
			out = append(out, string(c)...)
		case c > 0xffff:
			hi, lo := utf16.EncodeRune(c)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, c)
		}
	}
	return out
}
