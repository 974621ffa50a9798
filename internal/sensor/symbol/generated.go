package symbol

import (
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Code that a runtime made is in no file. Of it nothing but instructions is read, from the
// process' memory, to know loops that wait (loops.go): pages of mappings that may be executed and
// are of no file, at most maxPages at a time. A jump that leads elsewhere is not followed, so that
// neither the process' data nor a device's memory is read. Nothing of it goes into a case.
//
// The runtime may put other code in its place at any time, so what was read is forgotten after
// freshCode. A search takes some 30 us, and a program that computes in much code has ever new
// places. Those of a loop that waits come often, so they are among the first of a second.

const (
	freshCode    = time.Second
	mostSearches = 500 // in each freshCode
)

// generated is what was read of such code. The zero value is empty.
type generated struct {
	mem   *os.File // /proc/PID/mem
	tried bool
	code  paged
	read  time.Time
	loops map[uint64]bool
}

// waits reports whether the instruction at an address is in a loop that only waits. Where memory
// may not be read, or the process has ended, nothing is known to wait.
func (g *generated) waits(t *Table, pc uint64) bool {
	if runtime.GOARCH != "amd64" {
		return false
	}
	if !g.tried {
		g.tried = true
		// It stays that of this program: after another was executed, or the process' end, reading
		// it gives nothing.
		g.mem, _ = os.Open(filepath.Join(t.dir, "mem"))
	}
	if g.mem == nil {
		return false
	}
	if now := t.now(); now.Sub(g.read) >= freshCode {
		g.read, g.loops, g.code = now, map[uint64]bool{}, paged{r: g.mem}
	}
	waits, known := g.loops[pc]
	if !known && len(g.loops) < mostSearches {
		code := func(addr uint64, b []byte) int { return g.at(t.cur.mapped(addr), addr, b) }
		waits = pauses(code, pc)
		if !waits {
			waits, _ = waitsAt(code, pc, nil)
		}
		g.loops[pc] = waits
	}
	return waits
}

// at reads code that m, the mapping of an address, has.
func (g *generated) at(m *mapping, addr uint64, b []byte) int {
	if m == nil || m.mod != nil || addr>>63 != 0 {
		return 0
	}
	n, _ := g.code.ReadAt(b[:min(uint64(len(b)), m.end-addr)], int64(addr))
	return n
}

func (g *generated) close() {
	if g.mem != nil {
		g.mem.Close()
	}
	*g = generated{tried: true}
}
