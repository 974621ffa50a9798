package systool

import (
	"fmt"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// dockerInspect is docker inspect's JSON, whole or cut off.
var dockerInspect = &attach.Kind{
	Name:  "docker inspect",
	Hints: []string{"[", "{", `"HostConfig"`, `"State"`, `"Status"`, `"Running"`, `"OOMKilled"`, `"Health"`},
	Claim: func(lines []paste.Line) int {
		return attach.ClaimJSON(lines, func(keys map[string]bool) bool {
			return keys["HostConfig"] && (keys["NanoCpus"] || keys["CpuQuota"] || keys["Memory"]) ||
				keys["NanoCpus"] && keys["CpuShares"] && keys["MemorySwap"] ||
				keys["OOMKilled"] && keys["ExitCode"] && (keys["StartedAt"] || keys["Restarting"] ||
					keys["Dead"]) || keys["FailingStreak"] && keys["Log"]
		})
	},
	Read: readInspect,
}

var inspectValue = pattern.New(`^"(\w+)"\s*:\s*"?([^",]*)"?,?$`)

func readInspect(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "docker inspect"
	v.unsure = true
	values := map[string]string{}
	health := inspectHealth(v, p)
	for _, l := range p.Lines {
		if m := inspectValue.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil && values[m[1]] == "" {
			values[m[1]] = m[2]
		}
	}
	if name := strings.TrimPrefix(values["Name"], "/"); name != "" {
		v.Title += " " + name
		v.Who.Name = name
	}
	if pid, ok := whole(values["Pid"]); ok {
		v.Who.PID = pid
	}
	num := func(key string) float64 { f, _ := number(values[key]); return f }
	cpu, memory, quota := "", "", 0.0
	switch {
	case num("NanoCpus") > 0:
		quota = num("NanoCpus") / 1e9
	case num("CpuQuota") > 0:
		period := num("CpuPeriod")
		if period <= 0 {
			period = 1e5
		}
		quota = num("CpuQuota") / period
	}
	if quota > 0 {
		cpu = plain(quota) + " CPUs"
		v.fact(Quota, quota)
	}
	if m := num("Memory"); m > 0 {
		memory = bytes(m)
	}
	if values["OOMKilled"] == "true" {
		v.figure("it was killed because its memory was at its limit (OOMKilled)")
		v.risk("direct-reclaim",
			"it was killed at its memory limit: before that its threads may have had to free memory themselves")
	}
	if n := num("RestartCount"); n > 0 {
		v.figure("restarted %s times", plain(n))
	}
	inspectState(v, values)
	limited(v, cpu, memory)
	_, settings := values["Memory"]
	if !settings && len(v.Figures) == 0 {
		v.unsure = false
		v.figure("the container is %s", values["Status"])
	}
	if cpu == "" && memory == "" && settings {
		v.unsure = values["OOMKilled"] == "true" || health
		v.figure("no limit of CPU or memory")
	}
	if set := values["CpusetCpus"]; set != "" {
		v.figure("may run on CPUs %s only", set)
	}
	v.means("it says what the container may use, and not what it uses")
	if cpu+memory != "" {
		v.not("a limit alone is no proof that it is reached")
	}
	return v.done()
}

// inspectState says how a container ended. A kill with SIGKILL has several senders, and the flag
// OOMKilled stands for one of them.
func inspectState(v *verdict, values map[string]string) {
	status := values["Status"]
	if status == "" || status == "running" && values["ExitCode"] == "0" {
		return
	}
	text := "it is " + status
	if status == "exited" || status == "dead" {
		text = "it ended" + afterStart(stamp(values["StartedAt"]), stamp(values["FinishedAt"]))
		if code := values["ExitCode"]; code != "" {
			text += ", exit code " + code + exitWords(code)
		}
	}
	v.figure("%s", text)
	if status != "exited" && status != "dead" {
		return
	}
	if values["OOMKilled"] == "false" && values["ExitCode"] == "137" {
		v.figure("OOMKilled is false: docker did not see a kill for lack of memory")
		v.means("it was ended with SIGKILL, and who sent it is not in it: a stop whose grace ran out, a failed probe, a person, or the kernel where it killed a child first")
		v.next("dmesg -T | grep -i -E 'killed process|oom'; docker events --since 1h --until 0s",
			"who ended it: the kernel, or a kill by the API")
		return
	}
	v.means("it ended: that is no wait; its own log says why")
	v.next("docker logs --tail 50 CONTAINER", "what it said at its end")
}

// inspectHealth says whether the health check fails, and how long its runs took.
func inspectHealth(v *verdict, p *attach.Part) (ill bool) {
	in, streak, status := false, "", ""
	start, took, output := time.Time{}, []float64{}, ""
	for _, l := range p.Lines {
		m := inspectValue.FindStringSubmatch(strings.TrimSpace(l.Text))
		if strings.HasPrefix(strings.TrimSpace(l.Text), `"Health": {`) {
			in = true
		}
		if m == nil {
			continue
		}
		switch {
		case m[1] == "FailingStreak":
			in, streak = true, m[2]
		case m[1] == "Status" && in:
			status = m[2]
		case m[1] == "Start":
			start = stamp(m[2])
		case m[1] == "End" && !start.IsZero() && len(took) < 64:
			took = append(took, stamp(m[2]).Sub(start).Seconds())
		case m[1] == "Output" && in:
			output = m[2]
		}
	}
	if streak == "" || streak == "0" && status != "unhealthy" {
		return false
	}
	text := fmt.Sprintf("its health check failed %s in a row", times(streak))
	if len(took) > 0 {
		text += fmt.Sprintf(", and took %s s in the median", plain(attach.Median(took)))
	}
	v.figure("%s", text)
	if output != "" {
		v.figure("the check said: %s", shortened(output))
	}
	v.means("its health check does not get its answer: the service hangs, or what the check itself asks does; that is a symptom and no cause, and the time of the check is no latency of requests")
	v.next("whystall diagnose container:NAME", "looks at it while it does not answer")
	return true
}
