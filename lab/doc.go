// Lab makes services ill in known ways, for whystall to find out. It starts a server and, outside
// it, the server's clients, prints what the clients see, and has whystall diagnose the server like
// any other process.
//
//	go run -C lab . list
//	go run -C lab . run sched-latency
//	go run -C lab . verify
//
// It refuses to give whystall what it knows: nothing in the main module imports the lab, and no
// detector reads a witness. Whatever it changes on the machine it puts back, also when it is
// killed.
//
// The files, in reading order:
//
//	main.go           the commands, and what they share
//	cases.go          case.json: a case, its variants and their processes
//	build.go          builds whystall and the programs of the cases
//	stage.go          a variant on stage: its settings and processes, from start to end
//	proc.go           one process: started, asked for figures, stopped
//	scarce.go         makes the machine short of memory
//	usage.go          CPU time, memory and switches, as the kernel counts them
//	temp.go           folders which do not outlive the lab for long
//	run.go            lab run: the symptom, the diagnosis, the remedy
//	compare.go        its table of before and after
//	fleet.go          lab run fleet: a Prometheus and its exporters, and what whystall says of them
//	fleet_exporter.go cgroups' counters with cAdvisor's names
//	fleet_engine.go   lab fleet: engines built from their modules, held to Prometheus
//	experiment.go     lab experiment: published measurements, repeated
//	judge.go          one run of a variant, and the verdict on what whystall says
//	verify.go         lab verify: all variants, several times
//	amount.go         explained amounts, compared with the witness
//	accuracy.go       verify's table
//	record.go         lab record-cases: recordings for the tests
//	qemu.go           lab qemu: a command in a virtual machine
//	qemu_take.go      the emulator and the kernel which it needs, and what comes out of it
//
// settings/ changes the machine and puts it back; witness/ is what clients know; clients/ are the
// clients which cases share. Every other folder is a case.
package main
