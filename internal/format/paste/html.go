package paste

import (
	"html"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// tags are marks of HTML that hold text, as they stand at the start or the end of a line.
const tags = `(?:</?(?:pre|code|details|summary|p|br|div|blockquote|ul|ol|li|table|tbody|thead|tr|td|th|b|i|em|strong|font|span|tt|kbd|samp|h[1-6])(?:\s[^<>]*)?/?>\s*)+`

var (
	tagsBefore = pattern.New(`^\s*` + tags)
	tagsAfter  = pattern.New(tags + `$`)
	// A word that was set in bold, within a line.
	inline = pattern.New(`<(?:b|i|u|em|strong|font|span|mark)(?:\s[^<>]*)?>([^<>]*)</(?:b|i|u|em|strong|font|span|mark)>`)
	// A figure that was set in bold with the marks of Markdown, within a line.
	starred = pattern.New(`(^|[\s,|])\*\*(\d[\d.,]*%?(?: [a-z]{1,3})?)\*\*`)
)

// untagged takes the tags at the start and at the end of a line off, and the marks around a word.
// Blanks behind a tag that stands first belong to the tool's line.
func untagged(text string) string {
	if strings.Contains(text, "**") {
		text = starred.ReplaceAllString(text, "$1$2")
	}
	if !strings.Contains(text, ">") || !strings.Contains(text, "<") {
		return text
	}
	if strings.Contains(text, "</") {
		text = inline.ReplaceAllString(text, "$1")
	}
	if at := tagsBefore.FindStringIndex(text); at != nil {
		end := at[1]
		for end > 0 && (text[end-1] == ' ' || text[end-1] == '\t') {
			end--
		}
		text = text[end:]
	}
	if at := tagsAfter.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return strings.TrimRight(text, " \t")
}

// entity is one of those that a web page or a tracker makes of a tool's output. From 9472 on they
// are the lines of which tools draw trees.
var entity = pattern.New(`&(?:gt|lt|amp|quot|apos|nbsp|#39|#34|#x27|#x2F|#96|#9(?:4[7-9]|5\d)\d);`)

// unescaped puts characters for the entities of HTML. Twice, since some trackers escape twice.
func unescaped(text string) string {
	for range 2 {
		if strings.IndexByte(text, '&') < 0 || !entity.MatchString(text) {
			break
		}
		text = entity.ReplaceAllStringFunc(text, html.UnescapeString)
	}
	return text
}
