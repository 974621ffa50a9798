//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

func harm(context.Context, []string, io.Writer, io.Writer) error {
	return errors.New("harm: recording needs Linux")
}
