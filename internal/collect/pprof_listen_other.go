//go:build !linux

package collect

import (
	"context"
	"errors"
	"net"
)

func ownListeners(int) ([]listening, error) { return nil, errors.New("needs Linux") }

func dialIn(int) (func(context.Context, string, string) (net.Conn, error), error) {
	return nil, errors.New("needs Linux")
}
