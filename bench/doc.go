// Bench measures whystall beside its peers, or beside an earlier commit, in one run. Each program
// is a process of its own, and they alternate, so that a noisy machine is noisy for all. It prints
// CPU time (user and system), memory, and the ratios which the project promises.
//
//	go run -C bench .
//	go run -C bench . --against COMMIT
//	sudo go run -C bench . overhead
//	sudo go run -C bench . harm
//	go run -C bench . verdicts FOLDER
//	go run -C bench . fleet
//	go run -C bench . profile
//
// It refuses to judge times: only ratios of programs that were measured by turns are judged.
//
// The files, in reading order:
//
//	main.go                  the command line; the run beside peers
//	traces.go                makes the traces which are read, by tracegen/
//	child.go                 readers which are measured, each in a process of its own
//	measure.go               one run of a program: its CPU time and memory
//	compare.go               the table of whystall and its peers
//	against.go               --against: a commit beside the present tree
//	side.go                  builds both of them; git's worktree
//	same.go                  whether both report the same of every recording
//	difference.go            what differs between two reports in JSON
//	rows.go                  what is measured in pairs, and how a pair is taken
//	paired.go                the interval of the median ratio, and the verdict
//	overhead_linux.go        overhead: what recording costs a server
//	overhead_load_linux.go   and what it costs at many switches a second
//	overhead_child_linux.go  the server, its load and the switching threads
//	overhead_other.go        overhead elsewhere: refused
//	verdicts.go              verdicts: how often whystall compare is right
//	harm_linux.go            harm: what users of a service under stress feel while it is recorded
//	harm_targets_linux.go    the servers under stress, from harmtarget/
//	harm_cgroup_linux.go     their quotas and memory limits
//	harm_parts_linux.go      the parts of the recorder, and a window with one of them
//	harm_stand_linux.go      a target with its clients; a window; the search for the load
//	harm_rate.go             one step of that search
//	harm_clients_linux.go    the clients, a process of their own; the one that fetches a page
//	harm_pace.go             requests that are due at their time
//	harm_latency.go          what became of them, and what a window felt like
//	harm_rows.go             pairs, ratios, goals
//	harm_table.go            the table and its JSON
//	harm_other.go            harm elsewhere: refused
//	logscan.go               log: explain on a log of 1 GB beside grep -c
//	fleet.go                 fleet: what whystall fleet asks of an engine, and what that takes
//	fleet_made.go            the fleet and the engines
//	fleet_proxy.go           measures each question
//	profile.go               profile: makes the compiler's profile anew, by profiled/
package main
