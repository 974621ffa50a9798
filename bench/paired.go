package main

import (
	"fmt"
	"slices"
)

// ratioLimit is what the median of a row's ratios may be at most.
const ratioLimit = 1.03

// judge says why the row fails, "" if it does not. It fails when the median ratio is above
// ratioLimit, or when the interval is wholly above 1: a small loss that is certain counts as much
// as a large one that is likely.
func (m *result) judge() string {
	switch {
	case m.Ratio > ratioLimit:
		return fmt.Sprintf("the median is above %.2f", ratioLimit)
	case m.Low > 1:
		return "the interval is above 1.00"
	}
	return ""
}

// interval gives a confidence interval of at least 95 % for the median of ratios, from the k-th
// smallest to the k-th largest of them; 0 and 0 where there are too few, fewer than 6.
//
// Of n independent ratios each is below the true median with probability 1/2, whatever their
// distribution, so the number B of those below is binomial(n, 1/2). The interval misses the median
// when B < k or n-B < k, which has the probability 2 P(B <= k-1) = 2 (C(n,0) + ... + C(n,k-1)) /
// 2^n. k is the largest for which that is at most 0.05: 4 of 15 ratios, 6 of 20.
func interval(ratios []float64) (low, high float64) {
	n := len(ratios)
	term := 1.0 // C(n,k) / 2^n
	for range n {
		term /= 2
	}
	k, tail := 0, term
	for 2*tail <= 0.05 && k < n/2 {
		term *= float64(n-k) / float64(k+1)
		k++
		tail += term
	}
	if k == 0 {
		return 0, 0
	}
	l := slices.Sorted(slices.Values(ratios))
	return l[k-1], l[n-k]
}

func (m *result) interval() string {
	if m.High == 0 {
		return "too few pairs"
	}
	return fmt.Sprintf("%.3f to %.3f", m.Low, m.High)
}

// short is the result in one line.
func (m *result) short() string {
	if m.NotMeasured != "" {
		return "not measured: " + m.NotMeasured
	}
	s := fmt.Sprintf("%.3f (%s)", m.Ratio, m.interval())
	if m.Fails != "" {
		s += ", fails: " + m.Fails
	}
	return s
}

// middle is the median: of an even number, the mean of the two in the middle.
func middle(l []float64) float64 {
	_, mid, _ := quartiles(l)
	return mid
}
