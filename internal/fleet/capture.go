package fleet

import (
	"context"
	"strings"
)

// capture is the commands that record the worst member, one a line. Labels are foreign input: each
// is quoted for a shell.
func (l *look) capture(ctx context.Context, r *Rule, m Labels) []string {
	switch {
	case r.Key == ByService && m["instance"] != "":
		return []string{"whystall diagnose --pprof " + shellWord("http://"+m["instance"]) + " --for 20s"}
	case m["pod"] != "":
		node := l.nodeOf(ctx, m)
		container := m["container"]
		target := ""
		if container != "" {
			target = " --target=" + shellWord(container)
		}
		c := []string{"kubectl debug -n " + shellWord(m["namespace"]) + " -it " + shellWord(m["pod"]) + target + " --image=IMAGE --profile=sysadmin -- whystall diagnose --pid 1 --for 60s"}
		if node != "" {
			c = append(c, "# it runs on node "+shellWord(node))
		}
		return c
	case m["name"] != "":
		return []string{"ssh " + shellWord(host(m["instance"])) + " sudo whystall diagnose " + shellWord("container:"+m["name"]) + " --for 60s"}
	}
	name := r.Cause + "-" + host(m["instance"]) + ".case"
	return []string{"ssh " + shellWord(host(m["instance"])) + " sudo whystall diagnose --pid PID --for 60s -o " + shellWord(name), "# PID: the service that is slow there; host metrics do not know it"}
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
	got, err := l.engine.Instant(ctx, "max by (node) ("+(&env{}).sel("kube_pod_info", []string{"namespace=" + quoted(m["namespace"]), "pod=" + quoted(m["pod"])}, 0)+")", l.o.At)
	if err == nil && len(got) == 1 {
		l.nodes[key] = got[0].Labels["node"]
	}
	return l.nodes[key]
}

// shellWord quotes a word for a shell, unless it needs none.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
