package format

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// The limits of a process, and how much it moved from and to storage.
const (
	KindLimits Kind = "limits of a process"
	KindIO     Kind = "io of a process"
)

var _ = registerFile(&row{
	kind: KindLimits, name: "process-limits",
	looks: starts("Limit "), at: base("limits"), file: (*kernelFiles).limits,
	streams: []evidence.Stream{
		{Name: "/process/limit/files:files", Doc: "Fact. Soft limit; Text \"unlimited\" with 0."},
		{Name: "/process/limit/threads:threads",
			Doc: "Fact. Soft limit of the user's processes and threads; Text \"unlimited\" with 0."},
		{Name: "/process/limit/locked:bytes", Doc: "Fact. Soft limit of locked memory; Text \"unlimited\" with 0."},
	},
})

var _ = registerFile(&row{
	kind: KindIO, name: "process-io",
	looks: starts("rchar:"), at: base("io"), file: (*kernelFiles).io, gap: "/process/io/read:bytes",
	streams: []evidence.Stream{
		{Name: "/process/io/read:bytes", Doc: "Counter. Read from storage."},
		{Name: "/process/io/written:bytes", Doc: "Counter. Written to storage."},
	},
})

// limits reads a table with the columns name, soft, hard, unit.
func (s *kernelFiles) limits(r reading) error {
	streams := map[string]string{"Max open files": "/process/limit/files:files",
		"Max processes": "/process/limit/threads:threads", "Max locked memory": "/process/limit/locked:bytes"}
	for line := range strings.Lines(r.text) {
		for name, stream := range streams {
			rest, ok := strings.CutPrefix(line, name)
			f := strings.Fields(rest)
			if !ok || len(f) < 2 {
				continue
			}
			if f[0] == "unlimited" {
				s.fact(stream, r.time, 0, "unlimited")
				continue
			}
			v, err := amount(f[0])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			s.fact(stream, r.time, v, "")
		}
	}
	return nil
}

func (s *kernelFiles) io(r reading) error {
	return pairs(r.text, ":", func(name string, v float64) {
		switch name {
		case "read_bytes":
			s.add("/process/io/read:bytes", evidence.Counter, r.time, v)
		case "write_bytes":
			s.add("/process/io/written:bytes", evidence.Counter, r.time, v)
		}
	})
}
