// Package symbol tells which function an address of a running process, or of the kernel, belongs
// to, while the process is there to be asked. It names a function only where its symbol covers the
// address: st_size is honoured, so that the last exported function before a stripped one is not
// blamed for it. Everything else is module+offset.
//
// It reads the target's memory map, the files mapped there, and Go's own function table, which
// stripped binaries keep. It never stops the target, never reads smaps, and reads maps again only
// when an address shows up that no known mapping has, at most once a second.
//
// Files are the target's and may be hostile: what is read of them, and kept, is bounded; there is a
// limit beside each count. It refuses to unwind stacks, to name lines, and to ask runtimes about
// code that they made on the fly.
package symbol

// Frame is one place in a program or in the kernel.
type Frame struct {
	Addr   uint64
	Func   string // C++ and Rust names are demangled; "" where no symbol covers the address
	Module string // file name with its folder as the target sees it, "[vdso]", "[anon]", "kernel", a kernel module's name; "" no mapping has the address

	// Offset is, in a file, the address that addr2line takes (the file offset where the file could
	// not be read); in [anon] from the mapping's begin; in the kernel from Func's begin.
	Offset uint64

	Inferred bool // callers between this frame and the one before may be missing: that one's code keeps no frame pointers
}
