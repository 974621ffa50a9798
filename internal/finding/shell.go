package finding

import "strings"

// ShellFile quotes a file's name for a command that a person pastes into a shell. No program takes
// what comes out for an option.
func ShellFile(name string) string {
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	return ShellWord(name)
}

// ShellWord quotes a word likewise, unless it needs no quotes. What starts with "-" still does.
func ShellWord(s string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("./_-+:@%,=", c)
	}
	if s != "" && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
