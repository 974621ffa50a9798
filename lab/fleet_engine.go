package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// engine is an engine of a fleet that no distribution has: it is built from its module.
type engine struct {
	name, module, version, pkg, tags string

	start func(ctx context.Context, s *servers, binary, dir string) (filledEngine, error)
}

// filledEngine is where the tests of internal/fleet fill and ask an engine.
type filledEngine struct {
	Name   string `json:"name"`
	Query  string `json:"query"`
	Write  string `json:"write"`
	Tenant string `json:"tenant,omitempty"`
}

var engines = []*engine{
	{"prometheus3", "github.com/prometheus/prometheus", "v0.305.0", "./cmd/prometheus", "netgo", startPrometheus3},
	{"mimir", "github.com/grafana/mimir", "v1.3.1-0.20260423142704-aced80d74930", "./cmd/mimir",
		"netgo,stringlabels", startMimir},
	// Without slicelabels parts of it panic.
	{"thanos", "github.com/thanos-io/thanos", "v0.42.0", "./cmd/thanos", "netgo,slicelabels", startThanos},
}

// engineArgs holds one engine to Prometheus of the distribution.
func engineArgs(ctx context.Context, o options, args []string) int {
	fs := o.flags("fleet")
	name := fs.String("engine", "", "")
	binary := fs.String("binary", "", "")
	if fs.Parse(args) != nil || fs.NArg() > 0 {
		fmt.Fprint(o.stderr, usage)
		return exitUsage
	}
	i := slices.IndexFunc(engines, func(e *engine) bool { return e.name == *name })
	if i < 0 {
		var names []string
		for _, e := range engines {
			names = append(names, e.name)
		}
		fmt.Fprintf(o.stderr, "lab: --engine %q: want one of %s\n", *name, strings.Join(names, ", "))
		return exitUsage
	}
	return o.ended(ctx, "fleet", engines[i].compare(ctx, o, *binary))
}

// compare starts the engine, and has the tests of internal/fleet give it the samples that they give
// the others, and compare what each answers.
func (e *engine) compare(ctx context.Context, o options, binary string) (err error) {
	for _, t := range []string{"prometheus", "promtool", "victoria-metrics"} {
		if _, err := exec.LookPath(t); err != nil {
			return skip(t + " is not there: apt-get install prometheus victoria-metrics")
		}
	}
	if binary == "" {
		if binary, err = e.build(ctx, o.stdout); err != nil {
			return err
		}
	}
	dir, remove, err := tempDir()
	if err != nil {
		return err
	}
	defer remove()
	var s servers
	defer s.stop()
	filled, err := e.start(ctx, &s, binary, dir)
	if err != nil {
		return err
	}
	filled.Name = e.name
	text, err := json.Marshal(filled)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.stdout, "%s answers at %s\n", e.name, filled.Query)
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run",
		"^(TestEngines|TestEngineValues|TestDashboardExpressions)$", "./internal/fleet")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "WHYSTALL_ENGINE="+string(text),
		"WHYSTALL_REQUIRE=prometheus,promtool,victoria-metrics")
	cmd.Stdout, cmd.Stderr = o.stdout, o.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compare %s with prometheus: %w", e.name, err)
	}
	return nil
}

// build gives the engine's program, which is kept: building takes some minutes.
func (e *engine) build(ctx context.Context, progress io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	out := filepath.Join(cache, "whystall-lab", e.name+"-"+e.version)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	module, err := moduleDir(ctx, e.module+"@"+e.version)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", err
	}
	fmt.Fprintf(progress, "building %s %s: some minutes, once; to %s ...\n", e.module, e.version, out)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", e.tags, "-o", out, e.pkg)
	cmd.Dir = module
	// The engine's module chooses its toolchain, and a workspace of ours must not reach it.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	if text, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("build %s: %w\n%s", e.module, err, text)
	}
	return out, nil
}

func startPrometheus3(ctx context.Context, s *servers, binary, dir string) (e filledEngine, err error) {
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		return e, err
	}
	at, err := s.start(ctx, "/-/ready", binary, "--config.file="+config, "--storage.tsdb.path="+
		filepath.Join(dir, "tsdb"), "--web.enable-remote-write-receiver", "--web.listen-address=PORT")
	return filledEngine{Query: at, Write: at + "/api/v1/write"}, err
}

// startMimir starts all of Mimir in one process, with tenants: a question without one is refused.
func startMimir(ctx context.Context, s *servers, binary, dir string) (e filledEngine, err error) {
	grpc, err1 := freePort()
	gossip, err2 := freePort()
	if err := errors.Join(err1, err2); err != nil {
		return e, err
	}
	args := []string{"-target=all", "-log.level=warn", "-usage-stats.enabled=false", "-activity-tracker.filepath=",
		"-server.http-listen-address=127.0.0.1", "-server.http-listen-port=PORTNUMBER",
		"-server.grpc-listen-address=127.0.0.1", "-server.grpc-listen-port=" + number(grpc),
		"-memberlist.bind-addr=127.0.0.1", "-memberlist.bind-port=" + number(gossip),
		"-memberlist.advertise-addr=127.0.0.1",
		"-ingester.ring.replication-factor=1", "-ingester.ring.min-ready-duration=0s",
		"-store-gateway.sharding-ring.replication-factor=1",
		"-distributor.ingestion-rate-limit=1e7", "-distributor.ingestion-burst-size=10000000",
		"-blocks-storage.backend=filesystem", "-ruler-storage.backend=filesystem",
		"-alertmanager-storage.backend=filesystem",
	}
	for flag, folder := range map[string]string{
		"blocks-storage.filesystem.dir": "blocks", "blocks-storage.tsdb.dir": "tsdb",
		"blocks-storage.bucket-store.sync-dir": "sync", "compactor.data-dir": "compactor",
		"ruler-storage.filesystem.dir": "rules", "ruler.rule-path": "rulepath",
		"alertmanager-storage.filesystem.dir": "alerts", "alertmanager.storage.path": "alertpath",
	} {
		args = append(args, "-"+flag+"="+filepath.Join(dir, folder))
	}
	for _, ring := range []string{"ingester.ring", "distributor.ring",
		"store-gateway.sharding-ring", "compactor.ring", "ruler.ring", "querier.ring",
		"query-scheduler.ring", "query-frontend"} {
		args = append(args, "-"+ring+".instance-addr=127.0.0.1")
	}
	at, err := s.start(ctx, "/ready", binary, args...)
	return filledEngine{Query: at + "/prometheus", Write: at + "/api/v1/push", Tenant: "fleet"}, err
}

// startThanos starts what takes remote write, and a querier in front of it.
func startThanos(ctx context.Context, s *servers, binary, dir string) (e filledEngine, err error) {
	var ports [4]string
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return e, err
		}
	}
	stored, write, proto, asked := ports[0], ports[1], ports[2], ports[3]
	if _, err = s.start(ctx, "/-/ready", binary, "receive", "--tsdb.path="+
		filepath.Join(dir, "tsdb"), "--label=replica=\"a\"", "--grpc-address="+stored,
		"--remote-write.address="+write, "--receive.capnproto-address="+proto, "--http-address=PORT"); err != nil {
		return e, err
	}
	at, err := s.start(ctx, "/-/ready", binary, "query", "--endpoint="+stored,
		"--query.replica-label=replica", "--grpc-address="+asked, "--http-address=PORT")
	return filledEngine{Query: at, Write: "http://" + write + "/api/v1/receive"}, err
}

// number is the port of an address.
func number(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// servers are programs that listen on free ports of loopback.
type servers struct{ stops []func() }

func (s *servers) stop() {
	for _, stop := range slices.Backward(s.stops) {
		stop()
	}
	s.stops = nil
}

// start starts a program whose arguments have PORT, or PORTNUMBER, and waits until it has a page.
func (s *servers) start(ctx context.Context, ready, program string, args ...string) (url string, err error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	args = slices.Clone(args)
	for i, a := range args {
		args[i] = strings.NewReplacer("PORTNUMBER", number(port), "PORT", port).Replace(a)
	}
	var out tail
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", program, err)
	}
	s.stops = append(s.stops, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := answers(ctx, "http://"+port+ready); err != nil {
		return "", fmt.Errorf("start %s: %w: %s", program, err, &out)
	}
	return "http://" + port, nil
}
