//go:build !linux

package collect

// kernelCounter is for Linux, where processes are recorded.
type kernelCounter struct {
	tids    []int
	threads int
	stats   *int
}

func newKernelCounter(int, func() int64) *kernelCounter { return &kernelCounter{} }

func (*kernelCounter) read() counts { return counts{} }

func (*kernelCounter) close() {}

func limitOf(_, machine int) (float64, bool) { return float64(machine), false }

func anonymousMemory(int) int64 { return 0 }

func groupMemoryUse(int) float64 { return 0 }

func groupRefaults(int) int64 { return 0 }

func groupMemoryLeft(int) (left, limit float64) { return 0, 0 }
