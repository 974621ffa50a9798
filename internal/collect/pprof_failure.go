package collect

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// failure is why a fetch brought nothing, or not all. Decisions go by its kind; the text is for
// people.
type failure struct {
	kind failureKind
	text string // what happened, and what to do next
}

type failureKind uint8

const (
	noAnswer failureKind = iota + 1 // nothing there speaks HTTP: other fetches would fail, too
	absent                          // the service does not have it
	refused                         // the service has it, but did not give it
	busy                            // another client is taking one
	cut                             // the body ended early: what came is kept
	drips                           // the body came too slowly: the next would as well
	full                            // our own disk is full
	stopped                         // by the user, or as the process ended
	spared                          // by us, as it did the service harm
)

func failf(kind failureKind, format string, args ...any) *failure {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

var (
	errQuiet    = errors.New("quiet")
	errEndless  = errors.New("endless")
	errRedirect = errors.New("redirect")
	errSpared   = errors.New("spared")
)

// elsewhere is a redirect to another origin. It is not followed, as headers would go along.
type elsewhere struct{ to string }

func (e elsewhere) Error() string { return e.to }

// noResponse explains an error of http.Client.Do.
func noResponse(ctx context.Context, err error, quiet time.Duration) *failure {
	var (
		dns   *net.DNSError
		op    *net.OpError
		alert tls.RecordHeaderError
		cert  *tls.CertificateVerificationError
		host  x509.HostnameError
		to    elsewhere
	)
	switch {
	case errors.Is(context.Cause(ctx), errQuiet):
		return failf(noAnswer,
			"it accepted the connection but did not answer for %s: it may be stopped or overloaded; try again", quiet)
	case errors.Is(context.Cause(ctx), errSpared):
		return failf(spared, "ended early to spare the service")
	case ctx.Err() != nil:
		return failf(stopped, "stopped")
	case errors.As(err, &to):
		return failf(refused, "it redirects to %s: give that address if it is the right one", to.to)
	case errors.Is(err, errRedirect):
		return failf(refused, "it redirects endlessly")
	case errors.As(err, &dns):
		return failf(noAnswer, "%s: %s; check the host's name", dns.Name, lookup(dns))
	case errors.Is(err, syscall.ECONNREFUSED):
		return failf(noAnswer, "connection refused: nothing listens there; check host and port")
	case errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return failf(noAnswer, "it does not speak TLS there: use http://")
	case errors.As(err, &cert), errors.As(err, &host):
		return failf(noAnswer,
			"%v; use the host name that its certificate is for, or set SSL_CERT_FILE to the certificate of its authority", root(err))
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return failf(noAnswer, "no answer to the connection attempt: check the address, and firewalls on the way")
	case errors.As(err, &op) && op.Op == "dial":
		return failf(noAnswer, "connect: %v; check the address", root(err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failf(noAnswer,
			"it closed the connection without an answer: it may have ended, or may not speak HTTP there")
	case notHTTP(err):
		return failf(noAnswer, "it does not speak HTTP there: give the port that serves %s", profPath)
	}
	return failf(noAnswer, "%v", root(err))
}

// notHTTP reports whether an error of package net/http means that the other side does not speak
// HTTP. The package has no error values for that, only these texts, which its API has kept for
// years. If one changes the user gets its text as it is.
func notHTTP(err error) bool {
	for _, text := range []string{
		"malformed HTTP",
		"readLoopPeekFail", // the other side spoke first
		"unsupported protocol scheme",
	} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func lookup(e *net.DNSError) string {
	if e.IsNotFound {
		return "no such host"
	}
	return "looking it up failed: " + e.Err
}

// root is the innermost error: what wraps it names the whole URL, including credentials.
func root(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// badStatus explains an answer other than 200; body has its first bytes, and the recording was to
// last as long as lasting. The texts that it looks for are other programs': Go's net/http and
// net/http/pprof say so in all releases.
func badStatus(code int, body []byte, path, hint string, lasting time.Duration) *failure {
	text := strings.ToLower(string(body))
	switch {
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed || code == http.StatusNotImplemented:
		if hint != "" {
			hint = ": " + hint
		}
		return failf(absent, "the service has no %s (%d)%s", path, code, hint)
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusProxyAuthRequired:
		return failf(refused, "%s asks for credentials (%d): give them with --header 'Authorization: ...'", path, code)
	case code == http.StatusBadRequest && strings.Contains(text, "https server"):
		return failf(noAnswer, "it speaks TLS there: use https://")
	case code == http.StatusBadRequest && strings.Contains(text, "writetimeout"):
		return failf(refused, "the service's WriteTimeout is shorter than %s: use a shorter --for", lasting)
	case code >= 500 && strings.Contains(text, "already"):
		return failf(busy, "another client is taking a trace or profile at the moment: try again when it has ended")
	}
	said := firstLine(body)
	if said != "" {
		said = ": " + said
	}
	return failf(refused, "%s answered %d %s%s", path, code, http.StatusText(code), said)
}

// firstLine is the first line of a plain-text error, cut short; the console makes it safe to print.
func firstLine(body []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(body), []byte("\n"))
	if bytes.HasPrefix(line, []byte("<")) {
		return ""
	}
	if len(line) > 160 {
		line = line[:160]
	}
	return strings.ToValidUTF8(string(line), "?")
}

// broken explains an error in the middle of a body.
func broken(ctx context.Context, err error, quiet time.Duration) *failure {
	switch {
	case errors.Is(context.Cause(ctx), errQuiet):
		return failf(cut, "the service sent nothing for %s", quiet)
	case errors.Is(context.Cause(ctx), errSpared):
		return failf(spared, "ended early to spare the service")
	case errors.Is(context.Cause(ctx), errEndless):
		return failf(drips, "the service's answer did not end in time")
	case ctx.Err() != nil:
		return failf(stopped, "stopped")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return failf(cut, "the service closed the connection before the end")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failf(cut, "the service went away (connection reset)")
	}
	return failf(cut, "%v", root(err))
}
