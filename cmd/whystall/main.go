// Command whystall explains why a Linux service is slow when CPU, disk and network look fine.
package main

import (
	"os"

	"github.com/whystall/whystall/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)) }
