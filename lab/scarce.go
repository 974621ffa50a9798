package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/lab/settings"
)

// Huge pages which are reserved and never used make a machine short of memory at once. A
// reservation takes whole blocks from the free memory and the page cache, and writes nothing into
// them. A process which held as much would have to touch every page: for a minute, where a
// hypervisor gives memory when it is touched. Databases are set up so, some of them too generously.

const (
	reservation = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
	hugePage    = 2 << 20
)

// scarce leaves the machine with so many bytes of available memory. A watch gives the memory back
// early when others need it, that is, when less than leastFree is available. unwatch ends the
// watch, and gives a skip where that happened.
func scarce(j *settings.Journal, leave int64) (unwatch func() error, err error) {
	free, err := available()
	if err != nil {
		return nil, err
	}
	if leave < leastFree || free < leave {
		return nil, skip(fmt.Sprintf("it leaves %d MiB of memory, and 3 GiB must stay free; %d MiB are free now", leave>>20, free>>20))
	}
	b, err := os.ReadFile(reservation)
	if err != nil {
		return nil, skip("it makes memory scarce by huge pages of 2 MiB, which this kernel does not have: " + err.Error())
	}
	reserved, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", reservation, err)
	}
	if err := j.Set(reservation, strconv.FormatInt(reserved+(free-leave)/hugePage, 10)); err != nil {
		return nil, err
	}
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				ended <- nil
				return
			case <-tick.C:
			}
			if free, err := available(); err != nil || free < leastFree {
				os.WriteFile(reservation, []byte(strconv.FormatInt(reserved, 10)), 0) // the journal does so again
				ended <- skip(fmt.Sprintf("others needed memory: %d MiB were left, so the reserved memory was given back", free>>20))
				return
			}
		}
	}()
	return func() error { close(stop); return <-ended }, nil
}
