package bpf

//go:generate go tool bpf2go -go-package bpf -tags linux -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 whystall c/whystall.bpf.c -- -O2 -mcpu=v3 -Wall -Wno-unused-variable -Wno-unused-function
