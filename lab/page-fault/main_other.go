//go:build !linux

package main

import "fmt"

func main() { fmt.Println("page faults: written for Linux") }
