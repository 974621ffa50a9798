package systool

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// A node says what it is short of by conditions, and what pods ask of it.

var describeNode = &attach.Kind{
	Name:  "kubectl describe node",
	Hints: []string{"Name:", "Roles:", "Conditions:", "Allocated resources:", "Capacity:"},
	Claim: claimNode,
	Read:  readNode,
}

var (
	nodeTop   = pattern.New(`^(Name|Roles?|Labels|Annotations|CreationTimestamp|Taints|Unschedulable|Lease|Conditions|Addresses|Capacity|Allocatable|System Info|PodCIDRs?|ProviderID|ExternalID|Non-terminated Pods|Allocated resources|Events|Phase|Pods):(\s|$)`)
	nodeSure  = pattern.New(`^(?:(?:Memory|Disk|PID)Pressure\s+(?:True|False|Unknown)(?:\s|$)|Allocated resources:|Ready\s+(?:True|False|Unknown)\s|Non-terminated Pods:|Kubelet Version:|Container Runtime Version:)`)
	nodeCond  = pattern.New(`^(\w+Pressure|NetworkUnavailable|Ready)\s+(True|False|Unknown)\s.*?(Kubelet\w+|NodeStatusUnknown|\w+Is\w+)?(?:\s|$)`)
	nodeInner = pattern.New(`^(?:Type +Status|Resource +Requests|-{4,}(?: +-{4,})+|(?:cpu|memory|ephemeral-storage|hugepages-\w+)\s+\S+ \(\d+%\)|\w+Pressure\s+(?:True|False|Unknown)|NetworkUnavailable\s|(?:cpu|memory|pods|ephemeral-storage|hugepages-\w+|attachable-volumes-[\w-]+|[\w.-]+/[\w.-]+):\s+\d\w*$)`)
	nodeUse   = pattern.New(`^(cpu|memory)\s+(\S+) \((\d+)%\)\s+(\S+) \((\d+)%\)$`)
)

// claimNode claims what stands below the headings of a node.
func claimNode(lines []paste.Line) int { return claimDescribed(lines, nodeSure, nodeTop, nodeInner) }

func readNode(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "kubectl describe node"
	var short []string
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if name, ok := strings.CutPrefix(text, "Name:"); ok && v.Who.Host == "" {
			v.Who.Host = strings.TrimSpace(name)
			v.Title += " " + v.Who.Host
		}
		if m := nodeCond.FindStringSubmatch(text); m != nil && (m[1] == "Ready") != (m[2] == "True") {
			short = append(short, m[1]+" is "+m[2])
		}
		if m := nodeUse.FindStringSubmatch(text); m != nil {
			v.figure("%s: pods ask for %s %% of the node, and may use %s %%", m[1], m[3], m[5])
		}
	}
	v.not("how much is used: requests and limits are what pods ask for and may use")
	if len(short) == 0 {
		v.means("no condition of the node is bad")
		return v.done()
	}
	v.unsure = true
	v.Figures = append([]string{strings.Join(short, ", ")}, v.Figures...)
	v.means("the node says %s: pods may be moved or killed for it", strings.Join(short, ", "))
	if slices.Contains(short, "MemoryPressure is True") {
		v.risk("direct-reclaim", "the node is short of memory by the kubelet's threshold")
		v.next("cat /proc/pressure/memory; grep -E 'allocstall|pgmajfault' /proc/vmstat; sleep 10; grep -E 'allocstall|pgmajfault' /proc/vmstat", "on the node: whether threads wait for memory now")
	}
	return v.done()
}
