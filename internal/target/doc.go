// Package target finds the process that a person means: by its pid, program, port, systemd unit or
// container. It refuses to guess: where several processes fit it lists them.
//
// In reading order:
//
//	parse.go      what the argument is
//	find.go       which process that is, or which fit
//	list.go       the processes, from /proc
//	port.go       who listens on a port, in whichever network namespace
//	container.go  asks docker, podman or crictl which container has a name
package target
