package timeline

type kernelState struct{}
