package exectrace

import "testing"

// BenchmarkV1 reads an old trace whole, the first pass included.
func BenchmarkV1(b *testing.B) {
	for _, name := range []string{"srv-go1.13.15.trace", "srv-go1.20.14.trace"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				t, err := Open("testdata/"+name, Options{})
				if err != nil {
					b.Fatal(err)
				}
				for block := range t.Blocks() {
					n += len(block)
				}
				t.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
		})
	}
}
