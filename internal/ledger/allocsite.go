package ledger

import (
	"strings"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/timeline"
)

// allocSite is the place in the program that makes an allocation: nobody can make encoding/json
// allocate less, except its caller. Via is the function that was called. Where the whole stack is
// Go's own, it is the place as elsewhere.
func (p *pass) allocSite(id exectrace.StackID) account.Site {
	via := ""
	for _, f := range p.src.Frames(nil, id) {
		name := timeline.Plain(f.Func)
		if !ofGo(name) {
			return account.Site{Func: name, File: f.File, Line: f.Line, Via: via}
		}
		via = ""
		if !strings.HasPrefix(name, "runtime.") {
			via = name
		}
	}
	return p.site(id)
}

// goPackages are the first elements of the import paths of Go's own packages, as of 1.26.
const goPackages = " archive arena bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash html image" +
	" index internal io iter log maps math mime net os path plugin reflect regexp runtime simd slices sort strconv strings structs sync syscall testing" +
	" text time unicode unique unsafe vendor weak "

// ofGo reports whether a function is of one of Go's own packages, by name. A program may have a
// package of the same name: then the function's caller is named.
func ofGo(name string) bool {
	if i := strings.IndexAny(name, "[("); i >= 0 {
		name = name[:i]
	}
	first, _, below := strings.Cut(name, "/")
	if !below {
		first, _, _ = strings.Cut(name, ".")
	}
	return strings.Contains(goPackages, " "+first+" ")
}
