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

var _ = registerOutput(&Output{Name: "json", Order: 20, Ext: "json",
	Print: func(r *Report, w io.Writer, _ TextOptions) error { return r.JSON(w) }})

// Schema is the JSON Schema (draft 2020-12) of what JSON prints.
//
//go:embed schema.json
var Schema []byte

// JSON prints the report for programs, complete.
func (r *Report) JSON(w io.Writer) error { return PrintJSON(w, r) }

// PrintJSON prints anything for programs, in lines that a person can read too.
func PrintJSON(w io.Writer, v any) error { return printJSON(w, v, "  ") }

// JSONLine prints one value for programs, in one line.
func JSONLine(w io.Writer, v any) error { return printJSON(w, v, "") }

func printJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print as JSON: %w", err)
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
