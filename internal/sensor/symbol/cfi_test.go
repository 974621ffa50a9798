package symbol

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/need"
)

// TestCFIAgrees compares with readelf on the C library: each row of the first some thousand
// functions.
func TestCFIAgrees(t *testing.T) {
	tool := need.Tool(t, "readelf")
	libc := ""
	for _, dir := range []string{"/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64"} {
		if p, err := filepath.EvalSymlinks(filepath.Join(dir, "libc.so.6")); err == nil {
			libc = p
			break
		}
	}
	if libc == "" {
		need.Missing(t, "libc", "no amd64 C library in the usual folders")
	}
	f, err := os.Open(libc)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	im, err := readELF(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "--debug-dump=frames-interp", libc)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rows, wrong := 0, 0
	var columns []string
	fde := false
	s := bufio.NewScanner(out)
	for s.Scan() && rows < 30000 && wrong < 20 {
		w := strings.Fields(s.Text())
		switch {
		case len(w) == 0 || strings.Contains(s.Text(), " CIE "):
			fde = false
		case strings.Contains(s.Text(), " FDE "):
			// Of one without code the range is empty.
			fde = !strings.Contains(s.Text(), "pc=0000000000000000..")
			columns = nil
		case fde && w[0] == "LOC":
			columns = w
		case fde && columns != nil && len(w) == len(columns) && len(w[0]) == 16:
			pc, err := strconv.ParseUint(w[0], 16, 64)
			if err != nil {
				continue
			}
			rows++
			got := im.cfi(pc)
			cells := map[string]string{}
			for i, c := range columns {
				cells[c] = w[i]
			}
			if !strings.HasPrefix(cells["CFA"], "rsp") && !strings.HasPrefix(cells["CFA"], "rbp") {
				if got.ok {
					wrong++
					t.Errorf("%#x: %+v, want no answer: the CFA is %s", pc, got, cells["CFA"])
				}
				continue
			}
			if cells["ra"] == "u" {
				if !got.last {
					wrong++
					t.Errorf("%#x: %+v, want the last frame", pc, got)
				}
				continue
			}
			if !strings.HasPrefix(cells["ra"], "c") {
				continue
			}
			text := fmt.Sprintf("%s%+d c%+d", map[uint8]string{regSP: "rsp", regBP: "rbp"}[got.cfaReg], got.cfa, got.ra)
			if bp := cells["rbp"]; strings.HasPrefix(bp, "c") {
				text += fmt.Sprintf(" c%+d", got.bp)
				if !got.bpKept {
					text += " not kept"
				}
			}
			want := cells["CFA"] + " " + cells["ra"]
			if bp := cells["rbp"]; strings.HasPrefix(bp, "c") {
				want += " " + bp
			}
			if !got.ok || text != want {
				wrong++
				t.Errorf("%#x: %s (%+v), readelf has %s", pc, text, got, want)
			}
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if rows < 1000 {
		t.Errorf("only %d rows compared", rows)
	}
}

// buildCFI makes .eh_frame and its table with one function at textAt: push %rbp; mov %rsp,%rbp;
// ...; ret.
func buildCFI(hdrAt, frameAt uint64) (hdr, frame []byte) {
	le := binary.LittleEndian
	entry := func(b []byte) []byte {
		for (len(b)+4)%8 != 0 {
			b = append(b, 0)
		}
		return append(le.AppendUint32(nil, uint32(len(b))), b...)
	}
	cie := entry([]byte{0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, regRA, 1, 0x1b, 0x0c, regSP, 8, 0x80 | regRA, 1})
	body := le.AppendUint32(nil, uint32(len(cie))+4) // back to the CIE
	body = le.AppendUint32(body, uint32(int32(int64(textAt)-int64(frameAt)-int64(len(cie))-8)))
	body = le.AppendUint32(body, 0x40)
	body = append(body, 0, 0x41, 0x0e, 16, 0x80|regBP, 2, 0x43, 0x0d, regBP, 0x60, 0x0c, regSP, 8)
	frame = append(cie, entry(body)...)
	hdr = append([]byte{1, 0x1b, 3, 0x3b, 0, 0, 0, 0}, 1, 0, 0, 0)
	hdr = le.AppendUint32(hdr, uint32(int32(int64(textAt)-int64(hdrAt))))
	hdr = le.AppendUint32(hdr, uint32(int32(int64(frameAt)+int64(len(cie))-int64(hdrAt))))
	return hdr, frame
}

func cfiELF() []byte {
	// buildELF puts them at these addresses, and in no segment: place is asked for the frame's, so
	// the text's is used.
	hdr, frame := buildCFI(0x500000, 0x501000)
	b := buildELF(nil, false, map[string][]byte{".eh_frame_hdr": hdr, ".eh_frame": frame})
	// A second segment for .eh_frame, in place of the note.
	le := binary.LittleEndian
	at := bytes.Index(b, frame)
	seg := b[64+56:]
	le.PutUint32(seg, segLoad)
	le.PutUint64(seg[8:], uint64(at))
	le.PutUint64(seg[16:], 0x501000)
	le.PutUint64(seg[32:], uint64(len(frame)))
	le.PutUint64(seg[40:], uint64(len(frame)))
	return b
}

func TestCFI(t *testing.T) {
	im, err := openELF(cfiELF())
	if err != nil {
		t.Fatal(err)
	}
	for pc, want := range map[uint64]cfiRow{
		textAt:        {ok: true, cfaReg: regSP, cfa: 8, ra: -8},
		textAt + 1:    {ok: true, cfaReg: regSP, cfa: 16, ra: -8, bp: -16, bpKept: true},
		textAt + 4:    {ok: true, cfaReg: regBP, cfa: 16, ra: -8, bp: -16, bpKept: true},
		textAt + 0x23: {ok: true, cfaReg: regBP, cfa: 16, ra: -8, bp: -16, bpKept: true},
		textAt + 0x24: {ok: true, cfaReg: regSP, cfa: 8, ra: -8, bp: -16, bpKept: true},
		textAt + 0x40: {},
		textAt - 1:    {},
	} {
		if got := im.cfi(pc); !reflect.DeepEqual(got, want) {
			t.Errorf("%#x: %+v, want %+v", pc, got, want)
		}
	}
}

func TestUnwind(t *testing.T) {
	im, err := openELF(cfiELF())
	if err != nil {
		t.Fatal(err)
	}
	mod := &module{path: "/x", ready: true, named: true, im: im}
	off, _ := im.place(textAt)
	tab := &Table{cur: &space{cache: map[uint64][]Frame{},
		maps: []mapping{{start: textAt, end: textAt + 64, offset: off, inode: 1, path: "/x", mod: mod}}}}
	// Two calls deep, both after their begins. A call stands before where the second returns to.
	copy(im.r.(*sliced).b[off+0x10-5:], "\xe8\x00\x00\x00\x00")
	le := binary.LittleEndian
	const sp = 0x7000
	stack := make([]byte, 64)
	le.PutUint64(stack[16:], sp+40)       // the caller's %rbp, where %rbp points
	le.PutUint64(stack[24:], textAt+0x10) // and where it returns to
	le.PutUint64(stack[40:], 0)
	le.PutUint64(stack[48:], 0xdead) // nobody's
	got := tab.Unwind(Regs{IP: textAt + 8, SP: sp, BP: sp + 16}, stack, 0, nil)
	if want := []uint64{textAt + 8, textAt + 0x10}; !reflect.DeepEqual(got, want) {
		t.Errorf("%#x, want %#x", got, want)
	}
	// Too few bytes were copied.
	if got := tab.Unwind(Regs{IP: textAt + 8, SP: sp, BP: sp + 16}, stack[:24], 0, nil); len(got) != 1 {
		t.Errorf("%#x, want one", got)
	}
	// What a wrong %rbp points to is no address that a call returns to.
	le.PutUint64(stack[24:], textAt+0x11)
	if got := tab.Unwind(Regs{IP: textAt + 8, SP: sp, BP: sp + 16}, stack, 0, nil); len(got) != 1 {
		t.Errorf("%#x, want one", got)
	}
}

// sliced is a file that a test may change.
type sliced struct{ b []byte }

func (s *sliced) ReadAt(p []byte, off int64) (int, error) { return bytes.NewReader(s.b).ReadAt(p, off) }
