// Package symbol finds the function that an address of a running process, or of the kernel, belongs
// to, while the process is there to be asked. It names a function only if its symbol covers the
// address: it honours st_size, so that the last exported function before a stripped one is not
// blamed for it. Any other address is given as module+offset.
//
// It reads the target's memory map, the files mapped there, and Go's own function table, which
// stripped binaries keep. Of code that is in no file it reads instructions from the process' memory
// (generated.go), and of its memory nothing else. It never stops the target and never reads smaps.
// It reads maps again only when an address shows up that no known mapping has, at most once a
// second.
//
// The files are the target's and may be hostile: what is read of them, and kept, is bounded, and
// each count has its limit beside it. A file that cannot be read names nothing. The package refuses
// to name lines, and to ask runtimes about code that they generated. In reading order:
//
//	table.go    Table: the code of one process, its maps and files; Stack names the frames of a stack
//	resolve.go  one address of one file: which tables are asked, in which order
//	maps.go     /proc/PID/maps
//	open_unix.go which file is really the mapped one; the vdso
//	elf.go      headers, sections, build id, without keeping names
//	funcs.go    .symtab and .dynsym: which function covers an address, and its best name
//	pclntab.go  Go's function table; inline.go its inlined calls; module.go where its text starts
//	paged.go    keeps the pages that those small reads touch
//	frame.go    which frames of a frame-pointer stack can be believed
//	cfi.go      call frame information: where a function's caller is
//	unwind.go   walks a copied stack by it
//	loops.go    whether an instruction is in a loop that does nothing but wait
//	pauses.go   whether it is PAUSE, which is for nothing but waiting
//	ways.go     whether a way through code can be walked again and again
//	calls.go    who calls a function that is a part of such a loop
//	generated.go the same of code that a runtime made, which is in the process' memory only
//	binary.go   what program it is; where Go's scheduler keeps its notes (sched.go has the offsets)
//	kernel.go   the kernel's functions, from /proc/kallsyms
//
// The room is flat: all files but the last serve Table, and share its lock and its bounds.
package symbol

// Frame is one place in a program or in the kernel.
type Frame struct {
	Addr uint64
	Func string // C++ and Rust names are readable; "" where no symbol covers the address

	// Module is a file's path as the target sees it, "[vdso]", "[anon]", "kernel", or a kernel
	// module's name; "" if no mapping has the address.
	Module string

	// Offset is, in a file, the address that addr2line takes, or the file offset if the file could
	// not be read; in [anon] it counts from the mapping's start, in the kernel from Func's start.
	Offset uint64

	// Inferred: callers between this frame and the one before may be missing, as the code of that
	// one keeps no frame pointers.
	Inferred bool

	// Waits: of the innermost frame, its instruction is in a loop that only waits for another
	// thread (loops.go).
	Waits bool
}
