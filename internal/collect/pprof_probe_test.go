package collect

import (
	"net"
	"net/http"
	"net/http/httptest"
	_ "net/http/pprof"
	"net/netip"
	"testing"
)

// A listener that says nothing does not keep the page of another from being found.
func TestFirstIndex(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	serves := httptest.NewServer(http.DefaultServeMux)
	defer serves.Close()
	var at []netip.AddrPort
	for _, a := range []net.Addr{silent.Addr(), other.Listener.Addr(), serves.Listener.Addr()} {
		at = append(at, netip.MustParseAddrPort(a.String()))
	}
	if a, ok := firstIndex(t.Context(), at, (&net.Dialer{}).DialContext); !ok || a != at[2] {
		t.Errorf("found %v, %v; want %v", a, ok, at[2])
	}
	if a, ok := firstIndex(t.Context(), at[1:2], (&net.Dialer{}).DialContext); ok {
		t.Errorf("found %v, which has no such page", a)
	}
}
