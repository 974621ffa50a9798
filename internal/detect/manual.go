package detect

import "sort"

// Cause is one page of the manual.
type Cause struct {
	Name, Title string
	Doc         string   // plain text, lines of at most 100 columns
	Needs       []string // any of these is enough
	Floor       Floor
}

// Causes returns the manual, sorted by name.
func Causes() []Cause {
	var cs []Cause
	for _, d := range table {
		cs = append(cs, Cause{Name: d.Name, Title: d.Title, Doc: d.Doc,
			Needs: append([]string(nil), d.Needs...), Floor: d.Floor})
	}
	sort.Slice(cs, func(i, j int) bool { return cs[i].Name < cs[j].Name })
	return cs
}

// Manual returns one page; false if the manual has none of that name.
func Manual(name string) (Cause, bool) {
	for _, c := range Causes() {
		if c.Name == name {
			return c, true
		}
	}
	return Cause{}, false
}
