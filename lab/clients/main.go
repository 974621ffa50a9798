// Clients is what surrounds the services of the cases: clients which send HTTP requests to a
// service, and neighbours which want its CPUs.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/whystall/whystall/lab/witness"
)

func main() {
	if err := role(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func role(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("want a role: clients or neighbours")
	}
	fs := flag.NewFlagSet(args[0], flag.ExitOnError)
	url := fs.String("url", "", "clients: the service's URL")
	n := fs.Int("n", 50, "how many")
	think := fs.Duration("think", time.Second, "clients: the pause between an answer and the next request")
	rate := fs.Float64("rate", 0,
		"clients: requests that start each second, whatever happens to others, at most -n at once; 0: as answers come")
	slow := fs.Int("slow-readers", 0, "clients: how many of them read an answer at 512 KiB/s")
	fs.Parse(args[1:])
	if few := witness.Few(); args[0] == "clients" && few > 0 {
		*n, *rate = min(*n, few), min(*rate, float64(few))
	}
	switch args[0] {
	case "clients":
		return witness.HTTP("requests", witness.Load{URL: *url, Clients: *n, Think: *think,
			Rate: *rate, SlowReaders: *slow, ReadRate: 512 << 10})
	case "neighbours":
		for range *n {
			go func() {
				sum := sha256.Sum256(nil)
				for {
					sum = sha256.Sum256(sum[:])
				}
			}()
		}
		witness.Ready(os.Stdout)
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	return fmt.Errorf("no role %q", args[0])
}
