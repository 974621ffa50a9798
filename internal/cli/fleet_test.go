package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFleetSecrets greps all that fleet prints and keeps, whatever the engine answers: each secret
// goes to the engine and nowhere else.
func TestFleetSecrets(t *testing.T) {
	const secret = "s3cr3t-t0ken"
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sent := 0
	answers := map[string]http.HandlerFunc{
		"quiet": func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(fmt.Sprint(r.Header), secret) {
				sent++
			}
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"node_forks_total"},"value":[1,"1"]}]}}`)
		},
		"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://other.example/", http.StatusFound)
		},
		"broken": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":`) },
	}
	for name, answer := range answers {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		url := strings.Replace(s.URL, "http://", "http://me:"+secret+"@", 1) + "/graph?token=" + secret + "#" + secret
		for _, args := range [][]string{
			{"--bearer-file", file}, {"--user", "me", "--password-file", file}, {"--header", "X-Key: " + secret},
			{"--format", "json"}, {"--format", "markdown"}, {"--dry-run"}, {"--all"},
			{"--record", filepath.Join(dir, name)}, {"--header", secret}, {"--at", "x"},
		} {
			var out, errs strings.Builder
			Main(append([]string{"fleet", "--prom", url, "--timeout", "5s"}, args...),
				strings.NewReader(""), &out, &errs, func(string) string { return "" })
			if strings.Contains(out.String()+errs.String(), secret) {
				t.Errorf("%s, %s: a secret in\n%s%s", name, args[0], out.String(), errs.String())
			}
		}
	}
	if sent == 0 {
		t.Error("no secret reached the engine")
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	if len(kept) == 0 {
		t.Error("nothing was recorded")
	}
	for _, f := range kept {
		if b, err := os.ReadFile(f); err != nil || strings.Contains(string(b), secret) {
			t.Errorf("%s: %v: a secret in %s", f, err, b)
		}
	}
}

// TestExplainDump answers samples in a file with commands.
func TestExplainDump(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dump.txt")
	if err := os.WriteFile(file,
		[]byte("# TYPE up gauge\nup{job=\"a\"} 1 1700000000\nup{job=\"a\"} 1 1700003600\n# EOF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	status := Main([]string{"explain", file}, strings.NewReader(""), &out, &errs, func(string) string { return "" })
	for _, want := range []string{"an OpenMetrics dump",
		"promtool tsdb create-blocks-from openmetrics", "--storage.tsdb.retention.time=100y",
		"--at 2023-11-14T23:13:20Z --since 1h0m0s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s%s", want, out.String(), errs.String())
		}
	}
	if status != statusNoLook {
		t.Errorf("exit status %d", status)
	}
}
