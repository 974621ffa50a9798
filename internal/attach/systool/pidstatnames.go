package systool

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// pidstatColumns are the columns of pidstat's tables before the command, by the option that asks
// for a table. Versions before 10.1 have no UID, those before 11.5.7 no %wait, and iodelay came
// with 11.0.
var pidstatColumns = map[byte][][]string{
	'u': {{"UID", "PID", "%usr", "%system", "%guest", "%wait", "%CPU", "CPU"},
		{"UID", "PID", "%usr", "%system", "%guest", "%CPU", "CPU"},
		{"PID", "%usr", "%system", "%guest", "%CPU", "CPU"}},
	'w': {{"UID", "PID", "cswch/s", "nvcswch/s"}, {"PID", "cswch/s", "nvcswch/s"}},
	'd': {{"UID", "PID", "kB_rd/s", "kB_wr/s", "kB_ccwr/s", "iodelay"},
		{"UID", "PID", "kB_rd/s", "kB_wr/s", "kB_ccwr/s"}, {"PID", "kB_rd/s", "kB_wr/s", "kB_ccwr/s"}},
	'r': {{"UID", "PID", "minflt/s", "majflt/s", "VSZ", "RSS", "%MEM"},
		{"PID", "minflt/s", "majflt/s", "VSZ", "RSS", "%MEM"}},
}

// filteredNames are the columns of rows that lost their names to a filter, as in "pidstat -w 10 1 |
// grep app": the command says which table it is, and the number of figures which version. Nil: it
// cannot be told.
func filteredNames(command, text string) []string {
	tool, _, piped := strings.Cut(command, "|")
	words := fields(tool)
	at := slices.IndexFunc(words, func(w string) bool { return w == "pidstat" || strings.HasSuffix(w, "/pidstat") })
	if !piped || at < 0 {
		return nil
	}
	letter := byte(0)
	for _, w := range words[at+1:] {
		if len(w) < 2 || w[0] != '-' || w[1] == '-' {
			continue
		}
		for _, c := range []byte(w[1:]) {
			switch {
			case c == 't' || c == 'h' || c == 'R' || c == 's' || c == 'v':
				return nil // other columns
			case pidstatColumns[c] == nil:
			case letter != 0 && letter != c:
				return nil // two tables
			default:
				letter = c
			}
		}
	}
	if letter == 0 {
		letter = 'u'
	}
	_, _, rest, ok := sysstatTime(fields(text))
	if !ok {
		return nil
	}
	figures := 0
	for figures < len(rest) && numeric(rest[figures:figures+1]) {
		figures++
	}
	for _, names := range pidstatColumns[letter] {
		if figures == len(names) && len(rest) > figures {
			return append(slices.Clone(names), "Command")
		}
	}
	return nil
}

// claimFiltered counts the rows below a prompt whose command filters pidstat's lines.
func claimFiltered(lines []paste.Line) int {
	if len(lines) < 2 || !strings.Contains(lines[0].Command, "pidstat") {
		return 0
	}
	names := filteredNames(lines[0].Command, lines[1].Text)
	if names == nil {
		return 0
	}
	n := 1
	for n < len(lines) && lines[n].Command == "" {
		_, _, rest, ok := sysstatTime(fields(lines[n].Text))
		if !ok || !sysstatRow(names, rest) {
			break
		}
		n++
	}
	return n
}
