//go:build !linux

package main

import "fmt"

func main() { fmt.Println("numa-balancing: only Linux has it") }
