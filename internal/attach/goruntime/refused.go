package goruntime

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// What is known here and of no use for latency of a service.
var (
	bench = &attach.Kind{
		Name:    "go test -bench",
		Hints:   []string{"Benchmark", "goos: ", "goarch: "},
		Claim:   claimBench,
		Refused: "a benchmark measures a function by itself: it says nothing of a service under load. Of use: whystall diagnose on the service, or its gctrace, goroutine dump or CPU profile",
	}
	benchstat = &attach.Kind{
		Name:    "benchstat",
		Hints:   []string{"/op", "│", "goos: ", "goarch: "},
		Claim:   claimBenchstat,
		Refused: "benchstat compares two benchmarks: it says nothing of a service under load. Of use: two recordings of the service, before and after (whystall record)",
	}
	inittrace = &attach.Kind{
		Name:      "inittrace",
		Marks:     []string{" allocs"},
		Hints:     []string{"init "},
		Single:    true,
		Claim:     func(lines []paste.Line) int { return while(lines, initLine) },
		Scattered: true,
		Refused:   "inittrace says what packages did before main started: it says nothing of a service that runs. Of use: GODEBUG=gctrace=1 or a recording under load",
	}
)

// initLine knows "init net @1.2 ms, 0.04 ms clock, 1568 bytes, 6 allocs".
func initLine(s string) bool {
	_, s, ok := strings.Cut(s, "init ")
	_, s, ok2 := strings.Cut(s, " @")
	if !ok || !ok2 {
		return false
	}
	f := strings.Split(s, ", ")
	return len(f) == 4 && strings.HasSuffix(f[0], " ms") && strings.HasSuffix(f[1], " ms clock") &&
		strings.HasSuffix(f[2], " bytes") && strings.HasSuffix(f[3], " allocs")
}

// benchLine knows "BenchmarkX-8   	 1000	 1234 ns/op".
func benchLine(s string) bool {
	f := strings.Fields(s)
	if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") || len(f[0]) == len("Benchmark") && len(f) < 4 {
		return false
	}
	if digits(f[1]) != len(f[1]) {
		return false
	}
	return strings.Contains(s, " ns/op") || strings.Contains(s, "\tns/op") ||
		strings.HasSuffix(f[3], "/op") || strings.HasSuffix(f[3], "/s")
}

// claimBench takes the lines of one run of go test -bench, from its goos line or first benchmark to
// the last line of it.
func claimBench(lines []paste.Line) int {
	seen, end := false, 0
	for i, line := range lines {
		s := strings.TrimSpace(line.Text)
		switch {
		case line.Command != "":
			return benchEnd(seen, end)
		case benchLine(s):
			seen, end = true, i+1
		case benchHead(s), strings.HasPrefix(s, "Benchmark") && len(strings.Fields(s)) == 1 && i > 0:
			if i == 0 || end == i {
				end = i + 1
			}
		case seen && (s == "PASS" || s == "FAIL" || strings.HasPrefix(s, "ok ") ||
			strings.HasPrefix(s, "ok\t") || strings.HasPrefix(s, "--- ")):
			end = i + 1
		case s == "":
		default:
			return benchEnd(seen, end)
		}
		if !seen && i > 12 {
			return 0
		}
	}
	return benchEnd(seen, end)
}

func benchEnd(seen bool, end int) int {
	return attach.ClaimIf(seen, end)
}

func benchHead(s string) bool {
	for _, h := range []string{"goos: ", "goarch: ", "pkg: ", "cpu: "} {
		if strings.HasPrefix(s, h) {
			return true
		}
	}
	return false
}

// statRow knows a row of benchstat whose values do not vary: "Parse-8   0.00B   0.00B   0.00%".
func statRow(s string) bool {
	f := strings.Fields(s)
	if len(f) < 3 || len(f) > 6 || digits(f[1]) == 0 {
		return false
	}
	return strings.HasSuffix(f[len(f)-1], "%") || slices.Contains(f, "~")
}

// claimBenchstat takes the tables of both versions of benchstat: with "│" between columns, and the
// older "name old time/op new time/op delta".
func claimBenchstat(lines []paste.Line) int {
	seen, end := false, 0
	for i, line := range lines {
		s := strings.TrimSpace(line.Text)
		switch {
		case line.Command != "":
			return benchEnd(seen, end)
		case strings.HasPrefix(s, "name ") && strings.Contains(s, "/op") &&
			(strings.Contains(s, "delta") || strings.Contains(s, "time/op") || strings.Contains(s, "alloc")),
			strings.HasPrefix(s, "│") && (strings.Contains(s, "/op") || strings.Contains(s, "vs base")):
			seen, end = true, i+1
		case seen && (strings.Contains(s, "±") || statRow(s)), seen &&
			strings.HasPrefix(s, "geomean"), seen && strings.HasPrefix(s, "¹"), seen &&
			strings.HasPrefix(s, "[Geo mean]"):
			end = i + 1
		case benchHead(s), strings.HasPrefix(s, "│"), s == "":
		case seen && strings.Contains(s, "%") && strings.Contains(s, "p="):
			end = i + 1
		default:
			return benchEnd(seen, end)
		}
		if !seen && i > 12 {
			return 0
		}
	}
	return benchEnd(seen, end)
}
