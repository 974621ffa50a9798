package request

import "strings"

// What the name of a function says.

// pkgPath and methodOf split "a/b.(*T).M" into "a/b" and "(*T).M".
func pkgPath(name string) string {
	slash := strings.LastIndexByte(name, '/')
	// A slash inside type arguments is no part of the path.
	if b := strings.IndexByte(name, '['); b >= 0 && slash > b {
		slash = strings.LastIndexByte(name[:b], '/')
	}
	dot := strings.IndexByte(name[slash+1:], '.')
	if dot < 0 {
		return name
	}
	return name[:slash+1+dot]
}

func methodOf(name string) string {
	p := pkgPath(name)
	if len(p) == len(name) {
		return ""
	}
	return name[len(p)+1:]
}

// pkgBase is the last element of the package's path, with a major version taken off.
func pkgBase(name string) string {
	p := pkgPath(name)
	i := strings.LastIndexByte(p, '/')
	base := p[i+1:]
	if i > 0 && len(base) > 1 && base[0] == 'v' && base[1] >= '0' && base[1] <= '9' {
		p = p[:i]
		base = p[strings.LastIndexByte(p, '/')+1:]
	}
	return base
}

// isStd reports whether a function is of the standard library, as far as that waits or reads for
// others. A program's own package may have a path without a dot too, so these are named.
func isStd(name string) bool {
	p := pkgPath(name)
	if i := strings.IndexByte(p, '/'); i >= 0 {
		p = p[:i]
	}
	switch p {
	case "runtime", "internal", "net", "crypto", "bufio", "io", "sync", "os", "time", "syscall", "context", "encoding",
		"reflect", "bytes", "strings", "iter", "fmt", "log", "compress", "database", "errors",
		"sort", "slices", "maps", "vendor", "mime", "text":
		return true
	}
	return strings.HasPrefix(name, "golang.org/x/sys/") || strings.HasPrefix(name, "golang.org/x/net/")
}

func isRuntime(name string) bool { return strings.HasPrefix(name, "runtime.") }

// isRootWrapper reports whether a frame below a goroutine's function is not the program's.
func isRootWrapper(name string) bool {
	if name == "runtime.goexit" || name == "" {
		return true
	}
	i := strings.LastIndexByte(name, '.')
	return i >= 0 && strings.HasPrefix(name[i+1:], "gowrap") || strings.Contains(name, "·dwrap·")
}

// is makes a predicate for one name.
func is(name string) func(string) bool { return func(e string) bool { return e == name } }
