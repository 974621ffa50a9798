package oncpu

import "strings"

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// plain is a kernel function's name without the suffixes of compilers: "do_softirq" of
// "do_softirq.part.0".
func plain(name string) string {
	if i := strings.IndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	return name
}

// hasPrefix reports whether name starts with one of the prefixes.
func hasPrefix(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// systemCall is the name of the system call that a function of the kernel is the entry of:
// "munmap" of __x64_sys_munmap, "write" of ksys_write; "" if it is none.
func systemCall(name string) string {
	_, call, ok := strings.Cut(name, "sys_")
	if !ok || call == "call" || !hasPrefix(name, callPrefixes) {
		return ""
	}
	return call
}

var callPrefixes = []string{"__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "__sys_", "ksys_"}
