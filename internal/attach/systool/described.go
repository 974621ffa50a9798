package systool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// What these say of a container or a service is settings and a state: its limits, whether it was
// killed, and how it is. A limit alone is a risk, and only a counter of throttling says more.

var describePod = &attach.Kind{
	Name:  "kubectl describe pod",
	Hints: []string{"Name:", "Containers:", "Last State:", "Limits:", "State:"},
	Claim: claimDescribe,
	Read:  readDescribe,
}

var (
	describeTop  = pattern.New(`^(Name|Namespace|Priority|PriorityClassName|Priority Class Name|Mesh|Security Groups|DeletionGracePeriodSeconds|Status Message|Service Account|Node|Start Time|Image\(s\)|Replication Controllers|Labels|Annotations|Status|IP|IPs|Controlled By|Containers|Init Containers|Ephemeral Containers|Conditions|Volumes|QoS Class|Node-Selectors|Tolerations|Events|Reason|Message|Runtime Class Name|Nominated Node Name|SeccompProfile|Security Context|Termination Grace Period):(\s|$)`)
	describeSure = pattern.New(`^(QoS Class:\s+(Burstable|Guaranteed|BestEffort)|Container ID:\s+\w+://|Image ID:\s+\S+|Last (?:Termination )?State:\s+Terminated|Restart Count:\s+\d+|Controlled By:\s+\w+/|Image\(s\):\s+\S+|Replication Controllers:\s|Ready:\s+(?:True|False)$|State:\s+(?:Running|Waiting|Terminated)$|Priority ?Class ?Name:\s|Status:\s+(?:Running|Pending|Failed|Succeeded|Terminating.*|Unknown)$|Host Ports?:\s+(?:\d+/\w+|<none>)|(?:Liveness|Readiness|Startup):\s+(?:http-get|tcp-socket|exec|grpc) |Reason:\s+Evicted$)`)
	// A chat takes the blanks away that the table of events stands behind.
	describeEvent = pattern.New(`^(Type +Reason +Age +From|FirstSeen\s+LastSeen|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} |\d+[smhd]\s+\d+[smhd]\s+\d+\s|-{4} +-{6} +-{3}|(Normal|Warning) +\w+ +\d+[smhd])`)
	// The lines of a container stand indented, where nobody took that away.
	describeInner = pattern.New(`^(?:[a-z0-9][a-z0-9.-]{0,62}:|(?:Container ID|Image|Image ID|Ports?|Host Ports?|Command|Args|State|Last State|Ready|Restart Count|Limits|Requests|Liveness|Readiness|Startup|Environment|Mounts|Exit Code|Started|Finished|cpu|memory|ephemeral-storage):(?:\s.*)?)$`)
	describeItem  = pattern.New(`^([A-Z][\w ()-]*):\s*(.*)$`)
)

// claimDescribe claims what stands below the headings of a pod.
func claimDescribe(lines []paste.Line) int {
	return claimDescribed(lines, describeSure, describeTop, describeInner)
}

// claimDescribed claims what stands below the headings that kubectl describe prints: all lines with
// a blank in front, and those that inner knows where a chat took the blank away. Two lines at
// least must be sure.
func claimDescribed(lines []paste.Line, surely, top *pattern.Regexp, inner ...*pattern.Regexp) int {
	first := strings.TrimSpace(lines[0].Text)
	if !top.MatchString(first) && !surely.MatchString(first) {
		return 0
	}
	sure := 0
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		trimmed := strings.TrimSpace(text)
		if surely.MatchString(trimmed) {
			sure++
			return true
		}
		return text != trimmed && (text[0] == ' ' || text[0] == '\t') || top.MatchString(trimmed) ||
			slices.ContainsFunc(inner,
				func(re *pattern.Regexp) bool { return re.MatchString(trimmed) }) || sure > 0 &&
			describeEvent.MatchString(trimmed)
	})
	return attach.ClaimIf(sure >= 2, n)
}

func readDescribe(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "kubectl describe pod"
	v.unsure = true
	in, killed, probes, limits := "", "", "", map[string]string{}
	restarts, started, ran, code, unready, down := "", "", "", "", false, false
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if strings.Contains(text, "Unhealthy") && strings.Contains(text, "robe failed") && probes == "" {
			probes = text
		}
		m := describeItem.FindStringSubmatch(text)
		if m == nil {
			if key, value, ok := strings.Cut(text, ":"); ok && in == "Limits" {
				limits[strings.TrimSpace(key)] = strings.TrimSpace(value)
			}
			continue
		}
		if l.Text == text || in == "" {
			v.podState(m[1], m[2])
		}
		switch key := m[1]; key {
		case "Containers":
			in = key
		case "Name":
			if v.Who.Name == "" {
				v.Who.Name = m[2]
				v.Title += " " + m[2]
			}
		case "Limits", "Requests", "Last State", "Last Termination State", "State":
			in = strings.Replace(key, "Termination ", "", 1)
		case "Reason":
			switch {
			case m[2] == "CrashLoopBackOff" && (in == "State" || in == "Last State"):
				down = true
			case in == "Last State" || in == "State":
				killed = m[2]
			}
		case "Exit Code":
			if in == "Last State" {
				code = m[2]
			}
		case "Restart Count":
			if m[2] != "0" {
				restarts = m[2]
				v.figure("restarted %s", times(m[2]))
			}
		case "Ready":
			unready = unready || m[2] == "False"
		case "Started":
			started = m[2]
		case "Finished":
			ran = lifetime(started, m[2])
		}
	}
	switch {
	case v.evicted && v.nodeLow:
		v.means("the kubelet evicted the pod: the node was short of what the message names, and no limit of the pod's own was reached; it does not run any more")
	case v.evicted:
		v.means("the kubelet evicted the pod, which does not run any more")
	}
	if v.evicted {
		v.next("kubectl describe node NODE", "MemoryPressure or DiskPressure, and what else ran there")
	}
	if killed == "OOMKilled" {
		v.figure("a container was killed because its memory was at its limit (OOMKilled)%s", ran)
		if down {
			v.means("a container ran out of memory, and does not run now: nobody answers its requests")
		} else {
			v.means("a container ran out of memory and was started again: requests of that moment failed, and caches are cold after it")
		}
		v.risk("direct-reclaim",
			"a container was killed at its memory limit: before that its threads may have had to free memory themselves")
		v.next("cat /sys/fs/cgroup/CGROUP/memory.events /sys/fs/cgroup/CGROUP/memory.pressure",
			"max, and some avg10: whether the limit is hit now")
	}
	if killed != "OOMKilled" && code != "" && code != "0" {
		v.figure("its last end: exit code %s%s%s", code, exitWords(code), ran)
	}
	if down {
		v.figure("the container does not run now: it ended again and again, and waits for its next start (CrashLoopBackOff)")
	}
	if v.neverRan(p) || killed == "OOMKilled" || v.evicted {
		limited(v, "", limits["memory"])
	} else {
		limited(v, limits["cpu"], limits["memory"])
	}
	if restarts != "" && killed == "" {
		v.figure("why it restarted is not in it")
		v.means("a container was started again %s%s, and the reason of its end (Last State) is not in it: a kill at the memory limit, a crash and a failed probe look the same", times(restarts), notReady(unready))
		v.next("kubectl get pod POD -o jsonpath='{.status.containerStatuses[*].lastState}'",
			"why it ended: OOMKilled, an exit code, or a signal")
	}
	if probes != "" {
		v.figure("a probe failed: the service did not answer in time, which is the symptom and no cause")
	}
	v.means("limits and events: whether a limit stops it, its counters say")
	v.not("a limit alone is no proof that it is reached")
	return v.done()
}

// podState reads what stands of the pod as a whole.
func (v *verdict) podState(key, value string) {
	switch {
	case key == "Status" && value != "Running" && value != "":
		v.figure("the pod is %s", value)
	case key == "Reason" && value != "" && len(v.Figures) > 0:
		v.Figures[len(v.Figures)-1] += ", " + value
		v.evicted = v.evicted || value == "Evicted"
	case key == "Message" && value != "" && len(v.Figures) > 0:
		v.Figures[len(v.Figures)-1] += ": " + shortened(value)
		v.nodeLow = strings.HasPrefix(value, "The node was low on resource")
	}
}

// times writes how often.
func times(n string) string {
	if n == "1" {
		return "once"
	}
	return n + " times"
}

func notReady(unready bool) string {
	if unready {
		return " and is not ready"
	}
	return ""
}

// lifetime says how long a container ran, as kubectl writes its times.
func lifetime(started, finished string) string {
	a, errA := time.Parse(time.RFC1123Z, started)
	b, errB := time.Parse(time.RFC1123Z, finished)
	if errA != nil || errB != nil || b.Before(a) {
		return ""
	}
	return ", " + b.Sub(a).String() + " after its start"
}

// limited says what limits of CPU and memory mean: a quota is a risk, and so is a small one most.
func limited(v *verdict, cpu, memory string) {
	if memory != "" {
		v.figure("memory limit %s", memory)
	}
	if cpu != "" {
		v.figure("CPU limit %s", cpu)
		v.risk("cpu-throttled", "a CPU limit of "+cpu)
		v.next("cat /sys/fs/cgroup/CGROUP/cpu.stat; sleep 10; cat /sys/fs/cgroup/CGROUP/cpu.stat",
			"nr_throttled against nr_periods: whether the quota stops it")
	}
}

// dockerJSON is docker stats --format json: an object a line.
var dockerJSON = &attach.Kind{
	Name:  "docker stats, JSON",
	Hints: []string{`"CPUPerc"`},
	Claim: func(lines []paste.Line) int {
		return attach.ClaimWhile(lines, func(_ int, text string) bool {
			text = strings.TrimSpace(text)
			return strings.HasPrefix(text, "{") && strings.Contains(text, `"CPUPerc"`) &&
				strings.Contains(text, `"MemUsage"`)
		})
	},
	Read: readDockerJSON,
}

func readDockerJSON(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Glance = true
	var all []container
	for _, l := range p.Lines {
		var o struct{ Name, Container, CPUPerc, MemUsage string }
		if strings.TrimSpace(l.Text) == "" {
			continue
		}
		if err := json.Unmarshal([]byte(strings.TrimSpace(l.Text)), &o); err != nil {
			v.Flaws = append(v.Flaws, fmt.Sprintf("line %d: no JSON object", l.N))
			continue
		}
		c := container{name: o.Name}
		if c.name == "" {
			c.name = o.Container
		}
		c.cpu, c.hasCPU = number(o.CPUPerc)
		c.cpu /= 100
		if used, limit, ok := strings.Cut(o.MemUsage, "/"); ok {
			c.used, _ = size(strings.TrimSpace(used), 1)
			c.max, _ = size(strings.TrimSpace(limit), 1)
		}
		all = append(all, c)
	}
	v.Title = "docker stats, " + attach.Plural(len(all), "row")
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b container) int { return int(1000 * (b.cpu - a.cpu)) })
	for _, c := range sorted[:min(2, len(sorted))] {
		v.figure("%s uses %s CPUs and %s of %s memory", c.name, fixed(c.cpu), bytes(c.used), bytes(c.max))
	}
	containerJudge(v, all)
	v.not("usage does not show what was held back: a container at its quota uses exactly its quota")
	v.means("no container is at a limit that this shows")
	return v.done()
}

// unit is systemctl status and systemctl show of a service.
var unit = &attach.Kind{
	Name: "systemctl",
	Hints: []string{"Loaded: ", "Active: ", "CPUQuotaPerSecUSec=", "MemoryMax=", "MainPID=",
		".service - ", "Tasks: ", "Main PID: ", "Type=", "Id=", "ActiveState=", "SubState=", "Result=", "OOMPolicy=", "NRestarts=", "MemoryCurrent=", "CPUUsageNSec="},
	Claim: claimUnit,
	Read:  readUnit,
}

var (
	unitStatus = pattern.New(`^(\S* ?[\w@:.\\-]+\.(service|slice|scope|socket|timer|mount) - .*|(Loaded|Active|Main PID|Process|Tasks|Memory|CPU|CGroup|Docs|Status|IP|IO|Drop-In|TriggeredBy|Triggers|Invocation|FD Store|Until|Since|Control PID|Transient|Mem peak|Error|Notice): .*|(CGroup|Drop-In):|[├└│─ ]+.*)$`)
	unitSure   = pattern.New(`^(Loaded: (loaded|not-found|masked|error|bad-setting)|Active: (active|inactive|failed|activating|deactivating|reloading) ?\()`)
	unitShow   = pattern.New(`^[A-Z][A-Za-z]+=.*$`)
	unitKeys   = pattern.New(`^(CPUQuotaPerSecUSec|CPUQuotaPeriodUSec|MemoryMax|MemoryHigh|MemoryCurrent|CPUUsageNSec|TasksMax|TasksCurrent|MainPID|ControlGroup|LimitNOFILE|CPUWeight|ActiveState|SubState|NRestarts|CPUAccounting|IOAccounting|ExecMainPID|MemoryLimit|MemoryPeak|CPUShares|FragmentPath|OOMPolicy|Result)=`)
)

func claimUnit(lines []paste.Line) int {
	sure := 0
	show := unitShow.MatchString(strings.TrimSpace(lines[0].Text))
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		if show {
			if unitKeys.MatchString(text) {
				sure++
			}
			return unitShow.MatchString(text)
		}
		if unitSure.MatchString(text) {
			sure += 2
		}
		return unitStatus.MatchString(text)
	})
	return attach.ClaimIf(sure >= 2, n)
}

func readUnit(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.unsure = true
	name, cpu, memory := "a unit", "", ""
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		key, value, ok := strings.Cut(text, ": ")
		if !ok {
			key, value, _ = strings.Cut(text, "=")
		}
		switch key {
		case "Active", "ActiveState":
			v.figure("%s", value)
		case "Main PID", "MainPID":
			pid, _, _ := strings.Cut(value, " ")
			v.Who.PID, _ = whole(pid)
		case "Memory":
			v.figure("memory %s", value)
			if _, limit, ok := strings.Cut(value, "(max: "); ok {
				memory, _, _ = strings.Cut(strings.TrimSuffix(limit, ")"), " ")
			}
		case "Result":
			v.figure("its result is %s", value)
		case "MemoryPeak":
			if n, ok := number(value); ok && n < 1<<60 {
				v.figure("%s memory at its peak", bytes(n))
			}
		case "MemoryMax", "MemoryLimit":
			if n, ok := number(value); ok && n < 1<<60 {
				memory = bytes(n)
			}
		case "CPUQuotaPerSecUSec":
			if value != "infinity" {
				cpu = value + " a second"
				if d, err := time.ParseDuration(strings.ReplaceAll(value, " ", "")); err == nil {
					v.fact(Quota, d.Seconds())
				}
			}
		case "NRestarts":
			if value != "0" {
				v.figure("restarted %s times", value)
			}
		case "CGroup", "ControlGroup":
			v.Who.Cgroup = value
		case "Id":
			name = value
		}
		if title, _, ok := strings.Cut(text, " - "); ok && strings.Contains(title, ".service") {
			name = title[strings.LastIndexByte(title, ' ')+1:]
		}
	}
	v.Title = "systemctl, " + name
	limited(v, cpu, memory)
	if cpu == "" && memory == "" {
		v.unsure = false
	}
	v.means("state and settings of a service: they say what it may use, and not why it is slow")
	v.not("a limit alone is no proof that it is reached; \"active (running)\" says nothing of speed")
	v.next("whystall diagnose --pid PID", "looks at it while it is slow")
	return v.done()
}
