package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// What a virtual machine needs: an emulator which is known to work, and a kernel.

// leastQEMU is the first version which was seen to work. 7.2 corrupts the CPU's flags: kernels
// crash, and stacks are missing.
const leastQEMU = 10

// emulator checks that there is an emulator which works; the error says what to install.
func emulator(ctx context.Context) error {
	const install = "apt-get install qemu-system-x86 (Debian 12: with -t bookworm-backports)"
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("find an emulator: the lab's virtual machine is an x86, this machine is %s", runtime.GOARCH)
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		return fmt.Errorf("find QEMU %d or later: %w; %s", leastQEMU, err, install)
	}
	out, err := exec.CommandContext(ctx, "qemu-system-x86_64", "--version").Output()
	if err != nil {
		return fmt.Errorf("ask QEMU for its version: %w", err)
	}
	if version, old := tooOld(string(out)); old {
		return fmt.Errorf("QEMU %s is too old: want %d or later, as 7.2 is known to corrupt the CPU's flags; %s", version, leastQEMU, install)
	}
	return nil
}

// tooOld reads the version from what QEMU says, and reports whether it is older than leastQEMU.
func tooOld(says string) (version string, old bool) {
	var major, minor int
	n, _ := fmt.Sscanf(says, "QEMU emulator version %d.%d", &major, &minor)
	return fmt.Sprintf("%d.%d", major, minor), n == 2 && major < leastQEMU
}

// outside is the folder in the machine whose files come out of it. They come through a serial port,
// as there is no disk driver which all kernels have built in.
const outside = "/outside"

// unpackInto writes the files of the archive which came out of a machine into a folder. An archive
// without its end mark is an error: the machine wrote less than it should.
func unpackInto(folder, archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() == 0 {
		return err // nothing was left there
	}
	r := tar.NewReader(f)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(folder, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(h.Name)), b, 0o644)
		}
		if err != nil {
			return err
		}
	}
}

// debianKernel is the kernel which Debian's linux-image-cloud-amd64 would install, unpacked in the
// user's cache.
func debianKernel(ctx context.Context, progress io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "whystall-lab", "kernel")
	there := func() string {
		files, _ := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
		if len(files) == 0 {
			return ""
		}
		return files[len(files)-1]
	}
	if k := there(); k != "" {
		return k, nil
	}
	const other = "name one with --kernel; lab qemu without arguments says which"
	out, err := exec.CommandContext(ctx, "apt-cache", "depends", "--important", "linux-image-cloud-amd64").Output()
	_, name, ok := strings.Cut(string(out), "Depends: ")
	name, _, _ = strings.Cut(name, "\n")
	if err != nil || !ok || !strings.HasPrefix(name, "linux-image-") {
		return "", fmt.Errorf("find a kernel: apt-cache knows no linux-image-cloud-amd64; %s", other)
	}
	fmt.Fprintf(progress, "fetching %s ...\n", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	for _, c := range [][]string{{"apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root",
		name}, {"sh", "-c", "dpkg -x linux-image-*.deb unpacked"}} {
		cmd := exec.CommandContext(ctx, c[0], c[1:]...)
		cmd.Dir = temp
		if b, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("fetch %s: %w: %s; %s", name, err, strings.TrimSpace(string(b)), other)
		}
	}
	// Only the kernel is needed from the package. The rename makes it whole or not there.
	if err := os.Rename(filepath.Join(temp, "unpacked", "boot"), filepath.Join(dir, "boot")); err != nil {
		return "", fmt.Errorf("unpack %s: %w", name, err)
	}
	if k := there(); k != "" {
		return k, nil
	}
	return "", fmt.Errorf("unpack %s: there is no vmlinuz in it; %s", name, other)
}
