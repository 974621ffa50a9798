package format

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/google/pprof/profile"
)

// legacyCPU writes a legacy CPU profile.
func legacyCPU(w wordsOf, version uint64, stacks [][]uint64, tail string) (out []byte) {
	put := func(words ...uint64) {
		for _, v := range words {
			switch {
			case w.size == 8 && w.order == binary.BigEndian:
				out = binary.BigEndian.AppendUint64(out, v)
			case w.size == 8:
				out = binary.LittleEndian.AppendUint64(out, v)
			case w.order == binary.BigEndian:
				out = binary.BigEndian.AppendUint32(out, uint32(v))
			default:
				out = binary.LittleEndian.AppendUint32(out, uint32(v))
			}
		}
	}
	put(0, 3, version, 10000, 0)
	for _, s := range stacks {
		put(s[0], uint64(len(s)-1))
		put(s[1:]...)
	}
	put(0, 1, 0)
	return append(out, tail...)
}

var legacyStacks = [][]uint64{{4, 0x401020, 0x401100}, {1, 0x401024, 0x401100, 0x401200}, {7, 0x401200}}

// Sums agree with the pprof project's decoder, which moves callers' addresses by one and merges
// nothing that differs.
func TestLegacyCPULikeTheirs(t *testing.T) {
	for _, w := range legacyWords {
		data := legacyCPU(w, 0, legacyStacks, "00400000-00500000 r-xp 00000000 08:01 42 /bin/shop\n")
		if kind := Identify(data); kind != KindPprof {
			t.Errorf("%d %v: identified as %q", w.size, w.order, kind)
		}
		p, err := ParseProfile(data)
		if err != nil {
			t.Fatal(err)
		}
		their, err := profile.ParseData(data)
		if err != nil {
			t.Fatal(err)
		}
		var sum, want int64
		for _, s := range p.Stacks {
			sum += s.Values[1]
		}
		for _, s := range their.Sample {
			want += s.Value[1]
		}
		if sum != want || len(p.Stacks) != len(their.Sample) {
			t.Errorf("%d %v: %d ns in %d stacks, want %d in %d", w.size, w.order, sum,
				len(p.Stacks), want, len(their.Sample))
		}
		if got := p.Stacks[0].Funcs; !slices.Equal(got, []string{"0x401020", "0x401100"}) {
			t.Errorf("%d %v: stack %v", w.size, w.order, got)
		}
	}
}

func TestLegacyCPUNames(t *testing.T) {
	data := legacyCPU(legacyWords[0], 1, [][]uint64{{3, 1, 2}},
		"0x00000001 com.example.Cart.add (Cart.java:7)\n0x00000002 com.example.Main.main (Main.java:3)\n")
	p, err := ParseProfile(data)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Stacks[0].Funcs; !slices.Equal(got, []string{"com.example.Cart.add", "com.example.Main.main"}) {
		t.Errorf("stack %v", got)
	}
}

// What only resembles one, or is damaged, is refused.
func TestLegacyCPURefuses(t *testing.T) {
	whole := legacyCPU(legacyWords[0], 0, legacyStacks, "")
	for name, data := range map[string][]byte{
		"cut":       whole[:len(whole)-40],
		"zeros":     make([]byte, 200),
		"version 2": legacyCPU(legacyWords[0], 2, legacyStacks, ""),
		"too deep":  legacyCPU(legacyWords[0], 0, [][]uint64{{4, 1}, slices.Repeat([]uint64{1}, maxDepth+2)}, ""),
	} {
		if p, err := ParseProfile(data); err == nil && (name != "cut" || len(p.Stacks) == 3) {
			t.Errorf("%s: taken for a profile of %d stacks", name, len(p.Stacks))
		}
	}
}
