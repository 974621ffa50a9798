package settings

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the lab and its watchdog.
func TestMain(m *testing.M) {
	if f := os.Getenv("SETTINGS_FOLDER"); f != "" {
		Folder = f
	}
	if len(os.Args) > 2 && os.Args[1] == "watchdog" {
		if err := Watch(os.Stdin, os.Args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "lab" {
		j, err := Begin(os.Args[0], "watchdog")
		if err == nil {
			err = j.Set(os.Args[2], "changed")
		}
		if err == nil {
			err = j.Remove(os.Args[2] + ".dir")
		}
		if err == nil {
			err = os.Mkdir(os.Args[2]+".dir", 0o755)
		}
		fmt.Println("ready", j.watchdog.Process.Pid, err)
		select {}
	}
	os.Exit(m.Run())
}

func value(t *testing.T, file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func setting(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "enabled")
	if err := os.WriteFile(file, []byte("always [madvise] never\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	Folder = t.TempDir()
	return file
}

func TestEnd(t *testing.T) {
	file := setting(t)
	j, err := Begin(os.Args[0], "watchdog")
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Set(file, "always"); err != nil {
		t.Fatal(err)
	}
	if got := value(t, file); got != "always" {
		t.Errorf("set to %q", got)
	}
	if err := j.End(); err != nil {
		t.Fatal(err)
	}
	if got := value(t, file); got != "madvise" {
		t.Errorf("put back %q, want madvise", got)
	}
	if left, _ := os.ReadDir(Folder); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// killed starts a lab, which changes the setting, and kills it; with both, it kills the watchdog as
// well.
func killed(t *testing.T, file string, both bool) {
	cmd := exec.Command(os.Args[0], "lab", file)
	cmd.Env = append(os.Environ(), "SETTINGS_FOLDER="+Folder)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	f := strings.Fields(line)
	if err != nil || len(f) != 3 || f[2] != "<nil>" || value(t, file) != "changed" {
		t.Fatalf("%q, %v", line, err)
	}
	if both {
		pid, _ := strconv.Atoi(f[1])
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for started(pid) != "" { // it may run until the signal arrives
			time.Sleep(time.Millisecond)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
}

func TestWatchdog(t *testing.T) {
	file := setting(t)
	killed(t, file, false)
	for n := 0; value(t, file) != "madvise"; n++ {
		if n > 1000 {
			t.Fatal("nobody put it back")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestHeal(t *testing.T) {
	file := setting(t)
	killed(t, file, true)
	if got := value(t, file); got != "changed" {
		t.Fatalf("%q: somebody put it back already", got)
	}
	if err := Heal(); err != nil {
		t.Fatal(err)
	}
	if got := value(t, file); got != "madvise" {
		t.Errorf("%q, want madvise", got)
	}
	if _, err := os.Stat(file + ".dir"); err == nil {
		t.Error("the folder is left")
	}
	if left, _ := os.ReadDir(Folder); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// The changes of a lab which lives stay.
func TestAlive(t *testing.T) {
	file := setting(t)
	j, err := Begin(os.Args[0], "watchdog")
	if err != nil {
		t.Fatal(err)
	}
	defer j.End()
	if err := j.Set(file, "always"); err != nil {
		t.Fatal(err)
	}
	if err := Heal(); err != nil || value(t, file) != "always" {
		t.Errorf("%v, %q", err, value(t, file))
	}
}
