package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// lab qemu runs a case in a virtual machine: for two NUMA nodes, for other kernels, for cgroup v2.
// The machine is emulated, so times mean nothing in it; what whystall finds does. It boots a kernel
// with an initramfs of a static busybox, whystall, this lab and the case's programs, and runs a
// command of the lab inside.

const qemuUsage = `usage: lab qemu [--kernel VMLINUZ] [--nodes 2] [--cpus 4] [--memory 4096] [--within 15m] CASE[/VARIANT]
       lab qemu [...] -- run|verify CASE ...
       lab qemu [...] -- record-cases --only CASE[/VARIANT] [-o FOLDER] ...

CASE runs "lab run CASE --for 20s" in the machine; CASE/VARIANT runs that variant alone. There are few clients, as the
machine is slow.
It needs qemu-system-x86_64, version 10 or later, and a static busybox: apt-get install qemu-system-x86 busybox-static
Debian 12 has version 7.2, which corrupts the CPU's flags, so that kernels crash and stacks are missing; there:
  apt-get install -t bookworm-backports qemu-system-x86
VMLINUZ is a kernel in which everything is built in that a machine without disks needs, such as Debian's cloud kernels.
Without --kernel it is that of Debian's linux-image-cloud-amd64, which apt-get downloads (but does not install) on
first use. Elsewhere:
  dpkg -x linux-image-6.1.0-53-cloud-amd64_*.deb k && ls k/boot
`

func qemuArgs(ctx context.Context, cases []Case, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("qemu", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, qemuUsage) }
	var m machine
	fs.StringVar(&m.kernel, "kernel", "", "")
	fs.IntVar(&m.nodes, "nodes", 2, "")
	fs.IntVar(&m.cpus, "cpus", 4, "")
	fs.IntVar(&m.memory, "memory", 4096, "")
	within := fs.Duration("within", 15*time.Minute, "")
	if fs.Parse(args) != nil {
		return exitUsage
	}
	rest := insideArgs(fs.Args())
	if len(rest) < 2 || !slices.Contains([]string{"run", "verify", "record-cases"}, rest[0]) || m.nodes < 1 || m.cpus < m.nodes {
		fmt.Fprint(stderr, qemuUsage)
		return exitUsage
	}
	variants, folder, err := insideVariants(cases, rest)
	if rest[0] == "record-cases" {
		m.folder = cmp.Or(folder, recordings)
		rest = append(rest, "-o", outside) // the last -o counts
	}
	if err != nil {
		fmt.Fprintf(stderr, "lab: %v\n", err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, *within)
	defer cancel()
	status, err := m.run(ctx, variants, rest, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "lab:", err)
		return exitFailed
	}
	return status
}

// insideArgs turns our own arguments into those of the lab in the machine. An emulated machine
// takes 20 s to attach, in which nothing is recorded. It then needs another 20 s to meet what one
// second shows on a real machine.
func insideArgs(args []string) []string {
	if len(args) == 1 {
		name, variant, ok := strings.Cut(args[0], "/")
		args = []string{"run", name}
		if ok {
			args = append(args, "--variant", variant)
		}
	}
	if len(args) > 0 && !slices.ContainsFunc(args, func(a string) bool { return a == "--for" || strings.HasPrefix(a, "--for=") }) {
		args = append(slices.Clone(args), "--for", "20s")
	}
	return args
}

// insideVariants gives the variants which args name, so that only their programs are built and only
// their toolchains are fetched, and the folder which -o names.
func insideVariants(cases []Case, args []string) (variants []chosen, folder string, err error) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var only []string
	variant := fs.String("variant", "", "")
	fs.Func("only", "", func(s string) error { only = append(only, s); return nil })
	fs.StringVar(&folder, "o", "", "")
	for _, ignored := range []string{"for", "format", "times", "tries", "keep"} {
		fs.String(ignored, "", "")
	}
	fs.Bool("all", false, "")
	fs.Bool("wrong", false, "")
	rest := args[1:]
	for len(rest) > 0 { // flags and names, mixed
		if !strings.HasPrefix(rest[0], "-") {
			only, rest = append(only, rest[0]), rest[1:]
			continue
		}
		if err := fs.Parse(rest); err != nil {
			return nil, "", err
		}
		rest = fs.Args()
	}
	if args[0] == "run" && len(only) == 1 {
		c := find(cases, only[0])
		if c == nil {
			return nil, "", fmt.Errorf("no case %q; lab list shows them", only[0])
		}
		if *variant == "" {
			only = []string{c.Name + "/ill", c.Name + "/" + c.variant("ill").cured()}
		} else {
			only = []string{c.Name + "/" + *variant}
		}
	}
	variants, err = choose(cases, only)
	return variants, folder, err
}

// machine is the virtual machine.
type machine struct {
	kernel              string // a file; "": Debian's
	nodes, cpus, memory int    // memory in MiB
	folder              string // where to put what the lab inside leaves in outside; "": it is not needed
}

// run boots the machine with the lab and the variants' programs, and gives the exit status of the
// lab inside.
func (m *machine) run(ctx context.Context, variants []chosen, args []string, stdout, stderr io.Writer) (int, error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return 0, fmt.Errorf("find busybox: %w; apt-get install busybox-static", err)
	}
	if err := emulator(ctx); err != nil {
		return 0, err
	}
	kernel := m.kernel
	if kernel == "" {
		kernel, err = debianKernel(ctx, stderr)
	} else {
		_, err = os.Stat(kernel)
	}
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "whystall-lab-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	// 1. Build everything, under the names which the lab inside looks for.
	b := newBuilder(dir, stderr, "")
	b.static = true
	if _, err := b.all(ctx, variants); err != nil {
		return 0, err
	}
	files := map[string]string{"bin/busybox": busybox}
	for name, built := range b.done {
		var why skip
		if built.err != nil && !errors.As(built.err, &why) {
			return 0, built.err
		}
		files["prebuilt/"+prebuiltName(name)] = built.file
	}
	self := filepath.Join(dir, "lab")
	if err := goBuild(ctx, "go", ".", self, "."); err != nil {
		return 0, err
	}
	files["lab"] = self
	// 2. Pack the initramfs.
	image := filepath.Join(dir, "initramfs")
	if err := pack(image, files, initScript(args)); err != nil {
		return 0, err
	}
	// 3. Run the machine.
	fmt.Fprintf(stderr, "booting %s with %d CPUs on %d nodes, emulated: this takes minutes ...\n", filepath.Base(kernel), m.cpus, m.nodes)
	left := filepath.Join(dir, "left")
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", m.flags(kernel, image, left)...)
	out := &statusOf{w: stdout}
	cmd.Stdout, cmd.Stderr = out, stderr
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return 0, fmt.Errorf("run qemu: %w", err)
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("run qemu: %w", ctx.Err())
	}
	if !out.ended {
		return 0, errors.New("run qemu: the machine ended before the lab inside did")
	}
	if m.folder != "" {
		if err := unpackInto(m.folder, left); err != nil {
			return 0, fmt.Errorf("unpack what the lab in the machine recorded: %w", err)
		}
	}
	return out.status, nil
}

func (m *machine) flags(kernel, image, left string) []string {
	l := []string{"-accel", "tcg,thread=single", "-cpu", "max", "-machine", "q35,hpet=off", "-m", fmt.Sprint(m.memory),
		"-smp", fmt.Sprintf("%d,sockets=%d,cores=%d", m.cpus, m.nodes, m.cpus/m.nodes), "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio", "-serial", "file:" + left,
		"-kernel", kernel, "-initrd", image, "-append", "console=ttyS0 quiet panic=-1 tsc=reliable delayacct schedstats=enable"}
	for n := range m.nodes {
		l = append(l, "-object", fmt.Sprintf("memory-backend-ram,size=%dM,id=m%d", m.memory/m.nodes, n),
			"-numa", fmt.Sprintf("node,memdev=m%d,cpus=%d-%d", n, n*(m.cpus/m.nodes), (n+1)*(m.cpus/m.nodes)-1))
	}
	return l
}

// initScript is the machine's first process. The lab inside gets no terminal, on which whystall
// would print its progress line by line.
func initScript(args []string) string {
	var quoted []string
	for _, a := range args {
		quoted = append(quoted, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	return `#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ TMPDIR=/tmp
mkdir -p /proc /sys /dev /tmp /run
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tracefs trace /sys/kernel/tracing
mount -t debugfs debug /sys/kernel/debug
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
echo "Linux $(uname -r), $(ls -d /sys/devices/system/node/node* | wc -l) nodes"
export LAB_CLIENTS=4
{ /lab --prebuilt /prebuilt ` + strings.Join(quoted, " ") + `; echo "lab ended with $?"; } < /dev/null 2>&1 | cat
if [ -d ` + outside + ` ]; then
	stty -F /dev/ttyS1 raw
	tar -c -f - -C ` + outside + ` . > /dev/ttyS1
fi
poweroff -f
`
}

// escapes matches what the firmware writes to move a terminal's cursor, and the colours of
// whystall's report.
var escapes = regexp.MustCompile("\x1b(c|\\[[0-9;?]*[A-Za-z])")

// statusOf passes the machine's console on, and reads the lab's exit status from it.
type statusOf struct {
	w      io.Writer
	line   []byte
	ended  bool
	status int
}

func (s *statusOf) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' {
			if len(s.line) < 1<<16 {
				s.line = append(s.line, c)
			}
			continue
		}
		line := strings.TrimRight(escapes.ReplaceAllString(string(s.line), ""), "\r")
		s.line = s.line[:0]
		if _, err := fmt.Sscanf(line, "lab ended with %d", &s.status); err == nil {
			s.ended = true
			continue
		}
		if _, err := fmt.Fprintln(s.w, line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// pack writes an initramfs: a cpio archive in the format "newc" of the kernel's buffer-format.rst.
func pack(image string, files map[string]string, init string) error {
	var b bytes.Buffer
	inode := 0
	add := func(name string, mode int, data []byte) {
		inode++
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
		b.WriteString(name)
		b.WriteByte(0)
		for b.Len()%4 != 0 {
			b.WriteByte(0)
		}
		b.Write(data)
		for b.Len()%4 != 0 {
			b.WriteByte(0)
		}
	}
	for _, dir := range []string{"bin", "prebuilt", "cmd"} {
		add(dir, 0o040755, nil)
	}
	add("init", 0o100755, []byte(init))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := files[name]
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		add(name, 0o100755, data)
	}
	add("TRAILER!!!", 0, nil)
	return os.WriteFile(image, b.Bytes(), 0o600)
}
