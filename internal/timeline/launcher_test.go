package timeline

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/timeline/twin"
)

// A goroutine that a launcher began is named after what it does, once that is seen. It is named
// after the launcher until then, while it only waits for the launcher's own lock, and where no
// launchers were given.
func TestLaunchers(t *testing.T) {
	for _, tc := range []struct {
		launchers []string
		at, want  string
	}{
		{[]string{"main.spawn.func1"},
			"internal/poll.(*FD).Read<net.(*conn).Read<main.(*client).read<main.serve.func2<main.spawn.func1", "main.serve.func2"},
		{[]string{"sync.(*WaitGroup).Go.func1", "main.spawn.func1"},
			"time.Sleep<main.work<main.spawn.func1", "main.work"},
		{[]string{"main.spawn.func1"}, "sync.(*Mutex).Lock<main.spawn.func1", "main.spawn.func1"},
		{nil, "time.Sleep<main.work<main.spawn.func1", "main.spawn.func1"},
	} {
		src, err := twin.Parse(strings.NewReader("goroutine A main.main\n\t0 running on 0\n\t90 end\ngoroutine G main.spawn.func1\n\t1 created by A at main.main\n\t2 running on 1\n\t20 waiting select at " + tc.at + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		tl := New(src, Options{Launchers: tc.launchers})
		var got FuncID
		for b := range src.Blocks() {
			for i := range b {
				tl.Apply(&b[i])
				if g := tl.Slot(b[i].Slot); g != nil && b[i].Slot == 1 {
					got = tl.EntryOf(g.Ident)
				}
			}
		}
		if name := tl.Func(got); name != tc.want {
			t.Errorf("at %s with launchers %v: %q, want %q", tc.at, tc.launchers, name, tc.want)
		}
	}
}

// Go 1.17 to 1.20 begin a call with arguments in a wrapper that no stack shows. A stack that was
// cut does not show the entry function either.
func TestWrappers(t *testing.T) {
	deep := "time.Sleep" + strings.Repeat("<main.fib", wholeFrames) + "<runtime.goexit"
	for _, tc := range []struct{ version, at, want string }{
		{"19", "time.Sleep<main.serve<runtime.goexit", "main.serve"},
		{"19", deep, "main.wrapper"},
		{"26", "time.Sleep<main.serve<runtime.goexit", "main.wrapper"}, // there a stack shows it
	} {
		src := twin.Must("version " + tc.version +
			"\ngoroutine A main.main\n\t0 running on 0\n\t90 end\ngoroutine G main.wrapper\n\t1 created by A at main.main\n\t2 running on 1\n\t20 waiting sleep at " + tc.at + "\n\t30 runnable by P\n\t31 running\n\t40 end\n")
		tl := New(src, Options{})
		got := map[string]bool{}
		for b := range src.Blocks() {
			for i := range b {
				tl.Apply(&b[i])
			}
		}
		for _, o := range tl.RunningBy() {
			got[tl.Func(FuncID(o.Holder))] = true
		}
		if !got[tc.want] {
			t.Errorf("version %s at %.40s: ran %v, want %s among them", tc.version, tc.at, got, tc.want)
		}
	}
}
