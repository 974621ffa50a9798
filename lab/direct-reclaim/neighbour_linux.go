package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/whystall/whystall/lab/witness"
)

// scanned is the size of the file in bytes. None of them is on the disk.
const scanned = 1 << 40

// neighbour reads a file as fast as it can, as a backup does. That keeps the page cache of the
// machine full, unless neighbour drops what it has read. The file has no blocks, so no disk is
// involved. It has no name either, so it ends with this process, and its pages end with it.
func neighbour(args []string) error {
	fs := flag.NewFlagSet("neighbour", flag.ExitOnError)
	folder := fs.String("folder", "", "where the file is")
	readers := fs.Int64("readers", 2, "how many goroutines read, each another part")
	drop := fs.Bool("drop", false, "drop from the page cache what it has read")
	fs.Parse(args)
	f, err := os.CreateTemp(*folder, "scanned")
	if err == nil {
		err = os.Remove(f.Name())
	}
	if err == nil {
		err = f.Truncate(scanned)
	}
	if err != nil {
		return fmt.Errorf("make the file to scan: %w", err)
	}
	ended := make(chan error)
	for i := range *readers {
		go func() { ended <- scan(f, i*(scanned / *readers), *drop) }()
	}
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	witness.Ready(os.Stdout)
	return <-ended
}

const fadvDontNeed = 4

// scan reads the file from an offset on, again and again.
func scan(f *os.File, at int64, drop bool) error {
	block := make([]byte, 1<<20)
	for ; ; at = (at + int64(len(block))) % scanned {
		if _, err := f.ReadAt(block, at); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		if !drop {
			continue
		}
		if _, _, e := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), uintptr(at),
			uintptr(len(block)), fadvDontNeed, 0, 0); e != 0 {
			return fmt.Errorf("drop what was read: %w", e)
		}
	}
}
