package cli

import (
	"bytes"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/detect"
	"github.com/whystall/whystall/internal/report"
)

// TestNoRequestSeen explains every recording as if it had no requests. The report begins with that,
// and speaks of no slow request, whatever the words of other rooms.
func TestNoRequestSeen(t *testing.T) {
	files, err := filepath.Glob("testdata/lab/*.case")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for i, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".case"), func(t *testing.T) {
			t.Parallel()
			con := &console{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
				getenv: func(string) string { return "off" }}
			in := con.load([]string{file})
			defer in.close()
			r, err := con.account(in, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			unrequested(r)
			scramble(rand.New(rand.NewPCG(uint64(i), 5)), reflect.ValueOf(r))
			found := detect.Run(r, in.set, detect.Facts{Service: in.target.Service, CPUs: in.target.CPUs})
			rep := report.New(report.Source{Target: in.target, Inputs: in.inputs, Gaps: in.gaps,
				Tiers: in.tiers, Ledger: r, Found: found})
			speaksOfNone(t, rep)
		})
	}
}

// unrequested takes all requests out of a result.
func unrequested(r *account.Result) {
	r.Slow, r.Median, r.All = account.Column{}, account.Column{}, account.Column{}
	r.Requests = account.Requests{NoRequestsCause: "nobody asked"}
	for i := range r.STWs {
		r.STWs[i].SlowNS, r.STWs[i].SlowRequests = 0, 0
	}
	if r.Kernel != nil {
		for i := range r.Kernel.Barriers {
			r.Kernel.Barriers[i].SlowNS = 0
		}
	}
	r.Silences.SlowNS = 0
}

func speaksOfNone(t *testing.T, rep *report.Report) {
	t.Helper()
	var text, markdown, data bytes.Buffer
	for _, err := range []error{rep.Text(&text, report.TextOptions{}), rep.Markdown(&markdown), rep.JSON(&data)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, verdict, _ := strings.Cut(text.String(), "\n\n"); !strings.HasPrefix(verdict, "NO REQUEST WAS SEEN\n") {
		t.Errorf("begins with %.60q", verdict)
	}
	for format, s := range map[string]string{"text": text.String(), "markdown": markdown.String(),
		"json": data.String()} {
		s = strings.Join(strings.Fields(s), " ") // as it reads, without the breaks of lines
		for rest := s; ; {
			i := strings.Index(rest, "slow request")
			if i < 0 {
				break
			}
			t.Errorf("%s speaks of slow requests: ...%s...", format, rest[max(0, i-120):min(len(rest), i+60)])
			rest = rest[i+1:]
		}
	}
}
