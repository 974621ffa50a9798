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
	// A service that gets little CPU, which is why somebody looks at it, takes seconds for a page.
	// Several listeners that do not speak HTTP are not worth as much each.
	patience := time.Now().Add(5 * time.Second)
	for _, a := range at {
		if servesIndex(ctx, a, dial, max(time.Second, time.Until(patience))) {
			return profiles{url: "http://" + a.String(), dial: dial}
		}
	}
	var asked []string
	for _, a := range at {
		asked = append(asked, a.String())
	}
	return profiles{why: fmt.Sprintf("no answer to GET %s/ on %s: if it is served elsewhere or with credentials, give the address with --pprof", profPath, strings.Join(asked, ", "))}
}

// servesIndex reports whether the page of profiles is there and comes in time.
func servesIndex(ctx context.Context, at netip.AddrPort,
	dial func(context.Context, string, string) (net.Conn, error), within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
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
