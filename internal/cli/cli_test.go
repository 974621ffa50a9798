package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"whystall": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)) },
	})
}

func TestScripts(t *testing.T) {
	traces, err := filepath.Abs("../../exectrace/testdata")
	if err != nil {
		t.Fatal(err)
	}
	lab, err := filepath.Abs("testdata/lab")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("TRACES", traces)
			env.Setenv("LAB", lab)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"status": status},
	})
}

// status WANT COMMAND... runs whystall and holds it to its exit status, which testscript's own exec
// reports only as zero or not.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status WANT COMMAND...")
	}
	script := ts.MkAbs("status.out")
	err := ts.Exec("sh", append([]string{"-c", `w="$1"; shift; "$@"; s=$?; echo $s > "$w"`, "sh",
		script}, args[1:]...)...)
	if err != nil {
		ts.Fatalf("%v", err)
	}
	if got := ts.ReadFile("status.out"); got != args[0]+"\n" {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}
