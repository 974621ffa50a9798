package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for arg, want := range map[string]Arg{
		"4121": {PID, "4121", 4121}, ":8080": {Port, ":8080", 8080}, "http://h:6060/x": {URL, "http://h:6060/x", 0},
		"shop.service": {Unit, "shop.service", 0}, "unit:shop": {Unit, "shop.service", 0},
		"unit:a.scope": {Unit, "a.scope", 0},
		"deadbeefcafe": {Container, "deadbeefcafe", 0}, "DEADBEEFCAFE": {Container, "deadbeefcafe",
			0}, id: {Container, id, 0},
		"123456789012": {Container, "123456789012", 0}, "container:shop-1_a.b": {Named, "shop-1_a.b", 0},
		"mysqld": {Program, "mysqld", 0}, "deadbeef": {Program, "deadbeef", 0}, "my app": {Program, "my app", 0},
	} {
		if got, err := Parse(arg); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", arg, got, err, want)
		}
	}
	for _, arg := range []string{"", ":0", ":65536", ":http", ":", "0", "99999999999", "host:80",
		"/bin/sh", "container:", "container:--help", "container:a b", "unit:", "unit:a/b", "a\nb"} {
		if got, err := Parse(arg); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v", arg, got, err)
		}
	}
}

// proc is a /proc by hand: each line is pid, name, program, cgroup.
func proc(t *testing.T, lines ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, line := range lines {
		f := strings.Split(line, "|")
		dir := filepath.Join(root, f[0])
		if err := os.MkdirAll(filepath.Join(dir, "fd"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"stat":    fmt.Sprintf("%s (%s) S 1 1 1 0 -1 0 0 0 0 0 %s 5 0 0 20 0 1 0 100", f[0], f[1], f[0]),
			"cmdline": strings.ReplaceAll(f[2], " ", "\x00"),
			"cgroup":  "0::" + f[3] + "\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestFind(t *testing.T) {
	const id, other = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"aaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	m := Machine{
		Proc: proc(t,
			"2|kthreadd||/", "10|shop|/usr/bin/shop -x|/system.slice/shop.service",
			"11|nginx|nginx: master|/system.slice/nginx.service",
			"12|nginx|nginx: worker|/system.slice/nginx.service/sub",
			"13|a-program-with-|/opt/a-program-with-a-long-name|/user.slice",
			"14|a-program-with-|/opt/a-program-with-another|/user.slice",
			"20|app|/app|/system.slice/docker-"+id+".scope",
			"21|web|/web|/kubepods.slice/pod1/cri-containerd-"+other+".scope",
			"22|) evil (|/evil|/machine.slice/libpod-payload-cccccccccccc.scope"),
		Run: func(_ context.Context, tool string, args ...string) ([]byte, error) {
			switch {
			case tool == "docker" && slices.Contains(args, "app"):
				return []byte(id + "\n"), nil
			case tool == "docker":
				return nil, &exec.ExitError{Stderr: []byte("no such container\nmore")}
			}
			return nil, &exec.Error{Name: tool, Err: exec.ErrNotFound}
		},
	}
	for arg, want := range map[string]int{
		"77": 77, "shop": 10, "shop.service": 10, "unit:shop": 10, "a-program-with-a-long-name": 13,
		"aaaaaaaaaaaaa": 20, "aaaaaaaaaaaabb": 21,
		"container:app": 20, "cccccccccccc": 22, ") evil (": 22,
	} {
		a, err := Parse(arg)
		if err != nil {
			t.Fatal(err)
		}
		if pid, err := m.Find(t.Context(), a); err != nil || pid != want {
			t.Errorf("%s: %d, %v, want %d", arg, pid, err, want)
		}
	}
	for arg, want := range map[string][]int{"nginx": {11, 12}, "nginx.service": {11, 12}, "aaaaaaaaaaaa": {20, 21}} {
		a, _ := Parse(arg)
		_, err := m.Find(t.Context(), a)
		var several *Several
		if !errors.As(err, &several) {
			t.Errorf("%s: %v", arg, err)
			continue
		}
		var pids []int
		for _, p := range several.Fit {
			pids = append(pids, p.PID)
		}
		if slices.Sort(pids); !slices.Equal(pids, want) {
			t.Errorf("%s: %v, want %v", arg, pids, want)
		}
	}
	for arg, want := range map[string]string{
		"kthreadd": "no process runs a program", "sho": "no process runs",
		"container:none": "docker: no such container", "dddddddddddd": "no process is in a cgroup",
		"unit:none": "systemctl status none.service", ":1": "nobody listens",
	} {
		a, _ := Parse(arg)
		if _, err := m.Find(t.Context(), a); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}

// A process of this machine that listens is found by its port; who only connects is not.
func TestPort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := list("/proc", 0)
	if err != nil {
		t.Fatal(err)
	}
	for conn, want := range map[net.Addr]bool{l.Addr(): true, c.LocalAddr(): false} {
		port := conn.(*net.TCPAddr).Port
		fit, _ := holders("/proc", all, listeners("/proc", all, port))
		found := slices.ContainsFunc(fit, func(p Process) bool { return p.PID == os.Getpid() })
		if found != want || len(fit) > 1 {
			t.Errorf("port %d: %v, want ours: %v", port, fit, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1", ":1", "a.service", "container:x", "http://x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := Parse(s); err == nil && a.Kind == PID && strconv.Itoa(a.Number) == "0" {
			t.Errorf("%q is pid 0", s)
		}
	})
}
