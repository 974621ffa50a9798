// Package proc finds in /proc, /sys and the cgroup file systems what is about one process: which
// folders are its cgroups' and all their ancestors', also where it lives in other namespaces than
// we; its threads; the kernel's delay accounting over netlink. The root path is a parameter. It
// refuses to interpret files: what they say is for who parses them.
package proc

import "path/filepath"

// FS is a machine's /proc and /sys: under "" or, in tests and where a host's root is mounted, under
// a folder.
type FS struct{ Root string }

// Path gives where an absolute path of that machine is for us.
func (fs FS) Path(name string) string {
	if fs.Root == "" {
		return name
	}
	return filepath.Join(fs.Root, name)
}
