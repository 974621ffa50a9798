package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// printHelp prints what kong's own help does, but leaves descriptions as they are: kong reflows
// them, which ruins examples.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	w := ctx.Stdout
	node := ctx.Selected()
	if node == nil {
		fmt.Fprintf(w, "Usage: whystall COMMAND [flags]\n\n%s\n\nCommands:\n", ctx.Model.Help)
		for _, c := range ctx.Model.Children {
			if c.Hidden {
				continue
			}
			fmt.Fprintf(w, "  %-12s %s\n", c.Name, c.Help)
		}
		fmt.Fprintf(w, "\nwhystall COMMAND --help says more about a command.\n")
		return nil
	}
	fmt.Fprintf(w, "Usage: whystall %s\n\n%s\n", node.Summary(), node.Help)
	if node.Detail != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(node.Detail))
	}
	rows := [][2]string{}
	for _, p := range node.Positional {
		rows = append(rows, [2]string{p.Summary(), p.Help})
	}
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			name := "    --" + f.Name
			if f.Short != 0 {
				name = fmt.Sprintf("-%c, --%s", f.Short, f.Name)
			}
			if !f.IsBool() {
				name += "=" + f.FormatPlaceHolder()
			}
			rows = append(rows, [2]string{name, f.Help})
		}
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		printRow(w, r[0], r[1])
	}
	return nil
}

// printRow prints a name and its explanation, which it wraps at 100 columns.
func printRow(w io.Writer, name, help string) {
	const column = 26
	if len(name) > column-4 {
		fmt.Fprintf(w, "  %s\n", name)
		name = ""
	}
	line := fmt.Sprintf("  %-*s", column-2, name)
	for _, word := range strings.Fields(help) {
		if len(line)+len(word) > 99 {
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", column)
		}
		line += word + " "
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}
