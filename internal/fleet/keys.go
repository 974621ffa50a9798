package fleet

import (
	"regexp"
	"slices"
	"sort"
	"strings"
)

// clusterLabels are labels that tell clusters apart, as fleets name them.
var clusterLabels = []string{"cluster", "k8s_cluster", "kubernetes_cluster", "cluster_name",
	"region", "env", "tenant_id"}

// Key is what a rule's members are told apart by.
type Key uint8

// Keys.
const (
	ByHost      Key = iota // job, instance
	ByContainer            // namespace, pod, container; a container's id and name where Kubernetes has not named it
	ByPod                  // namespace, pod
	ByService              // job, namespace, pod, instance
)

// Profile is which labels this fleet has.
type Profile struct {
	Cluster    []string // of clusterLabels, those that are there
	Standalone bool     // cAdvisor without Kubernetes: containers have id and name only
}

// labels are the key's labels.
func (p *Profile) labels(k Key) []string {
	l := slices.Clone(p.Cluster)
	switch {
	case k == ByHost:
		return append(l, "job", "instance")
	case k == ByContainer && p.Standalone:
		return append(l, "instance", "id", "name")
	case k == ByContainer:
		return append(l, "namespace", "pod", "container")
	case k == ByPod && p.Standalone:
		return append(l, "instance")
	case k == ByPod:
		return append(l, "namespace", "pod")
	}
	return append(l, "job", "namespace", "pod", "instance")
}

// host is an instance without its port.
func host(instance string) string {
	m := hostAndPort.FindStringSubmatch(instance)
	if m == nil {
		return instance
	}
	return m[1]
}

var hostAndPort = regexp.MustCompile(`^\[?([^\]]+?)\]?(?::[0-9]+)?$`)

// name is how a person calls a member.
func (l Labels) name() string {
	switch {
	case l["container"] != "" && l["pod"] != "":
		return l["namespace"] + "/" + l["pod"] + "/" + l["container"]
	case l["pod"] != "":
		return l["namespace"] + "/" + l["pod"]
	case l["name"] != "" && l["instance"] != "":
		return l["name"] + " on " + host(l["instance"])
	case l["id"] != "" && l["instance"] != "":
		return l["id"] + " on " + host(l["instance"])
	case l["id"] != "":
		return l["id"]
	case l["instance"] != "":
		return l["instance"]
	}
	return l["job"]
}

// at is the key of a series among others with the same labels.
func (l Labels) at(names []string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString(l[n])
		b.WriteByte(0)
	}
	return b.String()
}

// only is l without the labels that are not named.
func (l Labels) only(names []string) Labels {
	out := Labels{}
	for _, n := range names {
		if v := l[n]; v != "" {
			out[n] = v
		}
	}
	return out
}

// String lists the labels as PromQL writes them.
func (l Labels) String() string {
	var names []string
	for n := range l {
		names = append(names, n)
	}
	sort.Strings(names)
	for i, n := range names {
		names[i] = n + "=" + quoted(l[n])
	}
	return strings.Join(names, ",")
}

// replicaHash is the end of a pod's name that a Deployment or a StatefulSet adds.
var replicaHash = regexp.MustCompile(`(-[0-9a-f]{6,10})?-([0-9a-z]{5}|[0-9]+)$`)

// workload is what a member belongs to: the owner of its pod, by name, else the job.
func (l Labels) workload() string {
	switch {
	case l["pod"] != "":
		w := l["namespace"] + "/" + replicaHash.ReplaceAllString(l["pod"], "")
		return w
	case l["name"] != "" && l["instance"] != "":
		return l["name"]
	case l["job"] != "":
		return l["job"]
	}
	return l["instance"]
}
