package paste

import "testing"

func TestForeignSyslog(t *testing.T) {
	for in, want := range map[string]string{
		"juin 12 00:33:18 desk swapd[668294]: free ram: 4":   "free ram: 4",
		"déc. 08 09:01:02 db1 kernel: out of memory":         "out of memory",
		"8月 12 10:00:01 node3 sshd[7]: closed":               "closed",
		"Okt  3 10:00:01 node3 sshd[7]: closed":              "closed",
		"java 12 processes 10:00:01 of them: see":            "java 12 processes 10:00:01 of them: see",
		"took 12 10:00:0x host a[1]: b":                      "took 12 10:00:0x host a[1]: b",
		"sda 12 1:2:3 and more than that, and so on: really": "sda 12 1:2:3 and more than that, and so on: really",
	} {
		l := Line{Text: in}
		l.logged()
		if l.Text != want {
			t.Errorf("%q: got %q, want %q", in, l.Text, want)
		}
	}
}
