package goruntime

import (
	"slices"
	"strings"
)

// Of the CPU: computed in software, so much is worth a word, and so much is the main thing.
const (
	softLeast = 0.05
	softMuch  = 0.25
)

// softFloats are the functions of the runtime's softfloat64.go. A compiler calls them only where it
// was told that the processor has no floating point.
var softFloats = []string{"fpack64", "fpack32", "funpack64", "funpack32", "fadd64", "fsub64",
	"fmul64", "fdiv64", "fneg64", "fadd32", "fmul32", "fdiv32", "fcmp64", "feq32", "fgt32", "fge32",
	"feq64", "fgt64", "fge64", "f32to64", "f64to32", "f64toint", "fintto64", "fintto32",
	"f32toint32", "f32toint64", "f64toint32", "f64toint64", "f64touint64", "f32touint64", "fint32to32", "fint32to64",
	"fint64to32", "fint64to64", "fuint64to32", "fuint64to64"}

func softFloat(fn string) bool {
	name, ok := strings.CutPrefix(fn, "runtime.")
	return ok && slices.Contains(softFloats, name)
}

// softFloat is the share of the CPU that computes floating point in software.
func (p *profile) softFloat() float64 {
	ns := 0.0
	for fn, v := range p.flat {
		if softFloat(fn) {
			ns += v
		}
	}
	return min(1, ratio(ns, p.total))
}
