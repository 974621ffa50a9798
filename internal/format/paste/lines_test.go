package paste

import (
	"slices"
	"testing"
	"unicode/utf16"
)

func texts(lines []Line) (out []string) {
	for _, l := range lines {
		out = append(out, l.Text)
	}
	return out
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"fence", "see:\n```\nA b\n  c\n```\nend\n", []string{"see:", "", "A b", "  c", "", "end"}},
		{"fence with a language", "```log\nx\n```", []string{"", "x", ""}},
		{"fence with its first line", "```A: b c\nx```", []string{"A: b c", "x"}},
		{"jira", "{code:java}\nx\n{code}\n", []string{"", "x", ""}},
		{"quote", "> a\n>   b\n>\n> c\n", []string{"a", "  b", "", "c"}},
		{"two quotes", "> > a\n> > b\n", []string{"a", "b"}},
		{"indented", "so:\n\n    a\n      b\n\n    c\n", []string{"so:", "", "a", "  b", "", "c"}},
		{"below a colon", "so:\n    a\n    b\n", []string{"so:", "a", "b"}},
		{"a tool's own indentation", "java 1 [001] 5.0: cycles:\n\tff a (b)\n\tff c (d)\n",
			[]string{"java 1 [001] 5.0: cycles:", "\tff a (b)", "\tff c (d)"}},
		{"a goroutine's frames", "goroutine 1 [running]:\n\tx.go:1\n", []string{"goroutine 1 [running]:", "\tx.go:1"}},
		{"cat -n", "     9\ta\n    10\t\n    11\tb\n", []string{"a", "", "b"}},
		{"grep -n", "3:gc 1\n7:gc 2\n12:gc 3\n", []string{"gc 1", "gc 2", "gc 3"}},
		{"hours", "01:00:01 a\n02:00:01 b\n03:00:02 c\n", []string{"01:00:01 a", "02:00:01 b", "03:00:02 c"}},
		{"editor", "1 | a\n2 | b\n3 | c", []string{"a", "b", "c"}},
		{"an editor's blanks", "a:\n\n 1  a\n 2    b\n 3\n 4  c\n 5  d\n",
			[]string{"a:", "", "a", "  b", "", "c", "d"}},
		{"a web page's list", " 1. a\n 2. b\n 3. c\n 4. d\n 5. e\n", []string{"a", "b", "c", "d", "e"}},
		{"a web page's list with empty lines", "1. a\n 2. \n 3. b\n 4. c\n 5. \n", []string{"a", "", "b", "c", ""}},
		{"a table of ids", "id  x\n 1  a\n 2  b\n 3  c\n 4  c\n 5  d\n",
			[]string{"id  x", " 1  a", " 2  b", " 3  c", " 4  c", " 5  d"}},
		{"quoted, then indented", "so:\n\n    > a\n    > b\n", []string{"so:", "", "a", "b"}},
		{"interrupts", "  0:   47   x\n  1:    9   y\n  2:    0   z\n",
			[]string{"0:   47   x", "1:    9   y", "2:    0   z"}},
		{"colours", "\x1b[1;32mok\x1b[0m \x1b]0;title\x07end\x1b[K", []string{"ok end"}},
		{"a chat's blanks", "a\u00a0\u00a0b\u200b", []string{"a  b"}},
		{"a chat's quotes", "“a” ‘b’ — 4→5→3 MB", []string{`"a" 'b' --- 4->5->3 MB`}},
		{"entities", "a&nbsp;&gt; b &amp;amp; c", []string{"a > b & c"}},
		{"tags", "<details><summary>dump</summary>\n<pre><code class=\"language-bash\">$ free\nx\n</code></pre>\n</details>\n", []string{"dump", "$ free", "x", "", ""}},
		{"no tags", "#1 f (a=<optimized out>)\n<idle> 3\n", []string{"#1 f (a=<optimized out>)", "<idle> 3"}},
		{"idle prompts", "[#3#a@b ~]$\n[a@b ~]$\nroot@h:~] $\n^C\n^Cx\n(gdb)\n$\n",
			[]string{"", "", "", "", "^Cx", "", ""}},
		{"a fence cut off", "x 1\n```\ntext\n```bash\ny 2\n```\n", []string{"x 1", "", "text", "", "y 2", ""}},
		{"a line of code", "`gc 1 @1s`\n`a` and `b`\n`-- c\n``\n", []string{"gc 1 @1s", "`a` and `b`", "`-- c", "``"}},
		{"a record that was broken",
			`{"level":"warn","caller":"store/put.go:7","msg":"the put took t` + "\n" +
				`oo long","took":"1s"}` + "\n" + `{"level":"info"}`,
			[]string{`{"level":"warn","caller":"store/put.go:7","msg":"the put took too long","took":"1s"}`, "", `{"level":"info"}`}},
		{"a record that was cut off",
			`{"level":"warn","caller":"store/put.go:7","msg":"the put took t` + "\n" + `oo long","took"`,
			[]string{`{"level":"warn","caller":"store/put.go:7","msg":"the put took t`, `oo long","took"`}},
		{"JSON that its program indents",
			`{"name":"a", "labels":["one","two","three","four","five","six"],` + "\n" + `"c":2}`,
			[]string{`{"name":"a", "labels":["one","two","three","four","five","six"],`, `"c":2}`}},
		{"crlf", "a\r\nb\r\n", []string{"a", "b"}},
		{"old Macs", "a\rb\r", []string{"a", "b"}},
		{"progress", "10%\r20%\rdone\n", []string{"done"}},
		{"latin-1", "M\xfcller\n", []string{"Müller"}},
		{"left out", "a\n...\nb\n", []string{"a", "", "b"}},
		{"syslog", "Nov 22 22:28:49 web1 app[77]: gc 1 @1s", []string{"gc 1 @1s"}},
		{"syslog, the host in brackets", "Nov 22 22:28:49 [web1] app: gc 1 @1s", []string{"gc 1 @1s"}},
		{"a level is no host", "Nov 22 22:28:49 [error] app: gc 1 @1s",
			[]string{"Nov 22 22:28:49 [error] app: gc 1 @1s"}},
		{"syslog, without time and host", "app[77]: gc 1 @1s\napp[77]:\napp[77]: gc 2 @2s",
			[]string{"gc 1 @1s", "", "gc 2 @2s"}},
		{"numbered headings", "rq[0]:/a\n.x: 1\nrq[1]:/a\n.x: 2", []string{"rq[0]:/a", ".x: 1", "rq[1]:/a", ".x: 2"}},
		{"an index", "app[77] = 3", []string{"app[77] = 3"}},
		{"all in brackets", "[2026-11-22 22:28:49 gc [1] @1s]\n[2026-11-22 22:28:50]\n", []string{"gc [1] @1s", ""}},
		{"a time in brackets", "[2026-11-22 22:28:49] gc [1]", []string{"[2026-11-22 22:28:49] gc [1]"}},
		{"kernel", "Nov  2 22:28:49 web1 kernel: [12.5] oom", []string{"[12.5] oom"}},
		{"journald", "2026-11-22T22:28:49+0000 web1 app[77]: gc 1", []string{"gc 1"}},
		{"rfc 5424", "<134>1 2026-11-22T22:28:49.003Z web1 app 77 - - gc 1", []string{"gc 1"}},
		{"containerd", "2026-11-22T22:28:49.123456789Z stderr F gc 1", []string{"gc 1"}},
		{"kubectl", "2026-11-22T22:28:49.123456789Z gc 1", []string{"gc 1"}},
		{"kubectl --prefix", "[pod/web-1/app] gc 1", []string{"gc 1"}},
		{"compose", "web-1  | gc 1\ndb-1   | ready\nweb-1  | gc 2\n", []string{"gc 1", "ready", "gc 2"}},
		{"klog", "I1122 22:28:49.123456   12345 file.go:123] gc 1", []string{"gc 1"}},
		{"a wrapper's bars", "INFO   | app 1    | 2026/11/22 22:28:49 | gc 1 @1s\nWARN   | app 1    | 2026-11-22 22:28:49,5 | \tx.go:1\n", []string{"gc 1 @1s", "\tx.go:1"}},
		{"a table with levels",
			"INFO   | app 1    | started | yes\nNAME   | app 1    | 2026/11/22 22:28:49 | yes\n",
			[]string{"INFO   | app 1    | started | yes", "NAME   | app 1    | 2026/11/22 22:28:49 | yes"}},
		{"zap", "2026-11-22T22:28:49.123Z\tINFO\tx/y.go:3\thello", []string{"hello"}},
		{"go's log", "2026/11/22 22:28:49.123456 hello", []string{"hello"}},
		{"docker's json", `{"log":"gc 1\n","stream":"stderr","time":"2026-11-22T22:28:49Z"}`, []string{"gc 1"}},
		{"a record of the program", `{"level":"warn","msg":"slow","took":"1s"}`,
			[]string{`{"level":"warn","msg":"slow","took":"1s"}`}},
		{"grep of several", "/proc/1/status:Name:\ta\n/proc/2/status:Name:\tb\n", []string{"Name:\ta", "Name:\tb"}},
		{"foreman", "0:53:12 web | a\n10:53:12 db  | b c\n10:53:13 web | d\n", []string{"a", "b c", "d"}},
		{"a time of two lines is no foreman's", "10:53:12 web | a\n10:53:13 db  | b\n",
			[]string{"10:53:12 web | a", "10:53:13 db  | b"}},
		{"a table is no compose", "id  | state\n12  | idle\nx   | y\n",
			[]string{"id  | state", "12  | idle", "x   | y"}},
	} {
		if got := texts(Lines([]byte(c.in))); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

func TestUTF16(t *testing.T) {
	for _, mark := range []string{"\ufeff", ""} {
		var little, big []byte
		for _, u := range utf16.Encode([]rune(mark + "gc 1 @1s\nµs 😀\n")) {
			little = append(little, byte(u), byte(u>>8))
			big = append(big, byte(u>>8), byte(u))
		}
		for _, data := range [][]byte{little, big} {
			if got, want := texts(Lines(data)), []string{"gc 1 @1s", "µs 😀"}; !slices.Equal(got, want) {
				t.Errorf("mark %q: got %q", mark, got)
			}
		}
	}
}

func TestPrompts(t *testing.T) {
	for in, want := range map[string]string{
		"root@web1:~# vmstat 1 5":                             "web1 vmstat 1 5",
		"[joe@web1 tmp]$ top -b":                              "web1 top -b",
		"joe@mac ~ % go tool pprof x":                         "mac go tool pprof x",
		"$ ./app -x":                                          " ./app -x",
		"$ GODEBUG=gctrace=1 ./app":                           " GODEBUG=gctrace=1 ./app",
		"# cat /proc/1/status":                                " cat /proc/1/status",
		"/ # cat /proc/1/status":                              " cat /proc/1/status",
		"/app $ ps aux":                                       " ps aux",
		"> vmstat 1":                                          " vmstat 1",
		"➜  ~ git:(main) ✗ perf report":                       " perf report",
		"bash-5.1# free -m":                                   " free -m",
		"mysql> explain select 1;":                            " explain select 1;",
		"MariaDB [(none)]> show engine innodb status\\G":      " show engine innodb status\\G",
		"10.0.0.7:6379> latency doctor":                       "10.0.0.7 latency doctor",
		"postgres=# select 1;":                                " select 1;",
		"(gdb) thread apply all bt":                           " thread apply all bt",
		"==> /proc/1/smaps <==":                               " cat /proc/1/smaps",
		"root@web1:/# kubectl exec -it p -- cat /proc/1/stat": "web1 kubectl exec -it p -- cat /proc/1/stat",
		"(root) ~ # ./cachestat.py":                           " ./cachestat.py",
		"→ perf stat ./a":                                     " perf stat ./a",
		"Every 2.0s: cat /proc/softirqs                Mon":   " cat /proc/softirqs",
		"Every 1,0s: uptime       web1: Mon Nov 2 10:00:00":   "web1 uptime",
		"web1# iostat -x 1":                                   "web1 iostat -x 1",
		"web1:~$ free -m":                                     "web1 free -m",
		"web1:~$ sleep 60":                                    "web1 sleep 60",
		"# sleep well":                                        " ",
		"web1:/srv/shop# vmstat 1":                            "web1 vmstat 1",

		// Output that only looks like a prompt.
		"# Time: 2026-11-22T22:28:49Z":                           " ",
		"# HELP go_goroutines Number":                            " ",
		"# runtime.MemStats":                                     " ",
		"#0  0x00007f in read ()":                                " ",
		"#	0x40489e6	sync.runtime_SemacquireMutex+0x46":          " ",
		"top - 11:10:47 up  1:08":                                " ",
		"12.3% cat":                                              " ",
		"#12 0x0000 in main () at x.c:1":                         " ",
		"Thread 3 (Thread 0x7f (LWP 3)):":                        " ",
		"pthread_cond_wait@@GLIBC_2.3.2 () from /lib64/libc.so":  " ",
		"# Overhead  Command  Shared Object":                     " ",
		"-> lock 0x1 > time 3":                                   " ",
		"    50.00%  app  libc.so  [.] read":                     " ",
		"# perf version : 6.1":                                   " ",
		"$1 = 5":                                                 " ",
		"12:00:01 root@ all -- x":                                " ",
		"\"main\" #1 prio=5 os_prio=0 tid=0x00007f nid=0x1 runn": " ",
	} {
		l := Lines([]byte(in))[0]
		if got := l.Host + " " + l.Command; got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestPrefixSays(t *testing.T) {
	l := Lines([]byte("2026-11-22T22:28:49+0000 web1 app[77]: gc 1"))[0]
	if l.Source != "web1" || l.PID != 77 || l.Time.Unix() != 1795386529 || l.Raw == "" {
		t.Errorf("got %+v", l)
	}
	if l := Lines([]byte("/sys/fs/cgroup/a/cpu.stat:nr_periods 5"))[0]; l.Path != "/sys/fs/cgroup/a/cpu.stat" {
		t.Errorf("got %+v", l)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("```\n> $ cat x\n  1\ta\n```\n\x1b[1mx\nNov 22 22:28:49 web1 app[77]: y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := 0
		for _, l := range Lines(data) {
			if l.N != last+1 {
				t.Fatalf("line %d follows line %d", l.N, last)
			}
			last = l.N
		}
	})
}

// Runs of comments are read without their marks, in another view; a lone comment is left.
func TestViewsOfComments(t *testing.T) {
	lines := Lines([]byte("package main\n// gc 1 of it\n// gc 2 of it\nfunc main() {\n// alone\n}\n"))
	found := false
	for _, v := range Views(lines) {
		found = found || v[1].Text == "gc 1 of it" && v[2].Text == "gc 2 of it" &&
			v[4].Text == "// alone" && v[3].Text == "func main() {"
	}
	if !found {
		t.Error("no view without the marks of comments")
	}
}

// Marks without a blank behind them are taken off as well, over an empty line, and what reads like
// root's prompt within. Strings are what they hold.
func TestViewsOfMarks(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"x := 1\n//gc 1 @0s\n//$ free\n//\tgc 2\ny()\n", []string{"x := 1", "gc 1 @0s", "$ free", "gc 2", "y()", ""}},
		{"x\n# a b\n# mysql tables in use 1\n# c\n# ...\n", []string{"x", "a b", "mysql tables in use 1", "c", "", ""}},
		{"#2026-11-22 a\n\n#2026-11-22 b\n", []string{"2026-11-22 a", "", "2026-11-22 b", ""}},
		{"want := []string{\n\t\"a\\tb \\\"c\\\"\",\n\t\"  d\\n\"\n}\n",
			[]string{"want := []string{", "a\tb \"c\"", "  d", "}", ""}},
		{"#   \"a\\tb\",\n#   \"c\\td\"\n# ]\n", []string{"a\tb", "c\td", "]", ""}},
	} {
		found := false
		for _, v := range Views(Lines([]byte(c.in))) {
			found = found || slices.Equal(texts(v)[:len(c.want)-1], c.want[:len(c.want)-1])
		}
		if !found {
			t.Errorf("no view of %q reads %q", c.in, c.want)
		}
	}
}

// Words set in bold within a line are its words; a generic type in one is none.
func TestInlineTags(t *testing.T) {
	got := Lines([]byte("<pre>\n up, load average: <b>25.25, 23.40</b>, 7 users\nstd::map<b, i>::find\n</pre>\n"))
	if got[1].Text != " up, load average: 25.25, 23.40, 7 users" &&
		got[1].Text != "up, load average: 25.25, 23.40, 7 users" {
		t.Errorf("got %q", got[1].Text)
	}
	if got[2].Text != "std::map<b, i>::find" {
		t.Errorf("got %q", got[2].Text)
	}
}

// So are figures in bold within a line; marks around other words stay.
func TestStarredFigures(t *testing.T) {
	for in, want := range map[string]string{
		"sdb 1.00 **88.40** **97.5%**": "sdb 1.00 88.40 97.5%",
		"88.4 id, **4.2 wa**, 0.0 hi":  "88.4 id, 4.2 wa, 0.0 hi",
		"char **argv, f(**p)":          "char **argv, f(**p)",
	} {
		if got := Lines([]byte("x\n" + in + "\ny\n"))[1].Text; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestUnrolled(t *testing.T) {
	in := "x\nlevel=error stack=\"a.b(0x1)\\n\\t/a.go:1 +0x2\\na.c()\\n\\t/a.\ngo:9\\n\"\ny\n"
	want := []string{"x", "a.b(0x1)", "\t/a.go:1 +0x2", "a.c()", "\t/a.go:9", "", "y"}
	if got := texts(unrolled(Lines([]byte(in)))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	in = `{"stack":"a.b()\\n\\t/a.go:1\\na.c()\\n\\t/a.go:9\\n"}` // in another log's field
	want = []string{"a.b()", "\t/a.go:1", "a.c()", "\t/a.go:9", ""}
	if got := texts(unrolled([]Line{{N: 1, Text: in}})); !slices.Equal(got, want) {
		t.Errorf("doubled: got %q, want %q", got, want)
	}
	if got := unrolled(Lines([]byte(`printf("a\nb\nc\n")`))); got != nil {
		t.Errorf("source code: got %q", texts(got))
	}
}
