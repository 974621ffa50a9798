package goruntime

// above is the function outside the standard library with most, with what it calls, where the one
// with most in itself is of that library; "": there is none, or it is not.
func (p *profile) above(fn string) string {
	if !standard(fn) {
		return ""
	}
	caller := most(p.cum, func(fn string) bool { return ownFunction(fn) && !standard(fn) })
	for f, v := range p.cum { // of those that have about as much, the one that does something itself
		if ownFunction(f) && !standard(f) && v >= 0.99*p.cum[caller] && p.flat[f] > p.flat[caller] {
			caller = f
		}
	}
	if p.cum[caller] < worthNaming*p.total {
		return ""
	}
	return caller
}

// standardParts are packages of Go's standard library that compute and allocate for others.
var standardParts = []string{"bytes.", "strings.", "strconv.", "bufio.", "fmt.", "io.", "io/",
	"encoding/", "regexp.", "regexp/", "sort.", "slices.", "maps.",
	"compress/", "crypto/", "hash/", "math/", "reflect.", "net.", "net/", "text/", "html/",
	"unicode/", "database/sql.", "container/", "errors.", "log.", "time.", "context."}

func standard(fn string) bool { return library(fn) || hasPrefix(fn, standardParts) }
