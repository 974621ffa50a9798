package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// Refusal is why a question has no answer. Its text is one line: what, and what to do.
type Refusal struct {
	Kind RefusalKind
	Text string `prose:"yes"`
}

func (r *Refusal) Error() string { return r.Text }

// RefusalKind says whether other questions will fare the same.
type RefusalKind string

// Kinds of refusals.
const (
	Unreachable RefusalKind = "unreachable" // nobody will be answered: wrong address, credentials, certificate
	TooMuch     RefusalKind = "too much"    // this question asks for too much
	Slow        RefusalKind = "slow"        // it took too long, or the engine is busy
	BadQuestion RefusalKind = "question"    // the engine does not understand it
)

// explain turns what went wrong into one line. No credentials are in it: addresses are shown
// without them.
func (w *wire) explain(err error, seen *wireCost, query string) error {
	if err == nil {
		return nil
	}
	at := w.shown()
	say := func(k RefusalKind, format string, args ...any) error {
		return &Refusal{k, "ask " + at + ": " + fmt.Sprintf(format, args...)}
	}
	var api *v1.Error
	errors.As(err, &api)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, errTooLarge):
		return say(TooMuch, "%v: ask for less with --match or --top", errTooLarge)
	case errors.Is(err, errRedirect):
		return say(Unreachable,
			"it redirects to %s, which is not followed: give the engine's own address", shownTarget(seen.redirect))
	case errors.Is(err, errNotJSON):
		return say(Unreachable, "%s", notJSON(seen))
	}
	if e := w.network(err, seen, say); e != nil {
		return e
	}
	if seen.status != 0 && seen.status/100 != 2 {
		return w.status(err, api, seen, say)
	}
	if api != nil && (api.Type == v1.ErrTimeout || api.Type == v1.ErrCanceled) {
		return say(Slow, "the engine gave up: %.200s; allow more with --timeout", api.Msg)
	}
	return say(BadQuestion, "%.300s", oneLine(err.Error()))
}

type sayFunc func(RefusalKind, string, ...any) error

func (w *wire) network(err error, seen *wireCost, say sayFunc) error {
	var (
		dns      *net.DNSError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		record   tls.RecordHeaderError
		timeout  net.Error
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return say(Slow, "no whole answer within %v: allow more with --timeout, or ask for less with --since or --match", w.o.Timeout)
	case errors.As(err, &dns):
		return say(Unreachable, "there is no host %s: check the address", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED) && w.answered():
		return say(Unreachable, "nothing listens there any more: the engine has ended")
	case errors.Is(err, syscall.ECONNREFUSED):
		return say(Unreachable, "nothing listens there: check host and port")
	case errors.As(err, &unknown), errors.As(err, &invalid):
		return say(Unreachable, "its certificate is not trusted: give its authority with --ca FILE")
	case errors.As(err, &hostname):
		return say(Unreachable, "its certificate is for another name: use a name that it is for")
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return say(Unreachable, "it does not speak TLS: use http://")
	case (errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), "EOF")) &&
		w.base.Scheme == "http" && seen.status == 0 && !w.answered():
		return say(Unreachable,
			"the connection broke before any answer: if it speaks TLS, use https://; else the engine may have ended")
	case errors.Is(err, syscall.ECONNRESET), strings.Contains(err.Error(), "EOF"):
		return say(Slow, "the connection broke before the answer was whole: the engine may have ended")
	}
	return nil
}

// status explains an HTTP status.
func (w *wire) status(err error, api *v1.Error, seen *wireCost, say sayFunc) error {
	said := ""
	// Else it is no answer of the API, and only its status is known.
	if api != nil && seen.head == "" && api.Type != v1.ErrClient && api.Type != v1.ErrServer {
		said = oneLine(api.Msg)
		if api.Detail != "" {
			said += ": " + oneLine(api.Detail)
		}
		said = fmt.Sprintf(" (%.200s)", strings.TrimSuffix(said, ": "))
	}
	switch low := strings.ToLower(seen.head); seen.status {
	case http.StatusUnauthorized:
		if strings.Contains(low+strings.ToLower(said), "org id") || strings.Contains(low, "tenant") {
			return say(Unreachable, "401: it wants a tenant: --tenant NAME")
		}
		return say(Unreachable, "401: it wants credentials: --bearer-file, or --user with --password-file, or --header")
	case http.StatusForbidden:
		return say(Unreachable, "403: these credentials may not ask%s", said)
	case http.StatusNotFound:
		return say(Unreachable,
			"404: no query API there: the address may lack a prefix, such as /prometheus (Mimir), /select/0/prometheus (VictoriaMetrics) or /api/datasources/proxy/uid/UID (Grafana)")
	case http.StatusTooManyRequests:
		return say(Slow, "429: it answers no more questions now: try again later%s", said)
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		if strings.Contains(low, "https server") || strings.Contains(low, "https port") {
			return say(Unreachable, "it speaks TLS: use https://")
		}
		return say(TooMuch, "%d: it does not answer this question%s", seen.status, said)
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return say(Slow, "%d: what stands in front of the engine gets no answer from it%s", seen.status, said)
	}
	if seen.status/100 == 5 {
		return say(Unreachable, "%d: it failed%s: its own log says why", seen.status, said)
	}
	return say(Unreachable, "HTTP status %d%s", seen.status, said)
}

// notJSON says what an answer is that is none of the API.
func notJSON(seen *wireCost) string {
	if low := strings.ToLower(seen.head); strings.HasPrefix(low, "<") || strings.Contains(seen.kind, "html") {
		return "it answers with a web page, perhaps to log in: give the address of the engine's API, or a Grafana data source's proxy (/api/datasources/proxy/uid/UID) with --bearer-file"
	}
	if seen.head == "" {
		return "it answers with nothing: this is no query API"
	}
	return "what it answers is no JSON of a query API"
}

// shownTarget is an address without credentials and arguments.
func shownTarget(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "another page"
	}
	return u.Scheme + "://" + u.Host
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// hopeless reports whether no other question will be answered either.
func hopeless(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Kind == Unreachable || errors.Is(err, context.Canceled)
}

// tooMuch reports whether a question asked for more than the engine gives at a time.
func tooMuch(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Kind == TooMuch
}
