package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

var _ = register(&command{
	Name: "completions", Help: "Print the completion script of a shell.", Order: 90,
	New: func() any { return &completionsCmd{} },
})

type completionsCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (*completionsCmd) Help() string {
	return `Examples:
  source <(whystall completions bash)
  whystall completions zsh > "${fpath[1]}/_whystall"
  whystall completions fish > ~/.config/fish/completions/whystall.fish`
}

func (c *completionsCmd) Run(con *console) error {
	parser, err := newParser(con, func(int) {})
	if err != nil {
		return err
	}
	cmds := completable(parser.Model)
	switch c.Shell {
	case "bash":
		return bashCompletion(con.stdout, cmds)
	case "zsh":
		return zshCompletion(con.stdout, cmds)
	}
	return fishCompletion(con.stdout, cmds)
}

// completion is what a shell needs to know about a command. All of it comes from the command line's
// model, so a new flag completes by itself.
type completion struct {
	name, help string
	flags      []completionFlag
	words      []string // of the first argument; none: files
	files      bool
}

type completionFlag struct {
	name, help string
	short      rune
	value      bool     // takes a value
	file       bool     // the value is a file
	pid        bool     // the value is a process
	words      []string // the values that it may have
}

func completable(app *kong.Application) []completion {
	var out []completion
	for _, n := range app.Children {
		if n.Hidden {
			continue
		}
		c := completion{name: n.Name, help: n.Help}
		for _, p := range n.Positional {
			switch {
			case p.Enum != "":
				c.words = strings.Split(p.Enum, ",")
			case n.Name == "causes":
				c.words = append(c.words, pages()...)
			case p.Name == "target":
			default:
				c.files = true
			}
		}
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				g := completionFlag{name: f.Name, help: f.Help, short: f.Short, value: !f.IsBool(),
					file: f.PlaceHolder == "FILE", pid: f.Name == "pid"}
				if f.Enum != "" {
					g.words = strings.Split(f.Enum, ",")
				}
				c.flags = append(c.flags, g)
			}
		}
		out = append(out, c)
	}
	return out
}

func names(cmds []completion) string {
	var s []string
	for _, c := range cmds {
		s = append(s, c.name)
	}
	return strings.Join(s, " ")
}

func bashCompletion(w io.Writer, cmds []completion) error {
	var b strings.Builder
	fmt.Fprintf(&b, `# bash completion of whystall
_whystall() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  # Bash takes --format=json for three words.
  [ "$cur" = "=" ] && cur=""
  [ "$prev" = "=" ] && prev=${COMP_WORDS[COMP_CWORD-2]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "%s --help" -- "$cur"))
    return
  fi
  case "${COMP_WORDS[1]}:$prev" in
`, names(cmds))
	for _, c := range cmds {
		for _, f := range c.flags {
			if !f.value {
				continue
			}
			is := c.name + ":--" + f.name
			if f.short != 0 {
				is += "|" + c.name + ":-" + string(f.short)
			}
			reply := ""
			switch {
			case len(f.words) > 0:
				reply = "COMPREPLY=($(compgen -W \"" + strings.Join(f.words, " ") + "\" -- \"$cur\")); "
			case f.file:
				reply = "COMPREPLY=($(compgen -f -- \"$cur\")); "
			case f.pid:
				reply = "COMPREPLY=($(cd /proc && compgen -G \"${cur}[0-9]*\" || compgen -G \"$cur\")); "
			}
			fmt.Fprintf(&b, "    %s) %sreturn ;;\n", is, reply)
		}
	}
	b.WriteString("  esac\n  case \"${COMP_WORDS[1]}\" in\n")
	for _, c := range cmds {
		var flags []string
		for _, f := range c.flags {
			flags = append(flags, "--"+f.name)
		}
		args := ""
		if c.files {
			args = `; [[ $cur == -* ]] || COMPREPLY+=($(compgen -f -- "$cur"))`
		}
		fmt.Fprintf(&b, "    %s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\"))%s ;;\n", c.name,
			strings.TrimSpace(strings.Join(c.words, " ")+" "+strings.Join(flags, " ")), args)
	}
	b.WriteString("  esac\n}\ncomplete -o filenames -o bashdefault -F _whystall whystall\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func zshCompletion(w io.Writer, cmds []completion) error {
	var b strings.Builder
	b.WriteString("#compdef whystall\n_whystall() {\n  if (( CURRENT == 2 )); then\n    local -a commands=(\n")
	for _, c := range cmds {
		fmt.Fprintf(&b, "      %s\n", quote(c.name+":"+strings.ReplaceAll(c.help, ":", `\:`)))
	}
	b.WriteString("    )\n    _describe command commands\n    return\n  fi\n  local command=$words[2]\n  shift words; (( CURRENT-- ))\n  case $command in\n")
	for _, c := range cmds {
		fmt.Fprintf(&b, "    %s) _arguments", c.name)
		for _, f := range c.flags {
			name, tail := "--"+f.name, "["+zshText(f.help)+"]"
			if f.value {
				name += "="
				tail += ":" + f.name + ":"
				switch {
				case len(f.words) > 0:
					tail += "(" + strings.Join(f.words, " ") + ")"
				case f.file:
					tail += "_files"
				case f.pid:
					tail += "_pids"
				}
			}
			if f.short != 0 {
				short := "-" + string(f.short)
				b.WriteString(" " + quote("(--"+f.name+")"+short+tail))
				name = "(" + short + ")" + name
			}
			b.WriteString(" " + quote(name+tail))
		}
		switch {
		case len(c.words) > 0:
			b.WriteString(" " + quote("1:name:("+strings.Join(c.words, " ")+")"))
		case c.files:
			b.WriteString(" '*:file:_files'")
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("  esac\n}\nif [ \"$funcstack[1]\" = _whystall ]; then _whystall \"$@\"; else compdef _whystall whystall; fi\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// zshText escapes the characters that have a meaning in a specification of _arguments.
func zshText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

func fishCompletion(w io.Writer, cmds []completion) error {
	var b strings.Builder
	b.WriteString("# fish completion of whystall\ncomplete -c whystall -f\n")
	for _, c := range cmds {
		fmt.Fprintf(&b, "complete -c whystall -n __fish_use_subcommand -a %s -d %s\n", c.name, quote(c.help))
		seen := "-n '__fish_seen_subcommand_from " + c.name + "'"
		switch {
		case len(c.words) > 0:
			fmt.Fprintf(&b, "complete -c whystall %s -a %s\n", seen, quote(strings.Join(c.words, " ")))
		case c.files:
			fmt.Fprintf(&b, "complete -c whystall %s -F\n", seen)
		}
		for _, f := range c.flags {
			fmt.Fprintf(&b, "complete -c whystall %s -l %s", seen, f.name)
			if f.short != 0 {
				fmt.Fprintf(&b, " -s %c", f.short)
			}
			switch {
			case f.value && f.file:
				b.WriteString(" -r -F")
			case f.value:
				b.WriteString(" -x")
			}
			switch {
			case len(f.words) > 0:
				fmt.Fprintf(&b, " -a %s", quote(strings.Join(f.words, " ")))
			case f.pid:
				b.WriteString(" -a '(__fish_complete_pids)'")
			}
			fmt.Fprintf(&b, " -d %s\n", quote(f.help))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
