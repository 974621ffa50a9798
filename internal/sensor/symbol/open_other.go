//go:build !unix

package symbol

import (
	"bytes"
	"errors"
	"os"
)

const nonblock = 0

func identity(string) (dev, inode uint64, err error) { return 0, 0, errors.ErrUnsupported }

func isMapped(*os.File, mapping) error { return errors.ErrUnsupported }

func ownVDSO() (*bytes.Reader, error) { return nil, errors.ErrUnsupported }
