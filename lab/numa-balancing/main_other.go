//go:build !linux

package main

import "fmt"

func main() { fmt.Println("NUMA balancing, as the lab makes it, is Linux's") }
