package kernel

// Source gives a stream in order: what a [Reader] and a text twin both are. Records come in the order of their Time; a stretch
// stands at its begin.
type Source interface {
	Header() Header
	// Each calls f with the records in order, in blocks that the next overwrites.
	Each(f func([]Record) error) error
	// Threads gives everybody who was named; complete once Each has ended. At gives who tid was at a time.
	Threads() []Thread
	// Stack gives the frames of a StackID, innermost first.
	Stack(id uint32) []Frame
	// Ended tells how the stream ended: "" whole, else what is missing and why.
	Ended() string
}
