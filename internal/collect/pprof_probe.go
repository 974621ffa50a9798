package collect

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

// profiles is where a process serves its profiles, as found by asking.
type profiles struct {
	url  string // "" where none was found
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	why  string // if none was found: why, and what would help
}

// probeProfiles looks for the pprof pages of a process: only if its program contains
// net/http/pprof, only on its own listeners, only on loopback. It asks for nothing but the index.
func probeProfiles(ctx context.Context, t *evidence.Target) profiles {
	switch {
	case t.Runtime != "go":
		return profiles{why: "it is not a Go program, and only those serve an execution trace"}
	case !servesProfiles(filepath.Join(procDir(t.PID), "exe")):
		return profiles{why: "its program does not contain net/http/pprof: import it in the service to see the runtime's side"}
	}
	ls, err := ownListeners(t.PID)
	if err != nil {
		return profiles{why: fmt.Sprintf("find its listeners: %v; give the address with --pprof", root(err))}
	}
	at := loopback(ls)
	if len(at) == 0 {
		why := "it listens on no TCP port of the loopback interface"
		if len(ls) > 0 {
			why = fmt.Sprintf("it listens only on %s, which whystall does not ask unless told to", ls[0].addr)
		}
		return profiles{why: why + ": give the address with --pprof"}
	}
	dial, err := dialIn(t.PID)
	if err != nil {
		return profiles{why: fmt.Sprintf("it is in another network namespace, which may not be entered (%v): run whystall as root or in that namespace, or give the address with --pprof", root(err))}
	}
	if a, ok := firstIndex(ctx, at, dial); ok {
		return profiles{url: "http://" + a.String(), dial: dial}
	}
	var asked []string
	for _, a := range at {
		asked = append(asked, a.String())
	}
	return profiles{why: fmt.Sprintf("no such page at %s/ of %s within %s: if it is served elsewhere or with credentials, give the address with --pprof", profPath, strings.Join(asked, ", "), pagePatience)}
}

// pagePatience is how long the page of profiles may take. A service that gets little CPU, which is
// why somebody looks at it, takes seconds: one that stood still for three quarters of the time took
// more than five for one page of eleven.
const pagePatience = 15 * time.Second

// firstIndex asks all of the listeners at once, and returns the one that gives the page first.
func firstIndex(ctx context.Context, at []netip.AddrPort,
	dial func(context.Context, string, string) (net.Conn, error)) (_ netip.AddrPort, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	served := make([]bool, len(at))
	answers := make(chan int, len(at))
	for i, a := range at {
		go func() {
			served[i] = servesIndex(ctx, a, dial)
			answers <- i
		}()
	}
	for range at {
		if i := <-answers; served[i] {
			return at[i], true
		}
	}
	return netip.AddrPort{}, false
}

// servesIndex reports whether the page of profiles is there and comes before ctx ends.
func servesIndex(ctx context.Context, at netip.AddrPort,
	dial func(context.Context, string, string) (net.Conn, error)) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+profPath+"/", nil)
	if err != nil {
		return false
	}
	// By this name the ledger leaves our own requests out.
	r.Header.Set("User-Agent", "whystall")
	client := &http.Client{
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	// The index has this link in all Go releases.
	return (err == nil || len(b) > 0) && bytes.Contains(b, []byte("goroutine?debug="))
}
