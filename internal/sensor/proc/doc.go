// Package proc finds what /proc, /sys and the cgroup file systems have about one process: the
// folders of its cgroups and of all their ancestors, even if it lives in other namespaces than we
// do; its threads; the kernel's delay accounting, over netlink. The root path is a parameter. The
// package refuses to interpret files: what they say is for their parser.
package proc

import "path/filepath"

// FS is a machine's /proc and /sys: under "" or, in tests and where a host's root is mounted, under
// a folder.
type FS struct{ Root string }

// Path returns where we find an absolute path of that machine.
func (fs FS) Path(name string) string {
	if fs.Root == "" {
		return name
	}
	return filepath.Join(fs.Root, name)
}
