// Package kinds is the table of all kinds of text that people attach.
package kinds

import (
	"slices"
	"sync"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/database"
	"github.com/whystall/whystall/internal/attach/goruntime"
	"github.com/whystall/whystall/internal/attach/kernelfile"
	"github.com/whystall/whystall/internal/attach/profiler"
	"github.com/whystall/whystall/internal/attach/stackdump"
	"github.com/whystall/whystall/internal/attach/systool"
)

// All lists the kinds of all rooms.
func All() []*attach.Kind {
	return slices.Concat(goruntime.Kinds(), kernelfile.Kinds(), systool.Kinds(), profiler.Kinds(),
		stackdump.Kinds(), database.Kinds())
}

// Table is the list of All for cutting texts. It is made once, as its search takes some memory.
var Table = sync.OnceValue(func() *attach.Kinds { return attach.NewKinds(All()) })
