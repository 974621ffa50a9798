package account

// Curve is a quantity over time, for people's eyes; no detector reads it. It is made only where a
// report asks for it, as stories are.
type Curve struct {
	Kind   CurveKind
	Points []CurvePoint // by time, at most MostPoints
}

// CurvePoint is what a quantity was on average from At to the next point.
type CurvePoint struct {
	At    int64
	Value float64
}

// CurveKind says what a [Curve] shows.
type CurveKind string

// Kinds of curves.
const (
	CurveRunnable    CurveKind = "goroutines runnable"
	CurveOnCPU       CurveKind = "threads on a CPU"
	CurveQueued      CurveKind = "threads queued for a CPU"
	CurveThrottled   CurveKind = "threads throttled"
	CurveHeap        CurveKind = "heap"
	CurveGoal        CurveKind = "heap goal"
	CurveRSS         CurveKind = "resident"
	CurveHuge        CurveKind = "in huge pages"
	CurveHugeGroup   CurveKind = "in huge pages, its cgroup"
	CurveHugeHost    CurveKind = "in huge pages, whole host"
	CurveMemoryLimit CurveKind = "limit of its cgroup"
)

// Bytes reports whether the curve is an amount of memory.
func (k CurveKind) Bytes() bool {
	switch k {
	case CurveHeap, CurveGoal, CurveRSS, CurveHuge, CurveHugeGroup, CurveHugeHost, CurveMemoryLimit:
		return true
	}
	return false
}

// MostPoints bounds a curve.
const MostPoints = 2000

// Waits is where slow requests waited, by cause and stack, as a tree: a child's time is part of its
// parent's. The first node is the root. What is too small to be seen is left to its parent.
type Waits []WaitNode

// WaitNode is one node: the root, a cause, whose time it is, or a function.
type WaitNode struct {
	Parent int // in Waits; -1 of the root
	Name   string
	Leaf   Leaf // of a cause and all below it
	NS     int64
}

// MostWaitNodes bounds the tree.
const MostWaitNodes = 3000
