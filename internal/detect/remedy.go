package detect

import "strings"

// leastRemedy is how long a remedy must be to say what to do: "Share less." does not.
const leastRemedy = 40

// FirstRemedy is the first sentence or two of the manual's remedy for a cause, on one line; "" if
// the manual has no such page. It is for people who have no measurement that would choose among the
// remedies.
func FirstRemedy(cause string) string {
	page, ok := Manual(cause)
	if !ok {
		return ""
	}
	_, text, _ := strings.Cut(page.Doc, "\nRemedy\n")
	text, _, _ = strings.Cut(text, "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	for i := range text {
		// A sentence ends with a point before a capital letter.
		if i >= leastRemedy && strings.HasPrefix(text[i:], ". ") && i+2 < len(text) &&
			text[i+2] >= 'A' && text[i+2] <= 'Z' {
			return text[:i]
		}
	}
	return strings.TrimSuffix(text, ".")
}
