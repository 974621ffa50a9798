package format

import (
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

var envStreams = []evidence.Stream{
	{Name: "/env/GOMAXPROCS:procs",
		Doc: "Fact. From the environment that the process started with; Text as it stands."},
	{Name: "/env/GOGC:percent", Doc: "Fact. Likewise; \"off\" has the value -1."},
	{Name: "/env/GOMEMLIMIT:bytes", Doc: "Fact. Likewise; \"off\" has the value 0."},
	{Name: "/env/GODEBUG:text", Doc: "Fact. Likewise."},
	{Name: "/env/GLIBC_TUNABLES:text", Doc: "Fact. Likewise."},
	{Name: "/env/MALLOC:text", Doc: "Fact for each variable MALLOC_*: \"MALLOC_ARENA_MAX=2\"."},
}

// Env returns the records of a target's environment. It leaves out everything that is not in its
// list: the environment may hold secrets.
func Env(env map[string]string) (out []evidence.Record) {
	fact := func(stream string, v float64, text string) {
		out = append(out, evidence.Record{Stream: stream, Shape: evidence.Fact, Value: v, Text: printable(text)})
	}
	for _, name := range []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GLIBC_TUNABLES"} {
		text, ok := env[name]
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v != v {
			v = 0
		}
		switch name {
		case "GOMAXPROCS":
			fact("/env/GOMAXPROCS:procs", v, text)
		case "GOGC":
			if text == "off" {
				v = -1
			}
			fact("/env/GOGC:percent", v, text)
		case "GOMEMLIMIT":
			fact("/env/GOMEMLIMIT:bytes", memLimit(text), text)
		default:
			fact("/env/"+name+":text", 0, text)
		}
	}
	var names []string
	for name := range env {
		if strings.HasPrefix(name, "MALLOC_") {
			names = append(names, name+"="+env[name])
		}
	}
	slices.Sort(names)
	for _, n := range names[:min(len(names), 50)] {
		fact("/env/MALLOC:text", 0, n)
	}
	return out
}

// memLimit reads GOMEMLIMIT as the runtime does: bytes with an optional unit B, KiB, MiB, GiB, TiB.
// 0: off, or none.
func memLimit(text string) float64 {
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if n, ok := strings.CutSuffix(text, unit); ok {
			v, err := strconv.ParseUint(n, 10, 40)
			if err != nil {
				return 0
			}
			return float64(v) * float64(int64(1)<<(10*(i+1)))
		}
	}
	v, err := strconv.ParseUint(strings.TrimSuffix(text, "B"), 10, 63)
	if err != nil {
		return 0
	}
	return float64(v)
}
