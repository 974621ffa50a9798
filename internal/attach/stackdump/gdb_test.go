package stackdump_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/kinds"
	"github.com/whystall/whystall/internal/format/paste"
)

// gdb names each thread in a line of its own before the first stack: hundreds for a server. They
// are the dump's, and not lines that nobody knows.
func TestManyThreads(t *testing.T) {
	var b strings.Builder
	for i := range 600 {
		fmt.Fprintf(&b, "[New Thread 0x7f%06x (LWP %d)]\n", i, 9000+i)
	}
	b.WriteString("[Thread debugging using libthread_db enabled]\n\n")
	for i := range 3 {
		fmt.Fprintf(&b, "Thread %d (Thread 0x7f%06x (LWP %d)):\n#0  0x00007f01 in __lll_lock_wait () from /lib64/libpthread.so.0\n"+
			"#1  0x00007f02 in pthread_mutex_lock () from /lib64/libpthread.so.0\n#2  0x00400927 in put (q=0x10) at q.c:15\n\n", i+1, i, 9000+i)
	}
	parts, unknown := attach.Cut("x", paste.Lines([]byte(b.String())), kinds.All())
	if len(parts) != 1 || parts[0].First() != 1 || len(unknown) > 0 {
		t.Fatalf("got %d parts and %d ranges that are not known, want one part from line 1 on", len(parts), len(unknown))
	}
	if got := parts[0].Kind.Read(parts[0]).Title; got != "gdb backtrace, 3 threads" {
		t.Errorf("got %q", got)
	}
}
