//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

func overhead(context.Context, []string, io.Writer, io.Writer) error {
	return errors.New("overhead: recording needs Linux")
}

var helpers map[string]func(string) error
