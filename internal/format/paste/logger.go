package paste

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// loggers takes off what loggers put before each line. A line can have gone through several, such
// as klog and docker compose.
func loggers(lines []Line) {
	composed(lines)
	procfiles(lines)
	tagged(lines)
	for i := range lines {
		l := &lines[i]
		for range 3 {
			if l.Command != "" || !l.logged() {
				break
			}
		}
	}
	for i := range lines {
		l := &lines[i]
		alone := l.Text == "" && !l.Time.IsZero() && (i == 0 || lines[i-1].Raw == "") &&
			(i+1 == len(lines) || lines[i+1].Raw == "")
		if alone { // what date printed between two readings is no logger's
			l.Text, l.Raw = l.Raw, ""
		}
	}
}

// logged takes one prefix off, and reports whether there was one.
func (l *Line) logged() bool {
	text := strings.TrimLeft(l.Text, " ")
	if len(text) < 12 {
		return false
	}
	var p prefix
	var ok bool
	switch c := text[0]; {
	case c >= '0' && c <= '9':
		p, ok = timed(text)
	case c == '{':
		p, ok = jsonLine(text)
	case c == '[':
		if p, ok = podPrefix(text); !ok {
			p, ok = inBrackets(text)
		}
	case c == '<':
		p, ok = rfc5424(text)
	case strings.IndexByte("IWEFD", c) >= 0 && text[1] >= '0' && text[1] <= '9':
		p, ok = klog(text)
	case c >= 'A' && c <= 'Z':
		if p, ok = syslog(text); !ok {
			p, ok = inBars(text)
		}
	}
	if !ok && text[0] != '{' && text[0] != '[' {
		p, ok = foreignSyslog(text)
	}
	if !ok {
		return false
	}
	l.take(p)
	return true
}

// prefix is what a logger's prefix says, and the text behind it.
type prefix struct {
	rest, source string
	pid          int
	time         time.Time
}

func (l *Line) take(p prefix) {
	if l.Raw == "" {
		l.Raw = l.Text
	}
	l.Text = strings.TrimRight(p.rest, " \t\r\n")
	if p.source != "" {
		l.Source = p.source
	}
	if p.pid != 0 {
		l.PID = p.pid
	}
	if !p.time.IsZero() {
		l.Time = p.time
	}
}

// Both syslog's and journald's lines go on with: host program[pid]: message.
// Some put the host in brackets.
var program = pattern.New(`^([\w.:-]+|\[[A-Za-z][\w.:-]*\]) ([\w./@+() -]{1,64}?)(?:\[(\d{1,9})\])?: ?(.*)$`)

// hostless is the same where somebody took the host out.
var hostless = pattern.New(`^([\w./@+-]{1,64})\[(\d{1,9})\]: ?(.*)$`)

func fromProgram(rest string, t time.Time) (prefix, bool) {
	m := program.FindStringSubmatch(rest)
	if h := hostless.FindStringSubmatch(rest); h != nil {
		m = []string{"", "", h[1], h[2], h[3]}
	}
	if m == nil {
		return prefix{}, false
	}
	pid, _ := strconv.Atoi(m[3])
	if m[2] == "kernel" {
		pid = 0
	}
	host := strings.Trim(m[1], "[]")
	if host != m[1] && levels[strings.ToLower(host)] {
		return prefix{}, false
	}
	return prefix{rest: m[4], source: host, pid: pid, time: t}, true
}

// leastTagged is how many lines in a row have one program and pid before they are a logger's.
// Tables number their headings in this way.
const leastTagged = 3

// tagged takes off what is left of a prefix of which somebody cut off all but the program and
// its pid: "program[77]: message".
func tagged(lines []Line) {
	tag := func(text string) string {
		end := strings.Index(text, "]:")
		if end <= 0 || end > 76 || !hostless.MatchString(text) {
			return ""
		}
		return text[:end+2]
	}
	for i := 0; i < len(lines); {
		own, end := tag(lines[i].Text), i+1
		for own != "" && end < len(lines) && lines[end].Command == "" && tag(lines[end].Text) == own {
			end++
		}
		if own != "" && lines[i].Command == "" && end-i >= leastTagged {
			for j := i; j < end; j++ {
				m := hostless.FindStringSubmatch(lines[j].Text)
				pid, _ := strconv.Atoi(m[2])
				lines[j].take(prefix{rest: m[3], pid: pid})
			}
		}
		i = end
	}
}

// timedBracket is a line that a logger put into brackets, with the time before it.
var timedBracket = pattern.New(`^\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?Z?(?: (.*))?\]$`)

// inBrackets is "[2026-11-22 22:28:49 message]".
func inBrackets(text string) (prefix, bool) {
	if len(text) < 21 || text[20] == ']' && len(text) > 21 || text[len(text)-1] != ']' {
		return prefix{}, false
	}
	m := timedBracket.FindStringSubmatch(text)
	if m == nil {
		return prefix{}, false
	}
	t, _ := time.Parse(time.DateTime, strings.Replace(m[1], "T", " ", 1))
	return prefix{rest: m[2], time: t}, true
}

// syslog is "Nov 22 22:28:49 host program[pid]: message".
func syslog(text string) (prefix, bool) {
	if len(text) < 17 || text[3] != ' ' || text[9] != ':' || text[12] != ':' {
		return prefix{}, false
	}
	t, err := time.Parse("Jan _2 15:04:05", text[:15])
	if err != nil {
		return prefix{}, false
	}
	rest := text[15:]
	if rest[0] == '.' { // journalctl -o short-precise
		rest = strings.TrimLeft(rest[1:], "0123456789")
	}
	if message, ok := strings.CutPrefix(rest, ": "); ok { // a program's own, without host and name
		return prefix{rest: message, time: t}, true
	}
	return fromProgram(strings.TrimLeft(rest, " "), t)
}

// rfc5424 is "<134>1 2026-11-22T22:28:49Z host program pid id - message".
func rfc5424(text string) (prefix, bool) {
	end := strings.IndexByte(text, '>')
	if end < 2 || end > 4 || strings.Trim(text[1:end], "0123456789") != "" {
		return prefix{}, false
	}
	text = text[end+1:]
	if p, ok := syslog(text); ok {
		return p, true
	}
	f := strings.SplitN(text, " ", 8)
	if len(f) < 8 || f[0] != "1" {
		return prefix{}, false
	}
	t, _, ok := stamp(f[1])
	if !ok {
		return prefix{}, false
	}
	pid, _ := strconv.Atoi(f[4])
	return prefix{rest: f[7], source: f[2], pid: pid, time: t}, true
}

// stamp reads a time as 2026-11-22T22:28:49.123456Z at the start of text; rest follows it.
func stamp(text string) (t time.Time, rest string, ok bool) {
	if len(text) < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' {
		return t, "", false
	}
	end := strings.IndexAny(text, " \t")
	if end < 0 {
		end = len(text)
	}
	if end > 40 {
		return t, "", false
	}
	word := strings.Replace(text[:end], ",", ".", 1)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700"} {
		if t, err := time.Parse(layout, word); err == nil {
			return t, text[end:], true
		}
	}
	return t, "", false
}

// timed is a line that starts with a time: journald's ISO forms, containerd's and docker's
// logs, kubectl logs --timestamps, zap's console.
func timed(text string) (prefix, bool) {
	t, rest, ok := stamp(text)
	if m := barred.FindStringSubmatch(text); !ok && m != nil {
		t, _ := time.Parse(time.DateTime, m[1])
		return prefix{rest: m[2], time: t}, true
	}
	if !ok {
		return goLog(text)
	}
	if strings.HasPrefix(rest, "\t") { // zap: time, level, caller, message
		f := strings.SplitN(rest[1:], "\t", 3)
		if level := strings.ToLower(f[0]); len(f) >= 2 && levels[level] {
			return prefix{rest: f[len(f)-1], time: t}, true
		}
		return prefix{}, false
	}
	rest = strings.TrimPrefix(rest, " ")
	if f := strings.SplitN(rest, " ", 3); len(f) >= 2 && (f[0] == "stdout" || f[0] == "stderr") &&
		(f[1] == "F" || f[1] == "P") {
		p := prefix{time: t}
		if len(f) == 3 {
			p.rest = f[2]
		}
		return p, true
	}
	if p, ok := fromProgram(rest, t); ok && p.pid != 0 || ok && strings.Contains(rest, " kernel: ") {
		return p, true
	}
	return prefix{rest: rest, time: t}, true
}

// barred is the clock that CI jobs put before each line, with a bar behind it.
var barred = pattern.New(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d{1,9})? +\| ?(.*)$`)

var levels = map[string]bool{"debug": true, "info": true, "warn": true, "warning": true,
	"error": true, "dpanic": true, "panic": true, "fatal": true}

// goLog is the prefix of package log: "2026/11/22 22:28:49.123456 message".
func goLog(text string) (prefix, bool) {
	if len(text) < 20 || text[4] != '/' || text[7] != '/' || text[10] != ' ' || text[13] != ':' {
		return prefix{}, false
	}
	t, err := time.Parse("2006/01/02 15:04:05", text[:19])
	if err != nil {
		return prefix{}, false
	}
	rest := text[19:]
	if rest[0] == '.' {
		digits := rest[1:]
		rest = strings.TrimLeft(digits, "0123456789")
		if d, err := time.ParseDuration("0." + digits[:len(digits)-len(rest)] + "s"); err == nil {
			t = t.Add(d)
		}
	}
	if rest == "" || rest[0] != ' ' {
		return prefix{}, false
	}
	return prefix{rest: rest[1:], time: t}, true
}

// klog is "I1122 22:28:49.123456   12345 file.go:123] message".
func klog(text string) (prefix, bool) {
	if len(text) < 30 || text[5] != ' ' || text[8] != ':' || text[11] != ':' {
		return prefix{}, false
	}
	bracket := strings.Index(text, "] ")
	if bracket < 0 {
		return prefix{}, false
	}
	f := strings.Fields(text[5:bracket])
	if len(f) != 3 || !strings.Contains(f[2], ":") {
		return prefix{}, false
	}
	t, err := time.Parse("0102 15:04:05.999999", text[1:5]+" "+f[0])
	if err != nil {
		return prefix{}, false
	}
	pid, _ := strconv.Atoi(f[1])
	return prefix{rest: text[bracket+2:], pid: pid, time: t}, true
}

// podPrefix is kubectl logs --prefix: "[pod/name/container] message".
func podPrefix(text string) (prefix, bool) {
	rest, ok := strings.CutPrefix(text, "[pod/")
	if !ok {
		return prefix{}, false
	}
	name, rest, ok := strings.Cut(rest, "] ")
	if !ok || strings.Count(name, "/") != 1 {
		return prefix{}, false
	}
	return prefix{rest: rest, source: name}, true
}

// jsonLine is a line that a logger wrote as JSON and that holds nothing but the program's line and
// when and where it was written. Where it holds more, it is a record of the program's own.
func jsonLine(text string) (prefix, bool) {
	if len(text) > 64<<10 {
		return prefix{}, false
	}
	var m map[string]any
	if json.Unmarshal([]byte(text), &m) != nil {
		return prefix{}, false
	}
	var p prefix
	found, journal := false, m["__REALTIME_TIMESTAMP"] != nil
	for key, value := range m {
		s, isText := value.(string)
		switch strings.ToLower(key) {
		case "log", "msg", "message", "textpayload", "line":
			if !isText || found {
				return prefix{}, false
			}
			p.rest, found = s, true
		case "time", "ts", "timestamp", "@timestamp":
			p.time, _, _ = stamp(s)
			if f, ok := value.(float64); ok && f > 0 && f < 1e10 {
				p.time = time.Unix(0, int64(f*1e9)).UTC()
			}
		case "__realtime_timestamp":
			us, _ := strconv.ParseInt(s, 10, 64)
			p.time = time.UnixMicro(us).UTC()
		case "_pid", "pid":
			p.pid, _ = strconv.Atoi(s)
			if f, ok := value.(float64); ok {
				p.pid = int(f)
			}
		case "host", "hostname", "_hostname", "pod", "container", "container_name", "service":
			p.source = s
		case "stream", "level", "severity", "caller", "logger", "kubernetes", "docker", "tag",
			"labels", "attrs", "insertid", "resource", "logname":
		default:
			if !journal {
				return prefix{}, false
			}
		}
	}
	return p, found && !strings.Contains(strings.TrimRight(p.rest, "\n"), "\n")
}

var compose = pattern.New(`^([A-Za-z][\w.-]{0,62}) +\| ?(.*)$`)

// composed takes off the names that docker compose puts before lines: "web-1  | message", all with
// the bar at one column.
func composed(lines []Line) {
	for i := 0; i < len(lines); {
		bar := strings.Index(lines[i].Text, "|")
		end := i
		for bar > 0 && end < len(lines) && strings.Index(lines[end].Text, "|") == bar &&
			compose.MatchString(lines[end].Text) {
			end++
		}
		// The rows of some databases' tables look the same.
		if end-i >= 2 && !table(lines[i:end]) {
			for j := i; j < end; j++ {
				m := compose.FindStringSubmatch(lines[j].Text)
				lines[j].take(prefix{rest: m[2], source: m[1]})
			}
		}
		i = max(end, i+1)
	}
}

// table reports whether most lines have several bars, as rows of a table do, or each another name
// before the bar.
func table(lines []Line) bool {
	bars := 0
	names := map[string]bool{}
	for _, l := range lines {
		if strings.Count(l.Text, " | ") > 1 {
			bars++
		}
		name, _, _ := strings.Cut(l.Text, " ")
		names[name] = true
	}
	return bars*2 > len(lines) || len(lines) > 2 && len(names) == len(lines)
}
