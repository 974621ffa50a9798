package attach

import (
	"cmp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Range is lines that no kind knows, from First to Last.
type Range struct {
	First, Last int
	Lines       []paste.Line
	Command     string // of the prompt above them; "": none

	own bool // Lines was copied
}

// Cut divides the lines of a file into parts. What no kind claims is in unknown, but for prompts
// and the titles of parts.
//
// A section is what follows a prompt, or a fence, or the lines of one file that grep named. No part
// reaches beyond its section: so two runs of a tool are two parts.
//
// Where much remains unknown, or one kind falls into pieces, other readings of the paste are tried,
// and the one counts of which most is known.
func Cut(file string, lines []paste.Line, kinds *Kinds) (parts []*Part, unknown []Range) {
	parts, unknown = cutOnce(file, lines, kinds)
	if len(lines) > mostViewed {
		return parts, unknown
	}
	if !doubtful(parts, unknown) {
		return inComments(file, lines, parts, unknown, kinds)
	}
	best := knownShare(parts, unknown)
	for _, v := range paste.Views(lines) {
		p, u := cutOnce(file, v, kinds)
		share := knownShare(p, u)
		better := share > best+0.02 || share > best-0.02 && len(p) < len(parts) && len(p) > 0
		if better && covers(p, parts) {
			parts, unknown, best, lines = p, u, share, v
		}
	}
	return inComments(file, lines, parts, unknown, kinds)
}

// covers reports whether each part of one reading lies, by most of its lines, in parts of another.
// A reading that fits one part of a paste may make prose of the next.
func covers(parts, others []*Part) bool {
	for _, o := range others {
		in := 0
		for _, l := range o.Lines {
			if slices.ContainsFunc(parts, func(p *Part) bool { return p.First() <= l.N && l.N <= p.Last() }) {
				in++
			}
		}
		if in*2 < len(o.Lines) {
			return false
		}
	}
	return true
}

// mostViewed bounds the time for other readings, which no log needs.
const mostViewed = 20000

func cutOnce(file string, lines []paste.Line, kinds *Kinds) (parts []*Part, unknown []Range) {
	c := newCutter(file, kinds)
	c.lines(lines)
	c.clip()
	return c.parts, c.unknown
}

// cutAll cuts a text that is held as a whole.
func cutAll(file string, text []byte, kinds *Kinds) (parts []*Part, unknown []Range) {
	return Cut(file, paste.Lines(text), kinds)
}

// doubtful reports whether something that is no person's words is unknown, or one kind comes
// thrice.
func doubtful(parts []*Part, unknown []Range) bool {
	for _, r := range unknown {
		if !words(r.Lines) {
			return true
		}
	}
	times := map[*Kind]int{}
	for _, p := range parts {
		if times[p.Kind]++; times[p.Kind] > 2 {
			return true
		}
	}
	return len(parts) == 0
}

// knownShare is how much of the text is in parts, words of a person left out.
func knownShare(parts []*Part, unknown []Range) float64 {
	known, not := 0, 0
	for _, p := range parts {
		for _, l := range p.Lines {
			known += len(l.Text)
		}
	}
	for _, r := range unknown {
		if words(r.Lines) {
			continue
		}
		for _, l := range r.Lines {
			not += len(l.Text)
		}
	}
	if known == 0 {
		return 0
	}
	return float64(known) / float64(known+not)
}

func newCutter(file string, kinds *Kinds) *cutter {
	return &cutter{file: file, kinds: kinds, asks: newAsker(kinds), scattered: map[origin]*Part{}}
}

// lines cuts all lines of a file.
func (c *cutter) lines(lines []paste.Line) {
	for at := 0; at < len(lines); {
		if c.joined(lines[at]) {
			c.section++
			at++
			continue
		}
		if lines[at].Command != "" {
			c.prompt = lines[at]
			c.typed(lines[at])
			c.section++
			at++
			at += c.named(lines[at-1:sameHost(lines, at-1)], 1)
			continue
		}
		if lines[at].Path != "" {
			if n := c.named(lines[at:], 0); n > 0 {
				at += n
				continue
			}
		}
		end := at + section(lines[at:])
		if end == at+1 && fenced(lines[at]) > 0 && paste.IsCommand(lines[at].Text) {
			// A command alone in a fence: the tool's own prompt may stand in the next one.
			c.session, c.first = strings.TrimSpace(lines[at].Text), len(c.parts)
		}
		c.cut(lines[at:end])
		if at = end; at < len(lines) && fenced(lines[at]) != fenced(lines[at-1]) {
			c.section++
		}
	}
}

// longCommand is more than people type at a prompt.
const longCommand = 240

// joined reports whether a page has joined a prompt, its command and their output into one line
// that a kind knows. It places the part.
func (c *cutter) joined(line paste.Line) bool {
	if line.Command == "" || len(line.Text) < longCommand {
		return false
	}
	line.Command, c.asks.logs = "", false
	kind, part := c.asks.claim([]paste.Line{line})
	if kind != nil {
		c.place(nil, kind, part)
	}
	return kind != nil
}

// section is how many lines, from the first one on, no prompt, fence or other file's name divides.
func section(lines []paste.Line) int {
	end := 1
	for end < len(lines) && lines[end].Command == "" && fenced(lines[end]) == fenced(lines[0]) &&
		lines[end].Path == lines[0].Path {
		end++
	}
	return end
}

// mostNamed bounds how many lines may be known by their prompts together.
const mostNamed = 4000

// sameHost is where the lines end that may be of the same host as the prompt at a place.
func sameHost(lines []paste.Line, at int) int {
	end := at + 1
	for end < min(len(lines), at+mostNamed) && !(lines[end].Command != "" && differ(lines[end].Host, lines[at].Host)) {
		end++
	}
	return end
}

// fenced is the number of the fence that a line stands in; 0: in none.
func fenced(l paste.Line) int { return max(l.Block, 0) }

// cutter is the state of a cut.
type cutter struct {
	file      string
	kinds     *Kinds
	asks      *asker
	parts     []*Part
	unknown   []Range
	scattered map[origin]*Part
	prompt    paste.Line // the last one; none: no Command
	session   string     // the commands since the last prompt of a shell, that one's first
	first     int        // how many parts there were at that prompt
	quota     float64    // CPUs, of the last command that gives some
	host      string     // of the last prompt that names one
	slept     [2]string  // what the last prompt, and the one before it, did where it only slept
	section   int
	dull      dull
	limit     int                   // lines of a scattered part of a long text; 0: no limit
	spans     []span                // of a long text: lines that were last claimed
	starts    func(paste.Line) bool // reports whether a line may start a part; nil: any may
}

// span is the numbers of the first and the last of some lines.
type span struct{ first, last int }

// has reports whether a line was claimed of late.
func (c *cutter) has(n int) bool {
	return slices.ContainsFunc(c.spans, func(s span) bool { return s.first <= n && n <= s.last })
}

// origin says which scattered lines are one part.
type origin struct {
	kind    *Kind
	source  string
	pid     int
	section int
}

// cut cuts one section.
func (c *cutter) cut(lines []paste.Line) {
	var last *Part // the part that ends right above, if only what was left out stands between
	var raw rawView
	for at := 0; at < len(lines); {
		line := lines[at]
		if line.Text == "" && line.Raw == "" {
			if !line.Elided {
				last = nil
			}
			at++
			continue
		}
		if c.starts != nil && !c.starts(line) {
			last = nil
			at++
			continue
		}
		kind, part := c.claim(lines, at, &raw)
		if kind == nil {
			c.dull.add(line, c.section)
			c.unknow(lines[at : at+1])
			last = nil
			at++
			continue
		}
		last = c.place(last, kind, part)
		at += len(part)
	}
}

// claim asks which kind a section's lines are from one of them on, and returns those that are its.
func (c *cutter) claim(lines []paste.Line, at int, raw *rawView) (*Kind, []paste.Line) {
	c.asks.logs = c.dull.is(lines[at], c.section)
	kind, part := c.asks.claim(lines[at:])
	if kind == nil && lines[at].Raw != "" {
		// What looked like a logger's prefix may be how the tool starts its lines.
		kind, part = c.asks.claim(raw.from(lines, at))
	}
	if kind != nil && kind.Scattered && kind.Single {
		part = ofOneSource(part)
	}
	return kind, part
}

// ofOneSource is the first of these lines which one container, pod or host wrote: the next one's
// stand in a part of their own.
func ofOneSource(lines []paste.Line) []paste.Line {
	for i := range lines {
		if s := lines[i].Source; s != "" && s != lines[0].Source {
			return lines[:i]
		}
	}
	return lines
}

// place puts a kind's lines where they belong: into the scattered part of their source, into the
// part that ends right above, or into a new one. It returns the part.
func (c *cutter) place(last *Part, kind *Kind, lines []paste.Line) *Part {
	from := origin{kind, lines[0].Source, lines[0].PID, c.section}
	if c.limit > 0 {
		c.spans = append(c.spans, span{lines[0].N, lines[len(lines)-1].N})
	}
	switch {
	case kind.Scattered && c.scattered[from] != nil:
		last = c.scattered[from]
		if c.limit > 0 && len(last.Lines) >= c.limit {
			last.Left += len(lines)
			return last
		}
		last.Lines = grown(last.Lines, &last.own, lines)
	case !kind.Scattered && last != nil && last.Kind == kind && (kind.Apart == nil || !kind.Apart(lines[0])):
		last.Lines = grown(last.Lines, &last.own, lines)
	default:
		last = c.part(kind, lines)
		if kind.Scattered {
			c.scattered[from] = last
		}
	}
	return last
}

// named makes a part of lines whose prompt or names of files are needed to know them. It returns
// how many lines are in it; the prompt's line, of which there are skip, is not.
func (c *cutter) named(lines []paste.Line, skip int) int {
	kind, n := claimOf(lines, c.kinds.prompted)
	if n <= skip {
		return 0
	}
	c.part(kind, lines[skip:n])
	for _, l := range lines[skip:n] {
		if l.Command != "" {
			c.prompt = l
		}
	}
	return n - skip
}

// part makes a new part, with what stands above it.
func (c *cutter) part(kind *Kind, lines []paste.Line) *Part {
	p := &Part{Kind: kind, File: c.file, Lines: lines,
		Command: cmp.Or(c.prompt.Command, c.bareCommand(lines[0].N)), Prompt: c.prompt.Text}
	if p.Command == "" {
		p.Command, p.Every = scripted(kind, c.unknown)
	}
	p.Host, p.Path, p.PID = c.prompt.Host, lines[0].Path, lines[0].PID
	if ownPrompt(c.prompt) {
		p.Session = c.session
		for _, above := range c.parts[c.first:] {
			if above.Kind == kind {
				p.Above = above
			}
		}
	}
	path, pid := fromCommand(p.Command)
	if p.Path == "" {
		p.Path = path
	}
	if p.PID == 0 {
		p.PID = pid
	}
	if p.PID == 0 {
		p.PID = pidOf(p.Path)
	}
	p.Quota, p.Script, p.Slept = c.quota, scriptOf(p.Command, c.unknown), c.slept[1]
	p.Title = c.title(lines[0].N)
	c.parts = append(c.parts, p)
	return p
}

// mostTyped bounds what is kept of the commands of a session.
const mostTyped = 4000

// typed keeps a command, and the quota that it gives. On another host that quota holds for nobody.
func (c *cutter) typed(prompt paste.Line) {
	if differ(prompt.Host, c.host) {
		c.quota = 0
	}
	c.host = cmp.Or(prompt.Host, c.host)
	c.slept = [2]string{onlySleeps(prompt.Command), c.slept[0]}
	if q := quotaOf(prompt.Command); q > 0 {
		c.quota = q
	}
	if !ownPrompt(prompt) {
		c.session, c.first = prompt.Command, len(c.parts)
	} else if len(c.session)+len(prompt.Command) < mostTyped {
		c.session += "; " + prompt.Command
	}
}

// addressPrompt is the prompt of a client that shows which server it asks, as redis-cli does.
var addressPrompt = pattern.New(`^\s*[\w.-]+:\d{2,5}(?:\[\d+\])?(?:\([A-Z]+\))?> `)

// onlySleeps is a command that does nothing but sleep; "": it does something.
func onlySleeps(command string) string {
	if f := strings.Fields(command); len(f) == 2 && f[0] == "sleep" {
		return command
	}
	return ""
}

// ownPrompt reports whether a prompt is one of a tool that runs, as "(pprof) " is, and no shell's.
func ownPrompt(prompt paste.Line) bool {
	if addressPrompt.MatchString(prompt.Text) {
		return true
	}
	word, _, ok := strings.Cut(strings.TrimSpace(prompt.Text), ") ")
	return ok && strings.HasPrefix(word, "(") && !strings.ContainsAny(word, " @$#")
}

// title takes the line right above line n for a title, if nothing knows it and it is short. An
// empty line, a fence or a prompt may stand between.
func (c *cutter) title(n int) string {
	i := len(c.unknown) - 1
	if i < 0 {
		return ""
	}
	r := &c.unknown[i]
	above := r.Lines[len(r.Lines)-1]
	text := strings.TrimSpace(above.Text)
	if above.Raw != "" || !sentence(text) && !strings.HasSuffix(text, ":") || r.Last < n-3 ||
		len(text) > 240 || len(c.parts) > 0 && r.Last < c.parts[len(c.parts)-1].Last() {
		return ""
	}
	c.known(i)
	return text
}

// bareCommand takes the line right above line n for the command, where a person copied it without
// its prompt: it starts with a tool's name, and has an option. An empty line may stand between.
func (c *cutter) bareCommand(n int) string {
	i := len(c.unknown) - 1
	if i < 0 || c.unknown[i].Last < n-2 {
		return ""
	}
	r := &c.unknown[i]
	text := strings.TrimSpace(r.Lines[len(r.Lines)-1].Text)
	if r.Lines[len(r.Lines)-1].Raw != "" || !paste.IsCommand(text) || !strings.Contains(text, " -") {
		return ""
	}
	c.known(i)
	return text
}

// known takes the last line of a range from what no kind knows.
func (c *cutter) known(i int) {
	r := &c.unknown[i]
	r.Lines = r.Lines[:len(r.Lines)-1]
	if len(r.Lines) == 0 {
		c.unknown = c.unknown[:i]
		return
	}
	r.Last = r.Lines[len(r.Lines)-1].N
}

// unknow adds one line to what no kind knows.
func (c *cutter) unknow(line []paste.Line) {
	n := line[0].N
	if strings.TrimSpace(line[0].Text) == "" {
		return
	}
	if i := len(c.unknown) - 1; i >= 0 && c.unknown[i].Last == n-1 {
		c.unknown[i].Last = n
		c.unknown[i].Lines = grown(c.unknown[i].Lines, &c.unknown[i].own, line)
		return
	}
	c.unknown = append(c.unknown, Range{First: n, Last: n, Lines: line, Command: c.prompt.Command})
}

// grown is lines with more behind them. As long as they stand below each other in the paste, they
// are a stretch of it, and nothing is copied: a line takes more memory than its text. own is set
// where they were copied: what stands behind them in memory is free then.
func grown(lines []paste.Line, own *bool, more []paste.Line) []paste.Line {
	n := len(lines)
	switch {
	case !*own && cap(lines) >= n+len(more) && &lines[:n+1][n] == &more[0]:
		return lines[:n+len(more)]
	case !*own:
		lines, *own = slices.Clip(lines), true
	}
	return append(lines, more...)
}

// clip keeps who appends to lines from writing into the paste.
func (c *cutter) clip() {
	for _, p := range c.parts {
		p.Lines = slices.Clip(p.Lines)
	}
	for i := range c.unknown {
		c.unknown[i].Lines = slices.Clip(c.unknown[i].Lines)
	}
}

// rawView is a section's lines from one on that has a prefix, as they were written. What follows it
// without a prefix is the rest of a record that has several lines. It is made once for a section.
type rawView struct {
	lines      []paste.Line
	first, end int // the run, in the section
}

func (v *rawView) from(lines []paste.Line, at int) []paste.Line {
	if at < v.first || at >= v.end {
		v.first, v.end = at, at
		v.end = len(lines)
		v.lines = slices.Clone(lines[at:])
		for i := range v.lines {
			v.lines[i].Text = cmp.Or(v.lines[i].Raw, v.lines[i].Text)
		}
	}
	return v.lines[at-v.first:]
}
