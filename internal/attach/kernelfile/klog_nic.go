package kernelfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// nics is what messages say of network devices.
type nics struct {
	names []string
	ms    []float64 // how long a queue had not sent
	up    []string  // devices whose link was up in this log
}

var (
	nicName  = pattern.New(`\b((?:eth|en[opsxP]|em|bond|team|wl|ib|p\d+p|venet|ens|eno)\w*)\b`)
	nicLate  = pattern.New(`timed out (\d{1,9}) ms|usecs since last trans: (\d{1,12})|time since last \w+[: ]+(\d{1,9}) ?ms`)
	nicIsUp  = pattern.New(`(?:NIC )?[Ll]ink (?:is [Uu]p|becomes ready)|link status definitely up`)
	maxNames = 64
)

func (n *nics) add(to *[]string, text string) (name string) {
	if m := nicName.FindStringSubmatch(text); m != nil {
		name = m[1]
		if !slices.Contains(*to, name) && len(*to) < maxNames {
			*to = append(*to, name)
		}
	}
	return name
}

// late notes a device that did not send, and for how long.
func (n *nics) late(text string) {
	n.add(&n.names, text)
	m := nicLate.FindStringSubmatch(text)
	if m == nil || len(n.ms) >= 1024 {
		return
	}
	if m[2] != "" {
		n.ms = append(n.ms, float(m[2])/1000)
		return
	}
	n.ms = append(n.ms, float(m[1])+float(m[3]))
}

// came notes a device whose link is up.
func (n *nics) came(text string) {
	if strings.Contains(text, "ink ") && nicIsUp.MatchString(text) {
		n.add(&n.up, text)
	}
}

// lost reports whether a link that was up went down: at boot it is down before it comes up.
func (n *nics) lost(text string) bool {
	m := nicName.FindStringSubmatch(text)
	return m != nil && slices.Contains(n.up, m[1])
}

func (n *nics) figure() string {
	text := ""
	if len(n.names) > 0 {
		text = ": " + listed(n.names, 6)
	}
	if len(n.ms) > 0 {
		text += fmt.Sprintf("; %s without sending", dur(slices.Max(n.ms)*1e6))
		if len(n.ms) > 1 {
			text = fmt.Sprintf("%s at most, %s at least", text, dur(slices.Min(n.ms)*1e6))
		}
	}
	return text
}
