//go:build ignore

// This file takes the place of cmd/whystall's main.go in a build for bench profile. It explains
// files in one process and writes the CPU profile of that.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime/pprof"

	"github.com/google/pprof/profile"
	"github.com/whystall/whystall/internal/cli"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "profiled:", err)
		os.Exit(1)
	}
}

func run(output string, files []string) error {
	var b bytes.Buffer
	if err := pprof.StartCPUProfile(&b); err != nil {
		return err
	}
	for _, file := range files {
		if status := cli.Main([]string{"explain", file}, os.Stdin, io.Discard, os.Stderr, os.Getenv); status > 1 {
			return fmt.Errorf("explain %s: status %d", file, status)
		}
	}
	pprof.StopCPUProfile()
	p, err := profile.Parse(&b)
	if err != nil {
		return err
	}
	for _, m := range p.Mapping { // where the program was, and when it ran, is nobody's business
		m.File, m.BuildID = "", ""
	}
	p.TimeNanos = 0
	f, err := os.Create(output)
	if err != nil {
		return err
	}
	if err := p.Compact().Write(f); err != nil {
		return err
	}
	return f.Close()
}
