package attach

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/format/paste"
)

// What people write around outputs is told from outputs.
func TestSorts(t *testing.T) {
	for _, c := range []struct {
		want Sort
		text string
	}{
		{SortWords, "### Expected behavior"},
		{SortWords, "**Describe the bug**\nThe queue stalls  when `worker.Run()` is called twice, see [the docs](https://x.example/a?b=1)."},
		{SortWords, "1. start `app --port 80`\n2. wait for 5 minutes\n3. look at /var/log/app.log"},
		{SortWords, "- [x] I searched the existing issues\n- [ ] I can reproduce it with the latest release"},
		{SortWords, "config:"},
		{SortWords, "![queue](https://x.example/q.png)"},
		{SortWords, "在 `/var/log/app.log` 中可以看到如下信息"},
		{SortWords, "# ========\n# captured on: Mon Nov 23 01:02:03 2026"},
		{SortWords, "[1]+  Stopped                 ./app"},
		{SortWords, "<details>\n<summary>the dump</summary>"},
		{SortWords, "wait #       which of the waits it is, the oldest first\n@#s          time in seconds since the program started"},
		{SortWords, "go build -o queue ./cmd/queue\nGODEBUG=schedtrace=1000 ./queue"},
		{SortCode, "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfor i := range 5 {\n\t\tgo work(i)\n\t}\n}"},
		{SortCode, "int main(void) {\n    int n = read_all(fd);\n    return n;\n}"},
		{SortCode, "SELECT a, count(*)\nFROM t\nWHERE b = 5\nGROUP BY a;"},
		{SortCode, "def work(n):\n    return n + 1\n\npool = Pool(9)\npool.map(work, range(50))"},
		{SortCode, "#!/bin/sh\nfor f in *.log; do\n  gzip $f\ndone"},
		{SortConfig, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 3"},
		{SortConfig, "{\n  \"listen\": \"127.0.0.1:80\",\n  \"debug\": true,\n  \"workers\": 8\n}"},
		{SortConfig, "[server]\nlisten = 0.0.0.0:80\nlog = /var/log/app.log"},
		{SortVersions, "OS: Ubuntu 24.04\nKernel: 6.8.0-31-generic\nGo: go version go1.26.1 linux/amd64"},
		{SortVersions, "GOARCH=\"amd64\"\nGOOS=\"linux\"\nGOROOT=\"/usr/local/go\""},
		{SortVersions, "Distributor ID: Debian\nDescription: Debian GNU/Linux 13\nRelease: 13\nCodename: trixie"},
		{SortVersions, "Client Version: v1.33.1\nKustomize Version: v5.6.0\nServer Version: v1.32.4"},
		{SortVersions, "Linux web1 6.8.0-31-generic #31-Ubuntu SMP x86_64 GNU/Linux"},
		{SortFiles, "total 0\ndrwxr-xr-x 2 root root 0 Nov 23 01:02 a\n-rw-r--r-- 1 root root 4096 Nov 23 01:02 b"},
		{SortLog, "2026-11-23 01:02:03 INFO starting the queue\n2026-11-23 01:02:04 INFO the queue is ready"},
		{SortLine, "TS 558601.1705 903x 2026-11-23 01:02:03"},

		// Outputs.
		{SortOutput, "queue      depth   wait_ms   drops\nmail          12     403.1       0\nbilling      877    1904.7      31"},
		{SortOutput, "id | waits | total ms\n 1 | 77 | 903\n 2 | 12 | 44"},
		{SortOutput, "jobs ----------queue--------- ---disk--\n a b"},
		{SortOutput, "nr_waits 903\nnr_stalls 12\nstall_us 99120"},
		{SortOutput, "waits: 903\nstalls: 12\nstall_us: 99120\nworst: 4 ms"},
		{SortOutput, "  903 12 44 0 0\n  877 13 41 0 2"},
		{SortOutput, "ffffffff810b5b12 autoremove_wake\nffffffff810b5462 __wake_up\nffffffff81092979 kthread"},
		{SortOutput, "#0  0x00007f11 in f () from /lib/libx.so\n#1  0x00007f12 in g () from /lib/libx.so"},
	} {
		if got := sortOf(nonBlank(c.text), true); got != c.want {
			t.Errorf("%s\n is %q, want %q", c.text, got, c.want)
		}
	}
}

func nonBlank(text string) (out []paste.Line) {
	for i, l := range strings.Split(text, "\n") {
		if l != "" {
			out = append(out, paste.Line{N: i + 1, Text: l})
		}
	}
	return out
}

// A ticket around an output that is known keeps nothing from being said; a table that nobody knows
// does, and is named.
func TestAside(t *testing.T) {
	around := "### Steps\n1. run `app -n 5`\n2. look at the numbers\n\n```go\npackage main\n\nfunc main() {\n\twork()\n}\n```\n\n```\nh\n1\n2\n```\n\n**Environment**\n- OS: Debian 13\n- Kernel: 6.12.0\n"
	healthy := *testKinds[0]
	healthy.Read = func(*Part) Reading { return Reading{State: Healthy} }
	kinds := NewKinds([]*Kind{&healthy})
	for text, want := range map[string]State{
		around: Healthy,
		around + "\n```\nqueue      depth   wait_ms   drops\nmail          12     403.1       0\nbilling      877    1904.7      31\n```\n": CannotTell,
	} {
		parts, ranges := cutAll("x", []byte(text), kinds)
		left := Leftovers("x", ranges, parts, kinds)
		if a := Explain(parts, left); a.State != want || len(parts) != 1 {
			t.Errorf("%s, want %s: %+v", a.State, want, left)
		}
	}
}
