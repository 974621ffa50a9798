module github.com/whystall/whystall

go 1.26.0

require github.com/alecthomas/kong v1.17.0

require (
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
	github.com/klauspost/compress v1.20.3
	golang.org/x/exp v0.0.0-20260908205506-85c1c2202aba
)

require github.com/cilium/ebpf v0.22.0

require (
	github.com/ianlancetaylor/demangle v0.0.0-20260724033716-83e58baca724
	github.com/rogpeppe/go-internal v1.16.0
	golang.org/x/sys v0.48.0
	golang.org/x/tools v0.50.0 // indirect
)

tool github.com/cilium/ebpf/cmd/bpf2go
