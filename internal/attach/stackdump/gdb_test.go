package stackdump_test

import (
	"fmt"
	"slices"
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
	parts, unknown := attach.Cut("x", paste.Lines([]byte(b.String())), kinds.Table())
	if len(parts) != 1 || parts[0].First() != 1 || len(unknown) > 0 {
		t.Fatalf("got %d parts and %d ranges that are not known, want one part from line 1 on",
			len(parts), len(unknown))
	}
	if got := parts[0].Kind.Read(parts[0]).Title; got != "gdb backtrace, 3 threads" {
		t.Errorf("got %q", got)
	}
}

// A person looked at the threads of a process one by one: two stand before a mutex each, the first
// one's stack is there, of the other one only two frames. A frame printed again is no thread.
func TestSession(t *testing.T) {
	const text = `(gdb) thread 3
[Switching to thread 3 (Thread 0x7f3a5c9fe700 (LWP 7003))]#0  0x00007f3a5e0d4c4d in 
__lll_lock_wait () from /lib64/libpthread.so.0
(gdb) where
#0  0x00007f3a5e0d4c4d in __lll_lock_wait () from /lib64/libpthread.so.0
#1  0x00007f3a5e0cedcb in pthread_mutex_lock () from /lib64/libpthread.so.0
#2  0x0000000000400a9b in debit (n=4) at ledger.c:18
#3  0x0000000000400ad7 in worker (arg=0x0) at ledger.c:43
(gdb) f 2
#2  0x0000000000400a9b in debit (n=4) at ledger.c:18
18          pthread_mutex_lock(&b);
(gdb) thread 2
[Switching to thread 2 (Thread 0x7f3a5d1ff700 (LWP 7002))]#0  0x00007f3a5e0d4c4d in 
__lll_lock_wait () from /lib64/libpthread.so.0
(gdb) f 2
#2  0x0000000000400a17 in credit (n=4) at ledger.c:31
31          pthread_mutex_lock(&a);
`
	parts, unknown := attach.Cut("x", paste.Lines([]byte(text)), kinds.Table())
	a := attach.Explain(parts, nil)
	if len(a.Told) != 1 || len(unknown) > 0 {
		t.Fatalf("got %d parts and %d ranges that are not known, want one part", len(a.Told), len(unknown))
	}
	if got := a.Told[0].Title; got != "gdb backtrace, 2 threads" {
		t.Errorf("got %q", got)
	}
	if got := a.Told[0].Figures; !slices.Contains(got, "of 2 threads: 2 in lock waits") {
		t.Errorf("got %q", got)
	}
}
