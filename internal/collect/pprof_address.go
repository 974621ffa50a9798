package collect

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
)

const profPath = "/debug/pprof"

// address is where a service serves its profiles. It holds credentials, so only shown prints it.
type address struct {
	origin url.URL // scheme, user, host, and the query that the user gave
	root   string  // path before /debug/pprof: "" or "/x"
	prof   string  // path of the profiles
}

// parseAddress takes what people paste: host:port, a service's root, its /debug/pprof/, or the URL
// of one profile.
func parseAddress(s string) (address, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return address{}, errors.New("address: empty; want http://host:port")
	}
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		// An error of package url quotes the whole address, including a password.
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return address{}, fmt.Errorf("address: %w; want http://host:port", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return address{}, fmt.Errorf("address: scheme %q: want http or https", u.Scheme)
	}
	if u.Host == "" || u.Opaque != "" {
		return address{}, errors.New("address: no host; want http://host:port")
	}
	if u.Hostname() == "" { // ":6060", as a service may have it in its own settings
		u.Host = "localhost" + u.Host
	}
	a := address{origin: url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}}
	p := strings.TrimRight(path.Clean("/"+u.Path), "/")
	switch i := strings.LastIndex(p+"/", profPath+"/"); {
	case i >= 0:
		a.root, a.prof = p[:i], p[:i]+profPath
	case path.Base(p) == "pprof":
		a.root, a.prof = strings.TrimSuffix(p, "/pprof"), p
	default:
		a.root, a.prof = p, p+profPath
	}
	// A proxy may want a token in the query. The parameters of one profile's URL are not for the
	// others.
	q := u.Query()
	for _, param := range []string{"seconds", "debug", "gc"} {
		q.Del(param)
	}
	a.origin.RawQuery = q.Encode()
	return a, nil
}

// url returns the URL of a fetch, with credentials.
func (a address) url(f Fetch, query string) string {
	u := a.origin
	u.Path = a.path(f)
	if u.RawQuery != "" && query != "" {
		query = u.RawQuery + "&" + query
	}
	if query != "" {
		u.RawQuery = query
	}
	return u.String()
}

func (a address) path(f Fetch) string {
	if f.Root {
		return a.root + "/" + f.Path
	}
	return a.prof + "/" + f.Path
}

// shown is the address without user, password and query: for people and for the manifest.
func (a address) shown() string {
	u := url.URL{Scheme: a.origin.Scheme, Host: a.origin.Host, Path: a.prof + "/"}
	return u.String()
}

// parseHeaders takes "Key: value" as curl does. Its errors do not quote a value: it is mostly a
// secret.
func parseHeaders(lines []string) (http.Header, error) {
	h := http.Header{}
	for i, line := range lines {
		key, value, ok := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || !isToken(key) {
			return nil, fmt.Errorf("header %d: want 'Key: value'", i+1)
		}
		for _, c := range []byte(value) {
			if c < ' ' && c != '\t' || c == 0x7f {
				return nil, fmt.Errorf("header %d: %s has a control character in its value", i+1, key)
			}
		}
		h.Add(key, value)
	}
	return h, nil
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// Shown is an address without user, password and query, for a command that somebody may paste.
func Shown(s string) string {
	a, err := parseAddress(s)
	if err != nil {
		return ""
	}
	return a.shown()
}
