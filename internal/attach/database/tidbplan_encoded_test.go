package database

import (
	"strings"
	"testing"
)

// A block has its length, bytes of its own, and copies of what stands before, near and far.
func TestUnsnap(t *testing.T) {
	long := strings.Repeat("0123456789", 7)
	for _, c := range []struct {
		name, in, want string
		ok             bool
	}{
		{"nothing", "\x00", "", true},
		{"bytes", "\x03\x08abc", "abc", true},
		{"a long run of bytes", "\x46\xf0\x45" + long, long, true},
		{"a near copy", "\x08\x0cabcd\x01\x04", "abcdabcd", true},
		{"a copy that overlaps itself", "\x06\x00a\x05\x01", "aaaaaa", true},
		{"a far copy", "\x0a\x0cabcd\x16\x04\x00", "abcdabcdab", true},
		{"a length that is not there", "", "", false},
		{"fewer bytes than said", "\x04\x0cabc", "", false},
		{"more than the length says", "\x02\x08abc", "", false},
		{"a copy of what is not there", "\x08\x0cabcd\x01\x05", "", false},
		{"a copy from nowhere", "\x08\x0cabcd\x01\x00", "", false},
		{"a copy that is cut off", "\x08\x0cabcd\x02\x04", "", false},
		{"a length beyond all plans", "\xff\xff\xff\xff\x0f\x00", "", false},
	} {
		got, ok := unsnap([]byte(c.in))
		if ok != c.ok || ok && string(got) != c.want {
			t.Errorf("%s: got %q, %v, want %q, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// Plans of TiDB 3 have other numbers, which what their readers read gives away.
func TestPlanName(t *testing.T) {
	for _, c := range []struct {
		id, want string
		old      bool
	}{
		{"31_7", "TableReader_7", false},
		{"32_7", "TableReader_7", true},
		{"10_6", "TableScan_6", true},
		{"38_1", "Batch_Point_Get_1", false},
		{"43_5", "TableFullScan_5", false},
		{"99_5", "", false},
		{"x", "", false},
	} {
		if got := planName(c.id, c.old); got != c.want {
			t.Errorf("planName(%s, %v) = %q, want %q", c.id, c.old, got, c.want)
		}
	}
	if !oldPlanIDs([]string{"0\t32_7\t0\t20\tdata:TableScan_6"}) ||
		oldPlanIDs([]string{"0\t32_7\t0\t20\tindex:IndexRangeScan_6"}) {
		t.Error("numbers of TiDB 3 are not told from later ones")
	}
}

func FuzzUnsnap(f *testing.F) {
	f.Add([]byte("\x08\x0cabcd\x01\x04"))
	f.Add([]byte("\xff\xff\x3f\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if out, ok := unsnap(in); ok && len(out) > mostPlan {
			t.Errorf("%d bytes", len(out))
		}
	})
}
