//go:build !linux

package main

import "fmt"

func main() { fmt.Println("direct reclaim is Linux's") }
