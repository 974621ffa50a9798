//go:build !linux

package main

import "fmt"

func main() { fmt.Println("direct reclaim: only Linux has it") }
