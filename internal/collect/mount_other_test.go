//go:build !linux

package collect

import (
	"testing"

	"github.com/whystall/whystall/internal/need"
)

func mountSmall(t *testing.T, dir string) {
	t.Helper()
	need.Linux(t)
}
