package collect

import (
	"bytes"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseStat(t *testing.T) {
	const rest = " S 1 2 3 0 -1 4194304 10 0 0 0 150 50 0 0 20 0 5 0 123456 1000 200 18446744073709551615"
	s, err := parseStat([]byte("77 (a) b (c)" + rest))
	if want := (procStat{comm: "a) b (c", state: 'S', parent: 1, cpuNS: 2e9, start: 123456}); err != nil || s != want {
		t.Errorf("%+v, %v, want %+v", s, err, want)
	}
	s, err = parseStat([]byte(strings.Replace("2 (kthreadd)"+rest, "4194304", "2129984", 1)))
	if err != nil || !s.kernel {
		t.Errorf("kthreadd: %+v, %v", s, err)
	}
	for _, bad := range []string{"", "77", "77 (a", "77 (a) S 1", "77 (a)" + strings.Replace(rest, "150", "x", 1)} {
		if s, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, s)
		}
	}
}

// Of the environment only what steers runtimes is kept, whatever else is in it.
func TestParseEnv(t *testing.T) {
	env := parseEnv([]byte("PATH=/bin\x00GOGC=50\x00AWS_SECRET=" + secret +
		"\x00GOMAXPROCS\x00MALLOC_ARENA_MAX=2\x00GODEBUG=a=1,b=2\x00GOMEMLIMIT=" +
		strings.Repeat("x", 600) + "\x00XGOGC=1\x00"))
	if want := map[string]string{"GOGC": "50", "MALLOC_ARENA_MAX": "2",
		"GODEBUG": "a=1,b=2"}; !reflect.DeepEqual(env, want) {
		t.Errorf("%v, want %v", env, want)
	}
}

const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1001 1 0000000000000000 100 0 0 10 0
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1002 1 0000000000000000 100 0 0 10 0
   2: 0A01A8C0:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1003 1 0000000000000000 100 0 0 10 0
   3: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 1004 1 0000000000000000 20 4 30 10 -1
   4: 0100007F:1F95 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1005 1 0000000000000000 100 0 0 10 0
`

const tcp6Table = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1006 1 0000000000000000 100 0 0 10 0
   1: 00000000000000000000000001000000:17AC 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1007 1 0000000000000000 100 0 0 10 0
   2: 0000000000000000FFFF00000100007F:17AD 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1008 1 0000000000000000 100 0 0 10 0
`

// Only loopback and the wildcard are asked, loopback first; the kernel lists listeners before all
// else.
func TestListeners(t *testing.T) {
	var all []listening
	for _, table := range []string{tcpTable, tcp6Table} {
		ls, err := parseListeners(strings.NewReader(table))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ls...)
	}
	if len(all) != 6 || all[0].inode != 1001 || all[5].addr.String() != "127.0.0.1:6061" {
		t.Errorf("listeners %v", all)
	}
	var want []netip.AddrPort
	for _, s := range []string{"127.0.0.1:8080", "[::1]:6060", "127.0.0.1:6061", "127.0.0.1:80"} {
		want = append(want, netip.MustParseAddrPort(s))
	}
	if got := loopback(all); !reflect.DeepEqual(got, want) {
		t.Errorf("asked are %v, want %v", got, want)
	}
	for _, bad := range []string{"x\n1: y\n", strings.Replace(tcpTable, "0100007F:1F90",
		"0100007:1F90", 1), strings.Replace(tcpTable, " 1001 ", " -1 ", 1)} {
		if ls, err := parseListeners(strings.NewReader(bad)); err == nil {
			t.Errorf("%.60q: %v", bad, ls)
		}
	}
}

// What a process calls itself and what its files say is its own: nothing of it may harm us.
func FuzzProcess(f *testing.F) {
	f.Add([]byte("77 (a) b (c) S 1 2 3 0 -1 4194304 10 0 0 0 150 50 0 0 20 0 5 0 123456 1000 200"))
	f.Add([]byte("GOGC=1\x00MALLOC_X=\xff\x00"))
	f.Add([]byte(tcpTable))
	f.Add([]byte(tcp6Table))
	f.Add([]byte("Name:\tx\nNSpid:\t1 2 3\nTgid:\t1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseStat(b)
		statusField(b, "NSpid")
		for k, v := range parseEnv(b) {
			if !steers(k) || !utf8.ValidString(v) {
				t.Errorf("kept %q=%q", k, v)
			}
		}
		for _, a := range parseArgs(b) {
			if !utf8.ValidString(a) {
				t.Errorf("argument %q", a)
			}
		}
		ls, _ := parseListeners(bytes.NewReader(b))
		for _, a := range loopback(ls) {
			if !a.Addr().IsLoopback() {
				t.Errorf("%v would be asked", a)
			}
		}
	})
}

func TestServesProfiles(t *testing.T) {
	self, err := os.Executable() // this test links net/http/pprof
	if err != nil {
		t.Fatal(err)
	}
	if !servesProfiles(self) {
		t.Error("net/http/pprof is not found in this test")
	}
	// Across two reads, and not where it is part of another name.
	file := t.TempDir() + "/x"
	for content, want := range map[string]bool{
		strings.Repeat("x", 1<<20-5) + "\x00net/http/pprof.Index\x00":     true,
		strings.Repeat("x", 1<<20) + "\x00net/http/pprof.Index\x00":       true,
		strings.Repeat("x", 3<<20) + "\x00net/http/pprof.Index.func1\x00": false,
		"": false,
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := servesProfiles(file); got != want {
			t.Errorf("%d bytes: %v, want %v", len(content), got, want)
		}
	}
	if p := examine(self, "/bin/x"); p.runtime != "go" || !strings.HasPrefix(p.goVersion, "go1.") &&
		!strings.HasPrefix(p.goVersion, "devel") {
		t.Errorf("this test is %+v", p)
	}
	if p := examine(file, "/usr/bin/python3.11"); p.runtime != "python" {
		t.Errorf("python is %+v", p)
	}
}

func TestAbilities(t *testing.T) {
	for _, c := range []struct {
		level      int
		privileged bool
		want       string
	}{{4, false, "no"}, {3, false, "no"}, {2, false, "part"}, {1, false, "part"}, {0, false, "yes"},
		{-1, false, "yes"}, {3, true, "yes"}} {
		a := paranoid(c.level, c.privileged)
		got := map[[2]bool]string{{true, false}: "yes", {true, true}: "part",
			{false, false}: "no"}[[2]bool{a.Ready, a.Part}]
		if got != c.want || (a.More == "") != (got == "yes") {
			t.Errorf("%+v: %+v", c, a)
		}
	}
}
