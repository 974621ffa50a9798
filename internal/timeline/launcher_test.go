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
		{[]string{"main.spawn.func1"}, "internal/poll.(*FD).Read<net.(*conn).Read<main.(*client).read<main.serve.func2<main.spawn.func1", "main.serve.func2"},
		{[]string{"sync.(*WaitGroup).Go.func1", "main.spawn.func1"}, "time.Sleep<main.work<main.spawn.func1", "main.work"},
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
