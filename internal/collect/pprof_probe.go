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

// profiles is where a process serves its profiles, found by asking.
type profiles struct {
	url  string // "" where none was found
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	why  string // none was found: why, and what would help
}

// probeProfiles looks for the pprof pages of a process: only where its program has net/http/pprof in it, only on its own
// listeners, only on loopback, and it asks for nothing but the index.
func probeProfiles(ctx context.Context, t *evidence.Target) profiles {
	switch {
	case t.Runtime != "go":
		return profiles{why: "it is no Go program, and only those serve an execution trace"}
	case !servesProfiles(filepath.Join(procDir(t.PID), "exe")):
		return profiles{why: "its program has no net/http/pprof in it: import it in the service for the runtime's side"}
	}
	ls, err := ownListeners(t.PID)
	if err != nil {
		return profiles{why: fmt.Sprintf("its listeners: %v; name the address with --pprof", root(err))}
	}
	at := loopback(ls)
	if len(at) == 0 {
		why := "it listens on no TCP port of loopback"
		if len(ls) > 0 {
			why = fmt.Sprintf("it listens only on %s, which is not asked unbidden", ls[0].addr)
		}
		return profiles{why: why + ": name the address with --pprof"}
	}
	dial, err := dialIn(t.PID)
	if err != nil {
		return profiles{why: fmt.Sprintf("it is in another network namespace, and that may not be entered (%v): run whystall as root, or in that namespace, or give --pprof", root(err))}
	}
	// A service that gets little CPU, which is why somebody asks, takes seconds for a page; listeners that do not speak HTTP are not worth as
	// much each.
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
	return profiles{why: fmt.Sprintf("no answer to GET %s/ on %s: if it is served elsewhere or with credentials, name it with --pprof", profPath, strings.Join(asked, ", "))}
}

// servesIndex tells whether the page of profiles is there, and comes in time.
func servesIndex(ctx context.Context, at netip.AddrPort, dial func(context.Context, string, string) (net.Conn, error), within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+profPath+"/", nil)
	if err != nil {
		return false
	}
	// The ledger leaves our own requests out by this name.
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
	// The index has this link in all releases.
	return (err == nil || len(b) > 0) && bytes.Contains(b, []byte("goroutine?debug="))
}
