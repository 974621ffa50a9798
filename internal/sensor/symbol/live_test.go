package symbol

import (
	"bufio"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/need"
)

const target = "SYMBOL_TEST_TARGET"

func TestMain(m *testing.M) {
	if os.Getenv(target) != "" {
		// Tells where it is, and waits to be ended, or runs another program.
		pcs := callers()
		for _, pc := range pcs {
			fmt.Printf("%x ", pc)
		}
		fmt.Println()
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

//go:noinline
func callers() []uint64 { return through() }

func through() []uint64 { return inlinedInto() } // small enough to be inlined

func inlinedInto() []uint64 {
	pcs := make([]uintptr, 32)
	n := runtime.Callers(1, pcs)
	out := make([]uint64, n)
	for i, pc := range pcs[:n] {
		out[i] = uint64(pc)
	}
	return out
}

// outermost is the function that has the address, none of those inlined there.
func outermost(tab *Table, addr uint64) Frame {
	fs := tab.Stack([]uint64{addr}, 0, nil)
	if len(fs) == 0 {
		return Frame{}
	}
	return fs[len(fs)-1]
}

// TestOwnGo compares with what the runtime itself says of our code.
func TestOwnGo(t *testing.T) {
	need.Linux(t)
	tab, err := New(os.Getpid(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	seen := 0
	for _, f := range []any{callers, fmt.Sprintf, strings.Cut, (*Table).look, io.Copy, runtime.GC, TestOwnGo} {
		entry := uint64(funcPC(f))
		for _, at := range []uint64{0, 1, 17} {
			want := runtime.FuncForPC(uintptr(entry + at))
			got := outermost(tab, entry+at)
			// FuncForPC gives the innermost of inlined ones, the frames end with the outermost.
			if outer := runtime.FuncForPC(want.Entry()).Name(); got.Func != outer {
				t.Errorf("%#x: %+v, the runtime says %s", entry+at, got, outer)
			}
			if got.Module == "" || !strings.HasSuffix(got.Module, ".test") && !strings.Contains(got.Module, "symbol") {
				t.Errorf("%#x is in %q", entry+at, got.Module)
			}
			seen++
		}
	}
	// A stack as the kernel takes it: no inlined frames, return addresses.
	var pcs []uint64
	var want []string
	frames := runtime.CallersFrames(physical())
	for {
		fr, more := frames.Next()
		want = append(want, fr.Function)
		if !more {
			break
		}
	}
	for _, pc := range physical() {
		pcs = append(pcs, uint64(pc))
	}
	// The first is where we are, by Stack's rule; runtime.Callers gives return addresses only.
	var got []string
	for _, fr := range tab.Stack(append([]uint64{pcs[0] - 1}, pcs[1:]...), 0, nil) {
		got = append(got, fr.Func)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf(" got %q\nwant %q", got, want)
	}
	b := tab.Binary()
	if !b.Go || b.GoVersion != runtime.Version() || b.Arch != runtime.GOARCH {
		t.Errorf("%+v", b)
	}
}

func startTarget(t *testing.T, program string) (cmd *exec.Cmd, pcs []uint64, end func()) {
	t.Helper()
	cmd = exec.Command(program)
	cmd.Env = append(os.Environ(), target+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range strings.Fields(line) {
		var pc uint64
		fmt.Sscanf(f, "%x", &pc)
		pcs = append(pcs, pc)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			in.Close()
			cmd.Wait()
		}
	}
	t.Cleanup(end)
	return cmd, pcs, end
}

// TestDeletedAndEnded names functions of a program that was deleted from the disk and has ended
// since.
func TestDeletedAndEnded(t *testing.T) {
	need.Linux(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(copied, b, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd, pcs, end := startTarget(t, copied)
	if err := os.Remove(copied); err != nil {
		t.Fatal(err)
	}
	tab, err := New(cmd.Process.Pid, "")
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	end()
	found := false
	for _, fr := range tab.Stack(pcs, 0, nil) {
		found = found || strings.HasSuffix(fr.Func, "symbol.callers") && fr.Module == copied
	}
	if !found {
		t.Errorf("no frame is symbol.callers: %+v", tab.Stack(pcs, 0, nil))
	}
	// An address that nothing has, when nobody is there to be asked.
	if fr := outermost(tab, 0x10); fr.Func != "" || fr.Module != "" {
		t.Errorf("%+v", fr)
	}
}

func TestExec(t *testing.T) {
	need.Linux(t)
	self, _ := os.Executable()
	cmd, pcs, _ := startTarget(t, self)
	tab, err := New(cmd.Process.Pid, "")
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	tab.Exec(1000) // as if; what is mapped then is read anew
	before, after := tab.Stack(pcs, 999, nil), tab.Stack(pcs, 1000, nil)
	if len(before) == 0 || len(before) != len(after) || before[0].Func == "" {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestUnknownAddressesReadMapsSeldom(t *testing.T) {
	need.Linux(t)
	tab, err := New(os.Getpid(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	clock := tab.cur.read
	tab.now = func() time.Time { return clock }
	reads := 0
	last := tab.cur.read
	for range 40000 {
		clock = clock.Add(time.Millisecond)
		outermost(tab, 0x42)
		if !tab.cur.read.Equal(last) {
			last = tab.cur.read
			reads++
		}
	}
	// 1, 2, 4, 8, 16 s apart, then every 16 s.
	if reads < 3 || reads > 6 {
		t.Errorf("maps were read %d times in 40 s of unknown addresses", reads)
	}
}

func TestNoProcess(t *testing.T) {
	if _, err := New(1<<30, ""); err == nil {
		t.Error("a process that cannot be has a map")
	}
}

func TestKernelTable(t *testing.T) {
	need.Linux(t)
	k, err := Kernel("")
	if err != nil {
		if !strings.Contains(err.Error(), "CAP_SYSLOG") {
			t.Errorf("the refusal does not say what would permit it: %v", err)
		}
		need.Missing(t, "kallsyms", err.Error())
	}
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checked := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		var addr uint64
		var kind, name string
		fmt.Sscan(s.Text(), &addr, &kind, &name)
		n, _ := fmt.Sscanf(s.Text(), "%x %s %s", &addr, &kind, &name)
		if n == 3 && (name == "schedule" || name == "do_futex" || name == "vfs_read") {
			checked++
			if got := k.Lookup(addr + 4); got.Func != name || got.Offset != 4 || got.Module != "kernel" {
				t.Errorf("%s+4 is %+v", name, got)
			}
		}
	}
	if checked == 0 {
		t.Error("kallsyms has none of the functions that every kernel has")
	}
}

// TestSchedTable compares the table with the debug information of a program that this toolchain
// builds.
func TestSchedTable(t *testing.T) {
	need.Linux(t)
	if testing.Short() {
		t.Skip("builds two programs")
	}
	tool := need.Tool(t, "go")
	dir := t.TempDir()
	src := filepath.Join(dir, "main.go")
	if err := os.WriteFile(src,
		[]byte("package main\n\nimport (\n\t\"io\"\n\t\"os\"\n)\n\nfunc main() { os.Stdout.WriteString(\"up\\n\"); io.Copy(io.Discard, os.Stdin) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"exe", "pie"} {
		program := filepath.Join(dir, mode)
		cmd := exec.Command(tool, "build", "-buildmode", mode, "-o", program, src)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		lock, stop, safe := schedByDWARF(t, program)
		run, _, _ := startTarget(t, program)
		tab, err := New(run.Process.Pid, "")
		if err != nil {
			t.Fatal(err)
		}
		n, err := tab.Notes()
		if err != nil {
			t.Fatal(err)
		}
		if n.Safe-n.Stop != uint64(safe-stop) {
			t.Errorf("%s: stopnote to safePointNote is %d, DWARF has %d", mode, n.Safe-n.Stop, safe-stop)
		}
		if n.Lock != 0 && n.Stop-n.Lock != uint64(stop-lock) {
			t.Errorf("%s: lock to stopnote is %d, DWARF has %d", mode, n.Stop-n.Lock, stop-lock)
		}
		// The scheduler lies in the program's own memory: the address was moved as the program was.
		maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", run.Process.Pid))
		if !writable(string(maps), n.Stop, program) {
			t.Errorf("%s: stopnote at %#x is in no writable mapping of the program:\n%s", mode, n.Stop, maps)
		}
		tab.Close()
	}
}

// writable reports whether addr is in a writable mapping of the program, or in the one after, which
// is its zeroed data.
func writable(maps string, addr uint64, program string) bool {
	of := false
	for line := range strings.Lines(maps) {
		var from, to uint64
		var mode string
		fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode)
		own := strings.Contains(line, program)
		if addr >= from && addr < to {
			return mode[1] == 'w' && (own || of)
		}
		of = own
	}
	return false
}

func schedByDWARF(t *testing.T, program string) (lock, stop, safe int64) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	r := d.Reader()
	for {
		e, err := r.Next()
		if err != nil || e == nil {
			t.Fatalf("no runtime.schedt: %v", err)
		}
		if name, _ := e.Val(dwarf.AttrName).(string); e.Tag != dwarf.TagStructType || name != "runtime.schedt" {
			continue
		}
		typ, err := d.Type(e.Offset)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range typ.(*dwarf.StructType).Field {
			switch m.Name {
			case "lock":
				lock = m.ByteOffset
			case "stopnote":
				stop = m.ByteOffset
			case "safePointNote":
				safe = m.ByteOffset
			}
		}
		return lock, stop, safe
	}
}
