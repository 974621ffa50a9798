package webpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"reflect"
)

// The bundle: web/build.mjs makes it.
var (
	//go:embed page.js
	script []byte
	//go:embed page.css
	style []byte
)

// policy lets the browser run this one script and use this one style sheet, fetch nothing, and send
// nothing anywhere. Trusted types make the browser refuse markup from strings altogether.
func policy() string {
	return fmt.Sprintf("default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		hash(script), hash(style))
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Write writes the page, and marks the strings of m. What is shown without a script is the verdict
// alone.
func Write(w io.Writer, m *Model) error {
	mark(reflect.ValueOf(m))
	// Its encoder writes <, > and & as escapes, and U+2028 and U+2029 too: nothing in the data can
	// end the element that holds them.
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("print report as HTML: %w", err)
	}
	var b bytes.Buffer
	text := func(s string) string { return html.EscapeString(plain.Replace(s)) }
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>whystall: %s</title>
<style>%s</style>
</head>
<body>
<main id="page">
<h1>whystall: %s</h1>
<p>%s</p>
`, html.EscapeString(policy()), text(m.Title), style, text(m.Title), text(m.Verdict.Title))
	for _, s := range m.Verdict.Text {
		fmt.Fprintf(&b, "<p>%s</p>\n", text(s))
	}
	for _, f := range m.Findings {
		fmt.Fprintf(&b, "<p>%s: %s. %s</p>\n", text(f.Cause), text(f.Amount), text(f.Summary))
	}
	b.WriteString("<noscript><p>The rest of this page needs JavaScript. The command “whystall explain” prints it as text.</p></noscript>\n</main>\n")
	fmt.Fprintf(&b, "<script type=\"application/json\" id=\"data\">%s</script>\n<script>%s</script>\n</body>\n</html>\n", data, script)
	_, err = w.Write(b.Bytes())
	return err
}
