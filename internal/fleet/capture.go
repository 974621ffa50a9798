package fleet

import (
	"context"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// capture is the commands that record the worst member, one a line. Labels are foreign input: each
// is quoted, and twice where a shell on the host reads it again. A label that a program would take
// for an option gets no command.
func (l *look) capture(ctx context.Context, r *Rule, m Labels) []string {
	for _, name := range []string{"instance", "namespace", "pod", "container"} {
		if strings.HasPrefix(host(m[name]), "-") { // host takes off the brackets of an address
			return []string{"# no command: the label " + name + " starts with -, as an option does"}
		}
	}
	switch {
	case r.Key == ByService && m["instance"] != "":
		return []string{"whystall diagnose --pprof " + finding.ShellWord("http://"+m["instance"]) + " --for 20s"}
	case m["pod"] != "":
		target := ""
		if c := m["container"]; c != "" {
			target = " --target=" + finding.ShellWord(c)
		}
		c := []string{"kubectl debug -n " + finding.ShellWord(m["namespace"]) + " -it " +
			finding.ShellWord(m["pod"]) + target +
			" --image=IMAGE --profile=sysadmin -- whystall diagnose --pid 1 --for 60s"}
		if node := l.nodeOf(ctx, m); node != "" && finding.ShellWord(node) == node { // no quotes hold in a comment
			c = append(c, "# it runs on node "+node)
		}
		return c
	case m["name"] != "":
		return []string{onHost(m, "sudo whystall diagnose", "container:"+m["name"], "--for 60s")}
	}
	name := r.Cause + "-" + host(m["instance"]) + ".case"
	return []string{onHost(m, "sudo whystall diagnose --pid PID --for 60s -o", name, ""),
		"# PID: the service that is slow there; host metrics do not know it"}
}

// onHost is a command with one foreign word, run on the member's host. The shell there reads the
// command again.
func onHost(m Labels, before, word, after string) string {
	command := strings.TrimSpace(before + " " + finding.ShellWord(word) + " " + after)
	if finding.ShellWord(word) != word {
		command = finding.ShellWord(command)
	}
	return "ssh " + finding.ShellWord(host(m["instance"])) + " " + command
}

// nodeOf asks on which node a pod runs; "" not known.
func (l *look) nodeOf(ctx context.Context, m Labels) string {
	if l.series["kube_pod_info"] == 0 {
		return ""
	}
	key := m["namespace"] + "/" + m["pod"]
	if n, ok := l.nodes[key]; ok {
		return n
	}
	if l.nodes == nil {
		l.nodes = map[string]string{}
	}
	l.nodes[key] = ""
	got, err := l.engine.Instant(ctx, "max by (node) ("+
		(&env{}).sel("kube_pod_info", []string{"namespace=" + quoted(m["namespace"]), "pod=" +
			quoted(m["pod"])}, 0)+")", l.o.At)
	if err == nil && len(got) == 1 {
		l.nodes[key] = got[0].Labels["node"]
	}
	return l.nodes[key]
}
