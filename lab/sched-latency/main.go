// Sched-latency is a gateway whose calls to a store go through one goroutine, which sends them in
// batches, beside a background job. Each role is a process of its own: store, gateway, job,
// clients.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/whystall/whystall/lab/witness"
)

func main() {
	if err := role(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sched-latency:", err)
		os.Exit(1)
	}
}

func role(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("want a role: store, gateway, job or clients")
	}
	fs := flag.NewFlagSet(args[0], flag.ExitOnError)
	storeAddr := fs.String("store", "", "the store's address")
	url := fs.String("url", "", "clients: the gateway's URL")
	n := fs.Int("n", 64, "clients: how many")
	procs := fs.Int("procs", 0, "gateway: GOMAXPROCS")
	goroutines := fs.Int("job", 0, "gateway, job: goroutines of the background job")
	spinners := fs.Int("spin", 0, "gateway: goroutines that poll, and yield in between")
	delay := fs.Duration("delay", 0, "store: how long one batch in 100 waits")
	fs.Parse(args[1:])

	switch args[0] {
	case "store":
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go serveStore(ln, *delay)
		witness.Ready(os.Stdout, "addr", ln.Addr().String())
	case "gateway":
		url, pprof, err := startGateway(*storeAddr, *procs)
		if err != nil {
			return err
		}
		startJob(*goroutines)
		startSpinners(*spinners)
		witness.Ready(os.Stdout, "url", url, "pprof", pprof)
	case "job":
		startJob(*goroutines)
		witness.Ready(os.Stdout)
	case "clients":
		if few := witness.Few(); few > 0 {
			*n = min(*n, few)
		}
		return clients(*url, *storeAddr, *n)
	default:
		return fmt.Errorf("no role %q", args[0])
	}
	_, err := io.Copy(io.Discard, os.Stdin) // until the lab ends
	return err
}

// dial connects to a process which is ready.
func dial(addr string) (net.Conn, error) { return net.DialTimeout("tcp", addr, 5*time.Second) }
