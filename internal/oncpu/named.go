package oncpu

import "github.com/whystall/whystall/internal/evidence/kernel"

// Named says what a thread was at, by functions that another tool named: those of the kernel and
// those of the program, each the innermost first. Either may be empty.
func Named(inKernel, inProgram []kernel.Frame) Key {
	made := interpreters{modules: map[string]bool{}}
	made.look(inProgram)
	return workOf(inKernel, inProgram, made)
}
