package capacity

import "testing"

// TestCalls: numbers mean what they mean on the machine that recorded. Those of an unknown one mean
// nothing.
func TestCalls(t *testing.T) {
	for _, x := range []struct {
		arch   string
		number int32
		want   call
	}{
		{"", 9, call{"mmap", changesSpace}},
		{"amd64", 9, call{"mmap", changesSpace}},
		{"amd64", 435, call{"fork", createsThread | copiesSpace}},
		{"arm64", 9, call{}},
		{"arm64", 215, call{"munmap", changesSpace | endsThread}},
		{"riscv64", 215, call{}},
		{"amd64", -1, call{}},
		{"amd64", 1 << 20, call{}},
	} {
		if got := callsOf(x.arch).call(x.number); got != x.want {
			t.Errorf("call %d of %q is %+v, want %+v", x.number, x.arch, got, x.want)
		}
	}
}
