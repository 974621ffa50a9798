package profiler_test

import (
	"testing"

	"github.com/whystall/whystall/internal/attach/attachtest"
)

func TestSamples(t *testing.T) { attachtest.Run(t, "testdata") }
