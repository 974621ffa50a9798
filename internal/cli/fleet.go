package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/whystall/whystall/internal/fleet"
	"github.com/whystall/whystall/internal/report"
)

var _ = register(&command{
	Name: "fleet", Help: "Say which hosts and containers of a fleet lose time to what, from Prometheus.", Order: 60,
	New: func() any { return &fleetCmd{} },
})

type fleetCmd struct {
	Ask       fleetAsk       `cmd:"" default:"withargs" help:"Ask an engine (the default)."`
	Rules     fleetRules     `cmd:"" help:"Write recording rules, alerts and their unit tests."`
	Dashboard fleetDashboard `cmd:"" help:"Write a dashboard for Grafana."`
}

type fleetAsk struct {
	Prom         string        `placeholder:"URL" help:"Prometheus, Mimir, Thanos, VictoriaMetrics, or a Grafana data source's proxy."`
	Since        time.Duration `default:"6h" placeholder:"DURATION" help:"How far to look back."`
	At           string        `placeholder:"TIME" help:"Until when: 2026-11-22T08:00:00Z, the same without a zone (UTC), or Unix seconds or milliseconds. Default: a minute ago."`
	ClusterLabel []string      `placeholder:"LABEL" help:"Labels that tell clusters apart. Default: what is found."`
	Match        []string      `sep:"none" placeholder:"LABEL=VALUE" help:"Only series with this label; also LABEL=~REGEX. Repeatable."`
	Top          int           `default:"20" placeholder:"N" help:"How many members of a cause are looked at closely."`
	All          bool          `help:"Write each finding's member as a line of JSON."`
	DryRun       bool          `help:"Print the questions and what they cost; ask for coverage only."`
	MaxSamples   int64         `default:"20000000" placeholder:"N" help:"The most that one question may make the engine read."`
	Timeout      time.Duration `default:"20s" placeholder:"DURATION" help:"Of one question."`
	Tenant       string        `placeholder:"NAME" help:"X-Scope-OrgID of Mimir, Cortex or Loki."`
	Header       []string      `sep:"none" placeholder:"NAME: VALUE" help:"A header for every question. Repeatable."`
	BearerFile   string        `placeholder:"FILE" help:"A file with a bearer token."`
	User         string        `placeholder:"NAME" help:"A user, with --password-file."`
	PasswordFile string        `placeholder:"FILE" help:"A file with the user's password."`
	CA           string        `name:"ca" placeholder:"FILE" help:"Certificates of authorities to trust, PEM."`
	Cert         string        `placeholder:"FILE" help:"A client's certificate, PEM, with --key."`
	Key          string        `placeholder:"FILE" help:"Its key."`
	Insecure     bool          `help:"Do not check the engine's certificate; the report says so."`
	Record       string        `placeholder:"DIR" help:"Keep the answers in DIR, without credentials."`
	Replay       string        `placeholder:"DIR" help:"Explain kept answers again; nothing is asked."`
	Output       string        `short:"o" placeholder:"FILE" help:"Write the report to FILE instead of standard output."`
	Format       string        `enum:"text,json,markdown" default:"text" placeholder:"FORMAT" help:"text, json or markdown."`
}

func (*fleetCmd) Help() string {
	return `Examples:
  whystall fleet --prom http://prometheus:9090
  whystall fleet --prom http://prometheus:9090 --since 24h --match 'namespace=shop'
  whystall fleet --prom https://mimir.example/prometheus --tenant a --bearer-file token
  whystall fleet --prom https://grafana.example/api/datasources/proxy/uid/UID --bearer-file token
  whystall fleet --prom http://prometheus:9090 --dry-run
  whystall fleet --prom http://prometheus:9090 --record answers; whystall fleet --replay answers

Nothing is stored and nothing is installed. It says first what cannot be seen, and with which flag
it could be. Metrics never prove: each finding ends with the command that records there.

Exit status: 0 nothing found, 1 a cause was found, 2 wrong usage, 3 could not look.`
}

func (c *fleetAsk) Run(con *console) error {
	o, ask, err := c.options()
	if err != nil {
		return err
	}
	e, err := fleet.NewEngine(o)
	if err != nil {
		return usagef("%v", err)
	}
	if con.getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(fleetMemory))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	r, err := fleet.Look(ctx, e, ask)
	switch {
	case errors.Is(err, context.Canceled):
		con.say("fleet: interrupted; what was answered until then follows")
	case err != nil:
		con.say("%v", err)
		if len(r.RuledOut)+len(r.Findings) == 0 {
			return exit(statusNoLook)
		}
		con.say("what was answered until then follows")
	}
	if c.All {
		if perr := con.printTo(c.Output,
			func(w io.Writer, _ report.TextOptions) error { return fleetLines(w, r) }); perr != nil {
			return perr
		}
	} else if perr := con.printTo(c.Output,
		func(w io.Writer, o report.TextOptions) error { return report.PrintFleet(w, r, c.Format, o) }); perr != nil {
		return perr
	}
	return exit(fleetStatus(r, err))
}

// fleetMemory is a soft limit of the heap: an answer of 4 MiB takes some of it, and the rest is
// small.
const fleetMemory = 48 << 20

func fleetStatus(r *fleet.Result, err error) int {
	for _, f := range r.Findings {
		if f.Unit != fleet.State {
			return statusFound
		}
	}
	switch {
	case len(r.DryRun) > 0 && err == nil:
		return statusNothing
	case err != nil, len(r.RuledOut) == 0, len(r.Engine.Warnings) > 0, r.Refused() > 0, len(r.Findings) > 0:
		return statusNoLook
	}
	return statusNothing
}

// fleetSettle is how old the newest samples have to be: engines hide those of the last seconds.
const fleetSettle = time.Minute

func (c *fleetAsk) options() (o fleet.Options, a fleet.Ask, err error) {
	if c.Prom == "" {
		if c.Replay == "" {
			return o, a, usagef("--prom: want the address of an engine, such as http://prometheus:9090")
		}
		c.Prom = "http://replayed"
	}
	a = fleet.Ask{Since: c.Since, ClusterLabels: c.ClusterLabel, Top: c.Top,
		MaxSamples: c.MaxSamples, DryRun: c.DryRun, At: time.Now().Add(-fleetSettle)}
	if c.At != "" {
		var ok bool
		if a.At, ok = timeOf(c.At); !ok {
			return o, a, usagef("--at %s: want a time such as 2026-11-22T08:00:00Z, or Unix seconds", c.At)
		}
		if a.At.After(time.Now()) {
			return o, a, usagef("--at %s: this is in the future", c.At)
		}
	}
	if c.Replay != "" {
		if a, err = fleet.Recorded(c.Replay); err != nil {
			return o, a, usagef("%v", err)
		}
		return fleet.Options{URL: c.Prom, Timeout: c.Timeout, Replay: c.Replay, Record: c.Record}, a, nil
	}
	switch {
	case c.Since < time.Minute || c.Since > 90*24*time.Hour:
		return o, a, usagef("--since %v: want between 1m and 2160h", c.Since)
	case c.Top < 1 || c.Top > 500:
		return o, a, usagef("--top %d: want between 1 and 500", c.Top)
	case c.Timeout < time.Second || c.Timeout > 10*time.Minute:
		return o, a, usagef("--timeout %v: want between 1s and 10m", c.Timeout)
	case c.MaxSamples < 1:
		return o, a, usagef("--max-samples %d: want more than zero", c.MaxSamples)
	}
	if a.Match, err = fleet.Matchers(c.Match); err != nil {
		return o, a, usagef("--match: %v", err)
	}
	if err := labelNames(c.ClusterLabel); err != nil {
		return o, a, err
	}
	o = fleet.Options{URL: c.Prom, User: c.User, Tenant: c.Tenant, Timeout: c.Timeout,
		Record: c.Record, Replay: c.Replay, Insecure: c.Insecure, Headers: http.Header{}}
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return o, a, usagef("--header: want NAME: VALUE")
		}
		o.Headers.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if o.Bearer, err = secret("--bearer-file", c.BearerFile); err != nil {
		return o, a, err
	}
	if o.Password, err = secret("--password-file", c.PasswordFile); err != nil {
		return o, a, err
	}
	o.Transport, err = c.transport()
	return o, a, err
}

// timeOf reads a time as dashboards, logs and people write it; without a zone it is UTC.
func timeOf(s string) (time.Time, bool) {
	s = strings.TrimSuffix(strings.TrimSpace(s), " UTC")
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00",
		"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || n < 1e9 || n > 1e14: // since 2001
		return time.Time{}, false
	case n > 1e11:
		return time.UnixMilli(n).UTC(), true
	}
	return time.Unix(n, 0).UTC(), true
}

// secret reads a file that holds one secret.
func secret(flag, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", usagef("%s: %v", flag, err)
	}
	s := strings.TrimSpace(string(b))
	if s == "" || strings.ContainsAny(s, "\r\n") || len(s) > 64<<10 {
		return "", usagef("%s %s: want one line", flag, name)
	}
	return s, nil
}

func (c *fleetAsk) transport() (http.RoundTripper, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Insecure}
	if c.CA != "" {
		b, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, usagef("--ca: %v", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(b) {
			return nil, usagef("--ca %s: holds no certificate in PEM", c.CA)
		}
		t.TLSClientConfig.RootCAs = pool
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, usagef("--cert and --key go together")
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, usagef("--cert and --key: %v", err)
		}
		t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

func fleetLines(w io.Writer, r *fleet.Result) error {
	for _, f := range r.Findings {
		for _, m := range f.Members {
			if err := report.JSONLine(w, map[string]any{"cause": f.Cause, "rule": f.Rule,
				"because_of": f.BecauseOf, "confidence": f.Confidence, "unit": f.Unit,
				"name": m.Name, "labels": m.Labels, "value": m.Value, "since": f.Since}); err != nil {
				return fmt.Errorf("write findings: %w", err)
			}
		}
	}
	return nil
}
