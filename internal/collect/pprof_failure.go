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

// failure is why a fetch brought nothing, or not all.
type failure struct {
	kind failureKind
	text string // what, and what to do next
}

type failureKind uint8

const (
	noAnswer failureKind = iota + 1 // nobody there that speaks HTTP: every other fetch would fail likewise
	absent                          // the service does not have it
	refused                         // it has it, and did not give it
	busy                            // somebody else is taking one
	cut                             // it ended before its end: what came is kept
	drips                           // so slowly that it was ended: the next one would be as slow
	full                            // our own disk
	stopped                         // by the user
)

func failf(kind failureKind, format string, args ...any) *failure {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

var (
	errQuiet    = errors.New("quiet")
	errEndless  = errors.New("endless")
	errRedirect = errors.New("redirect")
)

// elsewhere is a redirect to another origin, which is not followed: headers would go along.
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
		return failf(noAnswer, "it took the connection and did not answer for %s: it may be stopped or overloaded; try again", quiet)
	case ctx.Err() != nil:
		return failf(stopped, "stopped")
	case errors.As(err, &to):
		return failf(refused, "it redirects to %s: name that address if it is the right one", to.to)
	case errors.Is(err, errRedirect):
		return failf(refused, "it redirects without end")
	case errors.As(err, &dns):
		return failf(noAnswer, "%s: %s; check the host's name", dns.Name, lookup(dns))
	case errors.Is(err, syscall.ECONNREFUSED):
		return failf(noAnswer, "connection refused: nothing listens there; check host and port")
	case errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return failf(noAnswer, "it does not speak TLS there: use http://")
	case errors.As(err, &cert), errors.As(err, &host):
		return failf(noAnswer, "%v; name the host its certificate is for, or set SSL_CERT_FILE to its authority's", root(err))
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return failf(noAnswer, "no answer to connecting: check the address and what filters the way there")
	case errors.As(err, &op) && op.Op == "dial":
		return failf(noAnswer, "connect: %v; check the address", root(err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failf(noAnswer, "it closed the connection without an answer: it may not speak HTTP there, or have ended")
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "readLoopPeekFail"), // it spoke first
		strings.Contains(err.Error(), "unsupported protocol scheme"):
		return failf(noAnswer, "it does not speak HTTP there: name the port that serves %s", profPath)
	}
	return failf(noAnswer, "%v", root(err))
}

func lookup(e *net.DNSError) string {
	if e.IsNotFound {
		return "no such host"
	}
	return "looking it up: " + e.Err
}

// root is the innermost error: what wraps it names the whole URL, credentials with it.
func root(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// badStatus explains an answer other than 200. body is its first bytes.
func badStatus(code int, body []byte, path string, hint string, asked time.Duration) *failure {
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
		return failf(refused, "the service's WriteTimeout is shorter than %s: use a shorter --for", asked)
	case code >= 500 && strings.Contains(text, "already"):
		return failf(busy, "somebody else is taking a trace or profile there at the moment: try again when theirs has ended")
	}
	said := firstLine(body)
	if said != "" {
		said = ": " + said
	}
	return failf(refused, "%s answered %d %s%s", path, code, http.StatusText(code), said)
}

// firstLine is what a plain-text error says, cut to a line; the console makes it safe to print.
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
	case errors.Is(context.Cause(ctx), errEndless):
		return failf(drips, "the service did not come to an end in time")
	case ctx.Err() != nil:
		return failf(stopped, "stopped")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return failf(cut, "the service closed the connection before the end")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failf(cut, "the service went away (connection reset)")
	}
	return failf(cut, "%v", root(err))
}
