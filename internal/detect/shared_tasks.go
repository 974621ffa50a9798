package detect

import "strings"

// taskRuntimes run a program's tasks on a few threads, by how the names of their functions begin.
var taskRuntimes = []string{"tokio::", "async_std::", "async_executor::", "smol::", "glommio::", "monoio::", "actix_rt::", "boost::asio::", "asio::", "seastar::", "folly::"}

// tasksUnseen says, where threads of such a runtime do the work, that its tasks wait without a thread: what a task waits for no thread shows.
func (p *Pass) tasksUnseen() {
	if !p.Ledger.Native {
		return
	}
	for _, g := range p.Ledger.Requests.Groups {
		for _, name := range taskRuntimes {
			if strings.HasPrefix(strings.TrimLeft(g.Entry, "<&"), name) {
				p.Missing("what tasks of %s wait for while they have no thread, its own locks, channels and timers among it: requests here are what its threads did at a stretch, and may be shorter than what clients see", strings.TrimSuffix(name, "::"))
				return
			}
		}
	}
}
