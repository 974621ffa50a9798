package format

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindPressure is a file of pressure stall information, of the host or of a cgroup.
const KindPressure Kind = "a file of pressure (PSI)"

var _ = registerFile(&row{
	kind: KindPressure, name: "pressure",
	looks: starts("some avg10="), file: (*kernelFiles).pressure,
	at: func(p string) bool {
		return strings.HasSuffix(p, ".pressure") || strings.HasPrefix(p, "/proc/pressure/")
	},
	streams: []evidence.Stream{
		{Name: "/cgroup/psi/cpu/some:ns", Doc: "Counter. Time some task of the target's own group waited for a CPU."},
		{Name: "/cgroup/psi/cpu/full:ns", Doc: "Counter. Time all of them did."},
		{Name: "/cgroup/psi/memory/some:ns", Doc: "Counter."},
		{Name: "/cgroup/psi/memory/full:ns", Doc: "Counter."},
		{Name: "/cgroup/psi/io/some:ns", Doc: "Counter."},
		{Name: "/cgroup/psi/io/full:ns", Doc: "Counter."},
		{Name: "/host/psi/cpu/some:ns",
			Doc: "Counter. Time some task of the host waited for a CPU. A Gap if PSI is off."},
		{Name: "/host/psi/cpu/full:ns", Doc: "Counter. Not defined for the whole host; kernels print 0."},
		{Name: "/host/psi/memory/some:ns", Doc: "Counter."},
		{Name: "/host/psi/memory/full:ns", Doc: "Counter."},
		{Name: "/host/psi/io/some:ns", Doc: "Counter."},
		{Name: "/host/psi/io/full:ns", Doc: "Counter."},
	},
})

// pressureStream finds out by a file's name whose pressure it holds: nothing else says that.
func pressureStream(name string) string {
	where := "/host/psi/"
	base := path.Base(name)
	if resource, ok := strings.CutSuffix(base, ".pressure"); ok {
		where, base = "/cgroup/psi/", resource
	}
	for _, resource := range []string{"cpu", "memory", "io"} {
		if base == resource || strings.HasPrefix(base, resource+".") {
			return where + resource
		}
	}
	return ""
}

// pressure reads lines "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", the total in us.
func (s *kernelFiles) pressure(r reading) error {
	stream := pressureStream(r.path)
	if stream == "" {
		return fmt.Errorf("only its name says which pressure it is: name it cpu.pressure, memory.pressure or io.pressure (of a cgroup), or cpu, memory, io (of the host)")
	}
	for line := range strings.Lines(r.text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		total, ok := strings.CutPrefix(f[len(f)-1], "total=")
		v, err := strconv.ParseUint(total, 10, 64)
		if !ok || err != nil || f[0] != "some" && f[0] != "full" {
			return fmt.Errorf("want some or full ... total=N, got %.60q", line)
		}
		s.add(stream+"/"+f[0]+":ns", evidence.Counter, r.time, float64(v)*1000)
	}
	return nil
}
