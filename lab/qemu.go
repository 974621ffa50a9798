package main

import (
	"bytes"
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
	"runtime"
	"slices"
	"strings"
	"time"
)

// A case in a virtual machine: for two NUMA nodes, for other kernels, for cgroup v2. The machine is emulated, so nothing in it is
// timed: what is found counts, not how long it took. It boots a kernel with an initramfs of a static busybox, whystall, this lab and the
// case's programs, and runs "lab run" or "lab verify" inside.

const qemuUsage = `usage: lab qemu --kernel VMLINUZ [--nodes 2] [--cpus 4] [--memory 4096] [--within 10m] -- run|verify CASE ...

VMLINUZ is a kernel with everything built in that a machine without disks needs, such as Debian's cloud kernels:
  apt-get download linux-image-6.1.0-53-cloud-amd64 && dpkg -x linux-image-*.deb k && ls k/boot
It takes qemu-system-x86_64 and a static busybox: apt-get install qemu-system-x86 busybox-static
QEMU 10.0 works. 7.2, which Debian 12 has, corrupts the CPU's flags: kernels crash, and stacks are missing. There:
  apt-get install -t bookworm-backports qemu-system-x86
run shows a case with its first variant, or --variant NAME; verify judges CASE/VARIANT. Few clients come, as nothing is fast.
`

func qemuArgs(ctx context.Context, cases []Case, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("qemu", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, qemuUsage) }
	kernel := fs.String("kernel", "", "")
	nodes := fs.Int("nodes", 2, "")
	cpus := fs.Int("cpus", 4, "")
	memory := fs.Int("memory", 4096, "")
	within := fs.Duration("within", 10*time.Minute, "")
	if fs.Parse(args) != nil {
		return exitUsage
	}
	rest := fs.Args()
	if *kernel == "" || len(rest) < 2 || rest[0] != "run" && rest[0] != "verify" || *nodes < 1 || *cpus < *nodes {
		fmt.Fprint(stderr, qemuUsage)
		return exitUsage
	}
	name, _, _ := strings.Cut(rest[1], "/")
	c := find(cases, name)
	if c == nil {
		fmt.Fprintf(stderr, "lab: no case %q; lab list shows them\n", name)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, *within)
	defer cancel()
	status, err := qemu(ctx, c, *kernel, *nodes, *cpus, *memory, rest, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "lab:", err)
		return exitFailed
	}
	return status
}

func qemu(ctx context.Context, c *Case, kernel string, nodes, cpus, memory int, args []string, stdout, stderr io.Writer) (int, error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return 0, fmt.Errorf("find busybox: %w; apt-get install busybox-static", err)
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil || runtime.GOARCH != "amd64" {
		return 0, fmt.Errorf("find qemu-system-x86_64: %v; apt-get install qemu-system-x86", err)
	}
	dir, err := os.MkdirTemp("", "whystall-lab-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	// 1. Everything that is built, under the names that the lab inside will look for.
	built := filepath.Join(dir, "prebuilt")
	if err := os.Mkdir(built, 0o755); err != nil {
		return 0, err
	}
	b := newBuilder(dir, stderr, "")
	b.static = true
	if _, err := b.whystall(ctx); err != nil {
		return 0, err
	}
	for i := range c.Variants {
		for _, p := range c.Variants[i].Start {
			if _, err := b.program(ctx, c, p.Program); err != nil {
				var why skip
				if errors.As(err, &why) {
					continue
				}
				return 0, err
			}
		}
	}
	files := map[string]string{"bin/busybox": busybox}
	for name, p := range b.done {
		if p.err == nil {
			files["prebuilt/"+prebuiltName(name)] = p.file
		}
	}
	self := filepath.Join(dir, "lab")
	if err := goBuild(ctx, "go", ".", self, "."); err != nil {
		return 0, err
	}
	files["lab"] = self
	// 2. The initramfs.
	image := filepath.Join(dir, "initramfs")
	if err := pack(image, files, initScript(args)); err != nil {
		return 0, err
	}
	// 3. The machine.
	machine := []string{"-accel", "tcg,thread=single", "-cpu", "max", "-machine", "q35,hpet=off", "-m", fmt.Sprint(memory),
		"-smp", fmt.Sprintf("%d,sockets=%d,cores=%d", cpus, nodes, cpus/nodes), "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio",
		"-kernel", kernel, "-initrd", image, "-append", "console=ttyS0 quiet panic=-1 tsc=reliable delayacct schedstats=enable"}
	for n := range nodes {
		machine = append(machine, "-object", fmt.Sprintf("memory-backend-ram,size=%dM,id=m%d", memory/nodes, n),
			"-numa", fmt.Sprintf("node,memdev=m%d,cpus=%d-%d", n, n*(cpus/nodes), (n+1)*(cpus/nodes)-1))
	}
	if v, err := exec.CommandContext(ctx, "qemu-system-x86_64", "--version").Output(); err == nil && tooOld(string(v)) {
		fmt.Fprintln(stderr, "this QEMU is older than 10.0; 7.2 is known to corrupt the CPU's flags, so that kernels crash and stacks are missing")
	}
	fmt.Fprintf(stderr, "booting %s with %d CPUs on %d nodes, emulated: this takes minutes ...\n", filepath.Base(kernel), cpus, nodes)
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", machine...)
	out := &statusOf{w: stdout}
	cmd.Stdout, cmd.Stderr = out, stderr
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return 0, fmt.Errorf("run qemu: %w", err)
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("run qemu: %w", ctx.Err())
	}
	if !out.ended {
		return 0, errors.New("run qemu: the machine ended before the lab in it did")
	}
	return out.status, nil
}

// tooOld tells a version of QEMU that was not seen to work.
func tooOld(version string) bool {
	var major int
	n, _ := fmt.Sscanf(version, "QEMU emulator version %d.", &major)
	return n == 1 && major < 10
}

// initScript is the machine's first process. The lab gets no terminal, which would be shown its progress line by line.
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
poweroff -f
`
}

// escapes is what the firmware writes to move a terminal's cursor, and our own report's colours.
var escapes = regexp.MustCompile("\x1b(c|\\[[0-9;?]*[A-Za-z])")

// statusOf passes the machine's console on and reads the lab's exit status off it.
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

// pack writes an initramfs: a cpio archive in the format "newc" of the kernel's initramfs-buffer-format.
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
