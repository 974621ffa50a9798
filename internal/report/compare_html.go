package report

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/whystall/whystall/internal/compare"
	"github.com/whystall/whystall/internal/finding"
)

// comparisonHTML prints a comparison as one page for a browser. It has no script, and permits none.
func comparisonHTML(w io.Writer, c *compare.Comparison) error {
	text, _ := headline(c)
	sum := sha256.Sum256([]byte(comparisonStyle))
	v := comparisonView{
		Title: text, Policy: "default-src 'none'; style-src 'sha256-" +
			base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
		Style: template.CSS(comparisonStyle), Before: printables(c.Before.Files), After: printables(c.After.Files),
		Figures: figureRows(c), Entries: entryRows(c), Chart: chartOf(c.Distribution),
	}
	for i := range c.Verdicts {
		d := &c.Verdicts[i]
		one := verdictView{Cause: d.Cause, Title: d.Title, Outcome: d.Outcome, Text: sentence(sentenceOf(d))}
		for _, g := range d.Gates {
			one.Gates = append(one.Gates, gateWords(g, d, c))
		}
		v.Verdicts = append(v.Verdicts, one)
	}
	for _, s := range []string{goneLine(c), freshLine(c), programsLine(c), startsLine(c)} {
		if s != "" {
			v.Notes = append(v.Notes, Printable(sentence(s)))
		}
	}
	v.Ledgers = append(v.Ledgers, ledgerView{"Where slow requests spend their time",
		pairBars(c.Slow)}, ledgerView{"Where usual requests spend their time", pairBars(c.Usual)})
	return comparisonPage.Execute(w, v)
}

func printables(names []string) (out []string) {
	for _, n := range names {
		out = append(out, Printable(n))
	}
	return out
}

type (
	comparisonView struct {
		Title, Policy    string
		Style            template.CSS
		Before, After    []string
		Verdicts         []verdictView
		Notes            []string
		Figures, Entries []comparedRow
		Ledgers          []ledgerView
		Chart            *chart
	}
	verdictView struct {
		Cause, Title string
		Outcome      compare.Outcome
		Text         string
		Gates        []string
	}
	ledgerView struct {
		Title string
		Rows  []pairBar
	}
	// pairBar is one kind of time as two bars; widths are in units of the drawing.
	pairBar struct {
		Text, Before, After string
		B, A                float64
	}
	// chart is both distributions laid over each other.
	chart struct {
		Before, After string // paths
		Ticks         []tick
	}
	tick struct {
		X    float64
		Text string
	}
)

// Kind is the outcome as a class of the style.
func (v verdictView) Kind() string { return strings.ReplaceAll(string(v.Outcome), " ", "-") }

// Name, From, To and Change are a row's cells.
func (r comparedRow) Name() string   { return Printable(r.name) }
func (r comparedRow) From() string   { return r.before }
func (r comparedRow) To() string     { return r.after }
func (r comparedRow) Change() string { return r.change }

// chartWidth and chartHeight are the size of the drawing, in its own units.
const (
	chartWidth  = 700
	chartHeight = 140
)

func pairBars(rows []compare.Row) (out []pairBar) {
	var most float64
	for _, r := range rows {
		most = max(most, r.Before, r.After)
	}
	for i, t := range timeRows(rows) {
		out = append(out, pairBar{Printable(t.name), t.before, t.after, 300 * rows[i].Before / most,
			300 * rows[i].After / most})
	}
	return out
}

// chartOf draws the two distributions over a logarithmic axis of time. Heights are square roots:
// the slowest hundredth has to be seen.
func chartOf(bins []compare.Bin) *chart {
	if len(bins) < 2 {
		return nil
	}
	var most float64
	for _, b := range bins {
		most = max(most, b.Before, b.After)
	}
	width := chartWidth / float64(len(bins))
	path := func(get func(compare.Bin) float64) string {
		var s strings.Builder
		fmt.Fprintf(&s, "M0 %d", chartHeight)
		for i, b := range bins {
			y := chartHeight * (1 - math.Sqrt(get(b)/most))
			fmt.Fprintf(&s, " L%.1f %.1f L%.1f %.1f", float64(i)*width, y, float64(i+1)*width, y)
		}
		fmt.Fprintf(&s, " L%d %d Z", chartWidth, chartHeight)
		return s.String()
	}
	c := &chart{Before: path(func(b compare.Bin) float64 { return b.Before }),
		After: path(func(b compare.Bin) float64 { return b.After })}
	first, last := math.Log(float64(max(bins[0].Low, 1))), math.Log(float64(bins[len(bins)-1].Up))
	for ns := int64(1000); ns <= 1e12; ns *= 10 {
		if x := math.Log(float64(ns)); x >= first && x <= last {
			c.Ticks = append(c.Ticks, tick{chartWidth * (x - first) / (last - first), finding.Duration(ns)})
		}
	}
	return c
}

const comparisonStyle = `
:root{color-scheme:light dark;--ink:#1c2126;--dim:#5b6670;--paper:#fff;--line:#d7dde2;--before:#b4552d;--after:#2a6fb0;--good:#1d7a3a;--bad:#b3261e;--open:#8a6100}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8eb;--dim:#9aa5ae;--paper:#14181b;--line:#333b42;--before:#e08a5f;--after:#6fb1ec;--good:#6cc98a;--bad:#f08b84;--open:#d9ae4a}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}td,th{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}td{white-space:nowrap}td:first-child,th:first-child{text-align:left;overflow-wrap:anywhere;white-space:normal}
.dim{color:var(--dim)}.file{overflow-wrap:anywhere}
.confirmed{color:var(--good)}.worse,.not-confirmed{color:var(--bad)}.cannot-tell{color:var(--open)}
svg{width:100%;height:auto;display:block}svg text{fill:var(--dim);font:11px system-ui,sans-serif}
.b{fill:var(--before)}.a{fill:var(--after)}path.b{fill-opacity:.45}path.a{fill-opacity:.55}
.bars{width:300px}.bars svg{height:22px}
.key b{padding:0 .5em}.key .before{color:var(--before)}.key .after{color:var(--after)}
@media print{body{max-width:none;margin:0}}
`

var comparisonPage = template.Must(template.New("compare").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>whystall: {{.Title}}</title><style>{{.Style}}</style></head>
<body><main><h1>{{.Title}}</h1>
<p class="dim file">before: {{range .Before}}{{.}} {{end}}<br>after: {{range .After}}{{.}} {{end}}</p>
<ol>{{range .Verdicts}}<li><b>{{.Cause}}</b>: <b class="{{.Kind}}">{{.Outcome}}</b> <span class="dim">{{.Title}}</span><br>{{.Text}}{{range .Gates}}<br>- {{.}}{{end}}</li>{{end}}</ol>
{{range .Notes}}<p>{{.}}</p>{{end}}
{{with .Chart}}<h2>How long requests take</h2><p class="key dim"><b class="before">before</b><b class="after">after</b> parts of all requests of each side; heights are square roots, so that the few slow ones show</p>
<svg viewBox="0 0 700 165" role="img" aria-label="Distributions of the time that requests take, before and after"><path class="b" d="{{.Before}}"/><path class="a" d="{{.After}}"/>{{range .Ticks}}<text x="{{.X}}" y="158">{{.Text}}</text>{{end}}</svg>{{end}}
<h2>Figures</h2><table><tr><th></th><th>before</th><th>after</th><th></th></tr>{{range .Figures}}<tr><td>{{.Name}}</td><td>{{.From}}</td><td>{{.To}}</td><td>{{.Change}}</td></tr>{{end}}</table>
{{with .Entries}}<h2>Entry points, p99</h2><table><tr><th></th><th>before</th><th>after</th><th></th></tr>{{range .}}<tr><td>{{.Name}}</td><td>{{.From}}</td><td>{{.To}}</td><td>{{.Change}}</td></tr>{{end}}</table>{{end}}
{{range .Ledgers}}{{if .Rows}}<h2>{{.Title}}</h2><table><tr><th>per request</th><th></th><th>before</th><th>after</th></tr>
{{range .Rows}}<tr><td>{{.Text}}</td><td class="bars"><svg viewBox="0 0 300 22" aria-hidden="true"><rect class="b" width="{{.B}}" height="10"/><rect class="a" y="11" width="{{.A}}" height="10"/></svg></td><td>{{.Before}}</td><td>{{.After}}</td></tr>{{end}}</table>{{end}}{{end}}
</main></body></html>
`))
