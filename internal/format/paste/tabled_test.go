package paste

import (
	"slices"
	"testing"
)

// Tables of Markdown are read as what was put into them, in another view.
func TestViewsOfTables(t *testing.T) {
	in := "it:\n||PID | cmd|\n|-|-:|---|\n| 1| 2 | \\|__a |\n| 3 | | b|\n\nx | y\n--- | ---\n1 | 2\nend\n"
	want := []string{"it:", "PID  cmd", "1  2  |__a", "3  -  b", "", "x  y", "1  2", "end"}
	if got := texts(tabled(Lines([]byte(in)))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := tabled(Lines([]byte("a | b\nc | d\n| x |\n|---|\n"))); got != nil {
		t.Errorf("got %q of lines without a table", texts(got))
	}
}

// A host before each line of a paragraph is taken off; what stands among other lines is not one.
func TestViewsOfHosts(t *testing.T) {
	in := "a\n\nnode7: x 1\nnode7: y 2\n\nscvg0: 1\nscvg0: 2\nb\n"
	want := []string{"a", "", "x 1", "y 2", "", "scvg0: 1", "scvg0: 2", "b"}
	if got := texts(unhosted(Lines([]byte(in)))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
