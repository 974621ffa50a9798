package detect

import "strings"

// taskRuntimes are libraries that run a program's tasks on a few threads, by the start of their
// functions' names.
var taskRuntimes = []string{"tokio::", "async_std::", "async_executor::", "smol::", "glommio::",
	"monoio::", "actix_rt::", "boost::asio::", "asio::", "seastar::", "folly::"}

// tasksUnseen says, where the threads of such a runtime do the work, what is not seen: a task waits
// without a thread, so that no thread shows what it waits for.
func (p *Pass) tasksUnseen() {
	if !p.Ledger.Native {
		return
	}
	for _, g := range p.Ledger.Requests.Groups {
		for _, name := range taskRuntimes {
			if strings.HasPrefix(strings.TrimLeft(g.Entry, "<&"), name) {
				p.Missing("what tasks of %s wait for while they have no thread (its own locks, channels and timers among others): requests here are what its threads did without a pause, and may be shorter than what clients see", strings.TrimSuffix(name, "::"))
				return
			}
		}
	}
}
