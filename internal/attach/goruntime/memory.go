package goruntime

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// How the runtime says that the system gave it no memory; the second is of Windows.
var (
	noMemory  = pattern.New(`^runtime: out of memory: cannot allocate (\d+)-byte block \((\d+) in use\)`)
	noVirtual = pattern.New(`^runtime: VirtualAlloc of (\d+) bytes failed with errno=(\d+)`)
)

// refusal says what the system refused, by a line of the runtime; "": the line is none such.
func (d *dump) refusal(t string) string {
	if m := noVirtual.FindStringSubmatch(t); m != nil {
		asked, _ := strconv.ParseFloat(m[1], 64)
		why := "Windows' error " + m[2]
		if m[2] == "1455" {
			why += ": memory and page files have no room for it"
		}
		return fmt.Sprintf("it asked the system for %s in one block and got none (%s)", decimal(asked), why)
	}
	m := noMemory.FindStringSubmatch(t)
	if m == nil {
		return ""
	}
	asked, _ := strconv.ParseFloat(m[1], 64)
	used, _ := strconv.ParseFloat(m[2], 64)
	if d.astray {
		return fmt.Sprintf("it asked the system for %s in one block and got it at an address that is of no use to this runtime; %s were in use", decimal(asked), decimal(used))
	}
	text := fmt.Sprintf("it asked the system for %s in one block and got none; %s were in use",
		decimal(asked), decimal(used))
	if all := asked + used; used < 1<<32 && all > 0.7*(1<<32) {
		text += fmt.Sprintf("; together %s: a program of 32 bits (386, arm) can address no more than 4.29 GB", decimal(all))
	}
	return text
}

// noThread knows what the runtime prints when the system gives it no thread.
func noThread(t string) bool {
	return strings.HasPrefix(t, "runtime/cgo: ") &&
		strings.Contains(t, "pthread_create failed: ") ||
		strings.HasPrefix(t, "pthread_create failed: ") ||
		strings.HasPrefix(t, "runtime: failed to create new OS thread")
}

// memoryRow is a row of the stack's memory, which the runtime prints where it knows no names.
var memoryRow = pattern.New(`^(?:0x)?[0-9a-f]{8,16}: [ <]*(?:0x)?[0-9a-f]{8,16}`)
