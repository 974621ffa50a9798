package stackdump

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// phpSlow reads the slow log of PHP-FPM: where each request stood when it had run for
// request_slowlog_timeout.
var phpSlow = &attach.Kind{
	Name:  "PHP-FPM slow log",
	Hints: []string{"[pool ", "script_filename = ", "[0x"},
	Claim: func(lines []paste.Line) int {
		heads, frames := 0, 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			text = strings.TrimSpace(text)
			switch {
			case phpHead.MatchString(text), strings.HasPrefix(text, "script_filename = "):
				heads++
			case phpFrame.MatchString(text):
				frames++
			default:
				return false
			}
			return true
		})
		return attach.ClaimIf(heads > 0 && frames > 0 || frames > 2, n)
	},
	Read: readPHPSlow,
}

var (
	phpHead  = pattern.New(`^\[\d\d-\w{3}-\d{4} \d\d:\d\d:\d\d\]\s+\[pool ([^\]]+)\] pid (\d+)$`)
	phpFrame = pattern.New(`^\[0x[0-9a-f]+\] ([\w\\:{}.@/$-]+)\(\) (\S+:\d+)$`)
)

// phpWaits are PHP's functions that ask another server, sleep, or take a lock of a file.
var phpWaits = []struct {
	what  string `prose:"yes"`
	names []string
}{
	{"another server", []string{"mysqli_query", "mysqli_real_connect", "mysqli_connect", "mysqli_stmt_execute",
		"mysql_query", "query", "execute", "pg_query", "pg_execute", "curl_exec", "curl_multi_select", "fsockopen",
		"stream_socket_client", "__soapCall", "__doRequest", "ldap_bind",
		"gethostbyname", "dns_get_record"}},
	{"a time that the program gave", []string{"sleep", "usleep", "time_nanosleep"}},
	{"a lock of a file, or of the session", []string{"flock", "session_start"}},
}

func readPHPSlow(p *attach.Part) attach.Reading {
	inner, called := map[string]float64{}, map[string]float64{}
	requests, pools := 0, map[string]bool{}
	at := 0 // frames of this request so far
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := phpHead.FindStringSubmatch(text); m != nil {
			pools[m[1]] = true
			at = 0
		} else if strings.HasPrefix(text, "script_filename") || text == "" {
			at = 0
		} else if m := phpFrame.FindStringSubmatch(text); m != nil {
			switch at++; at {
			case 1:
				requests++
				inner[m[1]]++
			case 2:
				called[m[1]+"() "+tail(m[2])]++
			}
		}
	}
	r := attach.Reading{Title: "PHP-FPM's slow log, " + attach.Plural(requests, "request"), State: attach.CannotTell,
		Means: "Each is one look at a request, taken when it had run for request_slowlog_timeout: where many of them stand, much of their time goes.",
		Not:   "How long a request took in all is not in it, nor how many were not slow."}
	if len(pools) > 1 {
		r.Title += " of " + attach.Plural(len(pools), "pool")
	}
	r.Figures = append(r.Figures, fmt.Sprintf("of %s in: %s", attach.Plural(requests, "request"), tops(inner)))
	if len(called) > 0 {
		r.Figures = append(r.Figures, "called from: "+tops(called))
	}
	for i, w := range phpWaits {
		n := 0.0
		for fn, k := range inner {
			for _, name := range w.names {
				if base(fn) == name {
					n += k
				}
			}
		}
		if n < 2 || n < 0.3*float64(requests) {
			continue
		}
		line := fmt.Sprintf("%.0f of %s stand in functions that wait for %s", n, attach.Plural(requests, "request"), w.what)
		r.Figures = append(r.Figures, line)
		if i == 0 {
			r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside, Where: w.what,
				Share: n / float64(requests), Proof: []string{line}})
		}
	}
	return r
}

// tops lists the largest counts.
func tops(of map[string]float64) string {
	var out []string
	for _, name := range attach.Largest(of) {
		if len(out) < 3 {
			out = append(out, fmt.Sprintf("%s (%.0f)", name, of[name]))
		}
	}
	return strings.Join(out, ", ")
}
