package systool

import "github.com/whystall/whystall/internal/attach"

// Kinds lists the kinds of this room.
func Kinds() []*attach.Kind {
	return []*attach.Kind{
		free,
		iostat,
		numastat,
		ps,
		sar,
		top,
		vmstat,
		mpstat,
		pidstat,
	}
}
