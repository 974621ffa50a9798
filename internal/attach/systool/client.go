package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// load knows reports of programs that send requests: ab, wrk, hey, vegeta. They say what a client
// saw, and not why.
var load = &attach.Kind{
	Name: "load report",
	Hints: []string{"This is Apache", "Benchmarking", "Server Software", "Document Path",
		"Concurrency", "Running ", "Thread Stats", "Summary:", "Requests ", "Response time",
		"Latency distribution:", "Details (average", "Bucket", "Percentage of", "Connection Times"},
	Claim: claimLoad,
	Read:  readLoad,
}

// loadStart are first lines, or lines that one of these programs alone prints.
var loadStart = pattern.New(`^(This is ApacheBench,|Benchmarking \S+ \(be patient\)|Server Software:|Document Path:|Concurrency Level:|Running \d+\S* test @ |Thread Stats +Avg +Stdev|Summary:$|Requests +\[total, rate|Response time histogram:|Latency distribution:$|Details \(average, fastest, slowest\):|Bucket +# +%|Percentage of the requests served within|Connection Times \(ms\))`)

var loadRow = pattern.New(`^(Copyright 1996|Licensed to|Completed \d+ requests|Finished \d+ requests|Server (Software|Hostname|Port):|Document (Path|Length):|Concurrency Level:|Time taken for tests:|Complete requests:|Failed requests:|\(Connect: |Non-2xx responses:|Write errors:|Keep-Alive requests:|Total transferred:|HTML transferred:|Requests per second:|Time per request:|Transfer rate:|SSL/TLS Protocol:|Server Temp Key:|TLS Server Name:|Total body sent:|[\d.]+ kb/s|Connection Times|min +mean|(Connect|Processing|Waiting|Total): +[\d.]|Percentage of the requests|\d+%,? +\d+|100% +\d+|` +
	`Running \d+|\d+ threads and \d+ connections|Thread Stats|Latency|Req/Sec|Latency Distribution|[\d.]+% +[\d.]+(us|ms|s|m)?$|\d+ requests in |Socket errors:|Non-2xx or 3xx|Requests/sec:|Transfer/sec:|Thread calibration:|Detailed Percentile|Value +Percentile|[\d.]+ +[\d.]+ +\d+ +([\d.]+|inf)$|#\[|-{10,}|` +
	`Summary:|Total:|Slowest:|Fastest:|Average:|Requests/sec:|Total data:|Size/request:|Response time histogram:|[\d.]+ \[\d+\]|Latency distribution:|\d+(\.\d+)?%+ in |Details \(average|DNS\+dialup:|DNS-lookup:|req write:|resp wait:|resp read:|Status code distribution:|\[\d+\]|Error distribution:|` +
	`Requests +\[total|Duration +\[total|Latencies +\[|Bytes (In|Out) +\[|Success +\[|Status Codes +\[|Error Set:|Bucket |\[[\d.]+\S*, +(\+Inf|[\d.]+\S*)\]|Get "?http|Post "?http|Throughput +)`)

func claimLoad(lines []paste.Line) int {
	if !loadStart.MatchString(strings.TrimSpace(lines[0].Text)) {
		return 0
	}
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		return loadStart.MatchString(text) || loadRow.MatchString(text)
	})
	if n < 3 {
		return 0
	}
	return n
}

// loadFigures find what matters in any of the reports: what it is called, and how it is printed.
var loadFigures = []struct {
	say string
	re  *pattern.Regexp
}{
	{"requests/s", pattern.New(`^(?:Requests per second:|Requests/sec:)\s+([\d.]+)`)},
	{loadHalf, pattern.New(`^50(?:\.000)?%+(?: in)? +(\S+(?: secs)?)`)},
	{"p90", pattern.New(`^90(?:\.000)?%+(?: in)? +(\S+(?: secs)?)`)},
	{"p99", pattern.New(`^99(?:\.000)?%+(?: in)? +(\S+(?: secs)?)`)},
	{"slowest", pattern.New(`^(?:Slowest:|100%)\s+(\S+(?: secs)?)`)},
	{"latency on average, deviation, at most", pattern.New(`^Latency +(\S+ +\S+ +\S+)`)},
	{"latencies", pattern.New(`^Latencies +(\[.*)$`)},
	{"requests in all, rate, throughput", pattern.New(`^Requests +(\[total.*)$`)},
	{"slowest wait for an answer", pattern.New(`^resp wait:\s+\S+ secs, \S+ secs, (\S+ secs)`)},
	{"success", pattern.New(`^Success +\[ratio\] +(\S+)`)},
}

func readLoad(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "load report: what a client saw"
	v.unsure = true
	ab := false
	said := make([]string, len(loadFigures))
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		ab = ab || strings.HasPrefix(text, "Concurrency Level:") ||
			strings.HasPrefix(text, "Percentage of the requests")
		for i, f := range loadFigures {
			m := f.re.FindStringSubmatch(text)
			if m == nil || m[1] == "0" || len(text) > 400 {
				continue
			}
			unit := ""
			if ab && (strings.HasPrefix(f.say, "p") || f.say == "slowest") {
				unit = " ms"
			}
			said[i] = fmt.Sprintf("%s %s%s", f.say, strings.Join(strings.Fields(m[1]), " "), unit)
		}
	}
	done, counted := loadAnswered(p)
	ranks := -1 // where the percentiles stand
	for i, s := range said {
		name := loadFigures[i].say
		rank := strings.HasPrefix(name, "p") || name == "slowest"
		switch {
		case s == "", counted && done == 0 && name != "requests/s":
		case rank && ranks >= 0:
			v.Figures[ranks] += ", " + s
		default:
			if v.figure("%s", s); rank {
				ranks = len(v.Figures) - 1
			}
		}
	}
	if ab {
		abWaiting(v, p)
	}
	text := loadFailures(p, done)
	if counted && done == 0 {
		v.means("no request was answered, so no time was measured: its percentiles are of nothing")
	}
	if text != "" {
		v.Figures = slices.Insert(v.Figures, 0, text)
		v.means("requests failed: the times are of those that were answered, and say nothing of the others")
	}
	v.means("this is how slow it was for the client: why is not in it")
	v.not("the client itself, the network and the server's queue are all within these times")
	v.next("whystall diagnose HOST:PORT", "why, while the same load runs")
	return v.done()
}

// loadFailed are lines that count requests which failed, loadDone those that were answered.
var (
	loadFailed = pattern.New(`^(?:Socket errors: (.*)|(Failed requests: +\d+)|(Non-2xx(?: or 3xx)? responses: +\d+))$`)
	loadDone   = pattern.New(`^(?:(\d+) requests in |Complete requests: +(\d+))`)
	digits     = pattern.New(`\d+$`)
)

// loadHalf is the median of a report.
const loadHalf = "p50"

// loadAnswered counts the requests that were answered; ok: the report says it.
func loadAnswered(p *attach.Part) (done float64, ok bool) {
	for _, l := range p.Lines {
		if m := loadDone.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
			done, _ = firstNumber(m)
			ok = true
		}
	}
	return done, ok
}

// abTimes is a row of ab's table of times: from the mean to the longest, in ms.
var abTimes = pattern.New(`^(Processing|Waiting): +(\d+) +(\d+) +([\d.]+) +(\d+) +(\d+)$`)

// abWaiting says where answers start soon and end late: what ab calls processing goes on until the
// connection is closed.
func abWaiting(v *verdict, p *attach.Part) {
	var least, half, most, first float64
	for _, l := range p.Lines {
		m := abTimes.FindStringSubmatch(strings.TrimSpace(l.Text))
		switch {
		case m == nil:
		case m[1] == "Waiting":
			first, _ = number(m[5])
		default:
			least, _ = number(m[2])
			half, _ = number(m[5])
			most, _ = number(m[6])
		}
	}
	if half < 100 || first > half/10 {
		return
	}
	v.Figures = slices.Insert(v.Figures, 0,
		fmt.Sprintf("the first byte came after %s ms, the end after %s ms, at the median", plain(first), plain(half)))
	if most-least <= half/50 {
		v.means("answers start after %s ms and end after %s ms, all of them alike: as where a limit of time closes a connection that the client waits to see closed", plain(first), plain(half))
		v.not("the server is quick with the answer itself: it is no load and no lack of CPU or disk that takes the rest")
	}
	v.means("answers start after %s ms, and take %s ms to end: sending them, or closing the connection, is what takes long", plain(first), plain(half))
}

// loadFailures says how many requests failed, beside those that were answered; "": none, or it is
// not said.
func loadFailures(p *attach.Part, done float64) string {
	var said []string
	failed := 0.0
	for _, l := range p.Lines {
		m := loadFailed.FindStringSubmatch(strings.TrimSpace(l.Text))
		if m == nil {
			continue
		}
		for _, one := range strings.Split(strings.Join(m[1:], ""), ",") {
			if n, ok := number(digits.FindString(one)); ok && n > 0 {
				failed += n
				said = append(said, strings.Join(strings.Fields(one), " "))
			}
		}
	}
	switch {
	case failed == 0:
		return ""
	case done > 0:
		return fmt.Sprintf("failed, beside %s that were answered: %s",
			attach.Plural(int(done), "request"), strings.Join(said, ", "))
	}
	return "failed: " + strings.Join(said, ", ")
}

// curl knows the times that curl -w prints, in seconds.
var curl = &attach.Kind{
	Name:  "curl timings",
	Hints: []string{"time_", "namelookup", "starttransfer", "pretransfer"},
	Claim: claimCurl,
	Read:  readCurl,
}

var curlLine = pattern.New(`(?i)(time_)?(namelookup|connect|appconnect|pretransfer|redirect|starttransfer|total)\s*[:=]\s*([\d.,]+)\s*(s|ms|us)?`)

func claimCurl(lines []paste.Line) int {
	names := map[string]bool{}
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		if len(text) > 400 {
			return false
		}
		all := curlLine.FindAllStringSubmatch(text, 16)
		for _, m := range all {
			names[strings.ToLower(m[2])] = true
		}
		return len(all) > 0 || strings.Trim(strings.TrimSpace(text), "-=") == "" ||
			strings.HasPrefix(strings.TrimSpace(text), "http_code") && len(names) > 0
	})
	if len(names) < 3 || len(curlLine.FindString(lines[0].Text)) == 0 &&
		!strings.HasPrefix(strings.TrimSpace(lines[0].Text), "http_code") {
		return 0
	}
	return n
}

func readCurl(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.unsure, v.Glance = "curl's timings of a request", true, true
	at := map[string]float64{}
	for _, l := range p.Lines {
		for _, m := range curlLine.FindAllStringSubmatch(l.Text, 16) {
			f, ok := number(m[3])
			if !ok {
				continue
			}
			switch m[4] {
			case "ms":
				f /= 1e3
			case "us":
				f /= 1e6
			}
			at[strings.ToLower(m[2])] = f
		}
	}
	ready := max(at["pretransfer"], at["appconnect"], at["connect"])
	steps := []struct {
		name  string
		value float64
	}{
		{"the name server", at["namelookup"]},
		{"connecting", max(0, at["connect"]-at["namelookup"])},
		{"the TLS handshake", max(0, at["appconnect"]-at["connect"])},
		{"the server's answer, until its first byte", max(0, at["starttransfer"]-ready)},
		{"the transfer of the answer", max(0, at["total"]-at["starttransfer"])},
	}
	if at["starttransfer"] == 0 {
		steps[3].value, steps[4].value = 0, 0
	}
	seconds := func(f float64) string { return finding.Duration(bounded(f * 1e9)) }
	v.figure("%s in all", seconds(at["total"]))
	most := steps[0]
	for _, s := range steps[1:] {
		if s.value > most.value {
			most = s
		}
	}
	v.figure("%s for %s", seconds(most.value), most.name)
	v.not("it is one request; each of these times counts from its start, and includes those before it")
	switch {
	case at["total"] == 0:
		v.means("the total is not in it")
	case at["total"] < 0.05:
		v.means("this request was fast")
	case most.value < 0.5*at["total"]:
		v.means("no step takes most of the time")
	case most.name == steps[0].name, most.name == steps[1].name:
		v.outside(most.name, most.value/at["total"], v.Figures[1]+" of "+v.Figures[0])
		v.means("the time goes by before the service sees the request: in %s", most.name)
		v.next("ss -lnt", "whether the service's accept queue is full, if it is the connecting that takes long")
	default:
		v.means("the time is in %s: why is not in it", most.name)
		v.next("whystall diagnose HOST:PORT", "why the server is slow")
	}
	return v.done()
}

// ping says how far another machine is.
var ping = &attach.Kind{
	Name:  "ping",
	Hints: []string{"PING ", " bytes from ", "ping statistics", "rtt min/avg/max"},
	Claim: claimPing,
	Read:  readPing,
}

var (
	pingTime = pattern.New(`^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*|\d\d:\d\d:\d\d(?:\.\d+)?|\[\d+\.\d+\]):? `) // of ts, or -D
	pingSeq  = pattern.New(`icmp_seq=(\d+)`)
	pingLine = pattern.New(`^(PING \S+|\d+ bytes from \S+|--- .* ping statistics ---|\d+ packets transmitted|(rtt|round-trip) min/avg/max|no answer yet|From \S+ icmp_seq|Request timeout)`)
	pingRTT  = pattern.New(`time=([\d.]+) ?ms`)
	pingSum  = pattern.New(`min/avg/max\S* = ([\d.]+)/([\d.]+)/([\d.]+)`)
	pingLoss = pattern.New(`([\d.]+)% packet loss`)
)

func claimPing(lines []paste.Line) int {
	return attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		return pingLine.MatchString(text[len(pingTime.FindString(text)):])
	})
}

// What is worth a word: answers that take this much longer than the median, in ms and by a factor.
const (
	pingMore  = 50
	pingTimes = 4
)

// pingLate says that some answers came late, and reports whether any did.
func pingLate(v *verdict, times []float64) bool {
	half, n, most := attach.Median(times), 0, 0.0
	for _, t := range times {
		if t >= half+pingMore && t >= pingTimes*half {
			n++
		}
		most = max(most, t)
	}
	if n < 2 {
		return false
	}
	text := fmt.Sprintf("%d of %d answers came late, after up to %s ms where %s ms are the median",
		n, len(times), plain(most), plain(half))
	v.Figures = slices.Insert(v.Figures, 0, text)
	v.outside("the network: some answers come late", part(float64(n)/float64(len(times))), text)
	v.means("%s: something on the way, or the other machine, holds them up for a while; where is not in it", text)
	v.next("ping -c 100 -i 0.2 GATEWAY", "whether the first hop alone, such as a wireless link, does it")
	return true
}

func readPing(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "ping"
	var times []float64
	loss, summed, first, last := 0.0, false, 0.0, 0.0
	for _, l := range p.Lines {
		if m := pingRTT.FindStringSubmatch(l.Text); m != nil {
			f, _ := number(m[1])
			times = append(times, f)
			if s := pingSeq.FindStringSubmatch(l.Text); s != nil {
				last, _ = number(s[1])
				if len(times) == 1 {
					first = last
				}
			}
		}
		if m := pingLoss.FindStringSubmatch(l.Text); m != nil {
			loss, _ = number(m[1])
			summed = true
		}
		if m := pingSum.FindStringSubmatch(l.Text); m != nil {
			v.figure("round trip %s ms at least, %s on average, %s at most", m[1], m[2], m[3])
		}
	}
	if len(times) > 0 {
		v.figure("round trip %s ms at the median of %d", plain(attach.Median(times)), len(times))
	}
	switch gaps := last - first + 1 - float64(len(times)); {
	case summed, len(times) == 0:
		v.figure("%s %% of the packets lost", plain(loss))
	case gaps > 0 && last < 1<<16 && gaps < last:
		loss = 100 * gaps / (last - first + 1)
		v.figure("%s %% of the packets have no answer in it, by their numbers", plain(loss))
	default:
		v.figure("no packet between these is missing, by their numbers")
	}
	v.not("ping is answered by the kernel: it says nothing of the service there")
	if loss >= 1 {
		v.outside("the network: packets are lost", loss/100, fmt.Sprintf("%s %% of the packets lost", plain(loss)))
		v.means("packets are lost on the way: TCP waits 200 ms and more for each")
	}
	if !pingLate(v, times) {
		v.means("no packet was lost")
	}
	return v.done()
}
