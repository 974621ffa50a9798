package systool

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

func (s *sysstatTables) sarNetwork(v *verdict) {
	if t := s.with("IFACE", "rxdrop/s"); t != nil {
		byName, dropped := t.group(), false
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			one := byName[name]
			lost := one.median("txdrop/s") + one.median("rxfifo/s")
			drops := one.median("rxdrop/s") + lost
			if drops < 1 {
				continue
			}
			dropped = true
			text := fmt.Sprintf("%s drops %s packets/s", name, plain(drops))
			v.figure("%s", text)
			if lost >= 1 || drops >= dropsMuch*s.received(name) {
				v.outside("the network: "+name+" drops packets", 0, text)
			}
			v.unsure = true
			v.means("%s", text)
			v.not("that anybody wanted these packets: those of unknown protocols count as dropped as well")
		}
		if !dropped {
			v.figure("no interface drops packets to speak of (medians)")
		}
	}
	s.traffic(v)
	if t := s.with("retrans/s", "isegerr/s"); t != nil {
		again, share := t.median("retrans/s"), -1.0
		text := fmt.Sprintf("%s TCP segments/s sent again", plain(again))
		if sums := s.with("oseg/s"); sums != nil && sums.median("oseg/s") > 0 {
			share = again / sums.median("oseg/s")
			text += fmt.Sprintf(", %s %% of those sent", plain(100*share))
		}
		v.figure("%s", text)
		switch {
		case again < 10:
		case share >= 0.001:
			v.outside("the network: segments are lost", part(share), text)
			v.means("%s: the network loses them or delays them", text)
		case share < 0:
			v.unsure = true
			v.means("%s: how many of all that is, is not in it", text)
			v.next("sar -n TCP,ETCP 1 10", "oseg/s: how many segments are sent")
		}
	}
}

// traffic says what the busiest interface carries.
func (s *sysstatTables) traffic(v *verdict) {
	if t := s.with("IFACE", "rxpck/s"); t != nil {
		busiest, most := "", -1.0
		byName := t.group()
		for name, one := range byName {
			if f := one.median("rxkB/s") + one.median("txkB/s") + one.median("rxbyt/s")/1024 +
				one.median("txbyt/s")/1024; f > most || f == most && name < busiest {
				busiest, most = name, f
			}
		}
		if t.withoutBytes(v) {
			return
		}
		one := byName[busiest]
		if one == nil {
			return
		}
		v.figure("%s: %s/s in and out, %s packets/s in, %s out%s", busiest, kB(most),
			plain(one.median("rxpck/s")), plain(one.median("txpck/s")), small(one))
		t.links(v)
		one.perhapsFull(v, busiest)
	}
}

// dropsMuch is the share of packets received from which on drops are a loss, whoever sent them.
const dropsMuch = 0.01

// received is how many packets an interface receives in a second; without a table of them far more
// than any does.
func (s *sysstatTables) received(name string) float64 {
	if t := s.with("IFACE", "rxpck/s"); t != nil {
		if one := t.group()[name]; one != nil {
			return max(1, one.median("rxpck/s"))
		}
	}
	return math.MaxFloat64
}

// perhapsFull says that an interface carries as much as a usual link can, where its speed is not
// printed.
func (t *table) perhapsFull(v *verdict, name string) {
	if t.has("%ifutil") || name == "lo" {
		return
	}
	bits := 8*1024*max(t.median("rxkB/s"), t.median("txkB/s")) + 8*max(t.median("rxbyt/s"), t.median("txbyt/s"))
	for _, mbit := range []float64{100, 1000, 10000} {
		if full := mbit * 1e6; bits >= linkFull*full/100 && bits <= full {
			v.unsure = true
			v.means("%s carries %s Gbit/s in one direction: if its link has %s Gbit/s, it is full; its speed is not in it", name, plain(bits/1e9), plain(mbit/1000))
			v.next("ethtool "+name+" | grep Speed", "the speed of the link")
		}
	}
}

// withoutBytes says that an interface counts packets and no bytes, which cannot be: each packet has
// some 60 of them at least. Then no bytes of the table are to be believed.
func (t *table) withoutBytes(v *verdict) bool {
	if !t.has("rxkB/s") && !t.has("rxbyt/s") {
		return false
	}
	busiest, most := "", 0.0
	byName := t.group()
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		one := byName[name]
		sum := func(columns ...string) (n float64) {
			for _, c := range columns {
				n += one.median(c)
			}
			return n
		}
		packets, size := sum("rxpck/s", "txpck/s"), sum("rxkB/s", "txkB/s", "rxbyt/s", "txbyt/s")
		if size == 0 && packets >= 10 && packets > most {
			busiest, most = name, packets
		}
	}
	one := byName[busiest]
	if one == nil {
		return false
	}
	v.unsure = true
	v.figure("%s: %s packets/s in, %s out, and no bytes in either direction", busiest,
		plain(one.median("rxpck/s")), plain(one.median("txpck/s")))
	v.means("the bytes per second are wrong: an interface that carries packets carries bytes. How full the network is, this table does not say")
	v.next("ip -s link; sleep 10; ip -s link", "bytes of the interfaces, counted by the kernel")
	return true
}

// small says that most packets have no content: it is requests for connections, or answers to them.
func small(t *table) string {
	packets, kb := t.median("rxpck/s"), t.median("rxkB/s")+t.median("rxbyt/s")/1024
	if size := kb * 1024 / max(packets, 1); packets >= 5000 && size < 80 {
		return fmt.Sprintf("; %s bytes each in: packets without content", plain(size))
	}
	return ""
}

// linkSpeeds are those of network interfaces, in Mbit/s.
var linkSpeeds = []float64{10, 100, 1000, 2500, 5000, 10000, 20000, 25000, 40000, 50000, 100000, 200000, 400000}

// linkFull is the share of a link's speed, in percent, from which packets queue for it.
const linkFull = 90

// links judges how full interfaces are. The column %ifutil is the larger direction's share of the
// speed, or that of both where they take turns. sysstat before 11.3 counted the speed in bits in 32
// of them, so 10 Gbit/s and more gave a wrong share.
func (t *table) links(v *verdict) {
	if !t.has("%ifutil") {
		return
	}
	byName := t.group()
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		one := byName[name]
		share, rx, tx := one.median("%ifutil"), one.median("rxkB/s"), one.median("txkB/s")
		bits := 8 * 1024 * max(rx, tx)
		if share < 1 || bits == 0 {
			continue
		}
		speed := bits * 100 / share
		at := slices.IndexFunc(linkSpeeds, func(mbit float64) bool {
			whole := mbit * 1e6
			return whole > 1<<32 && math.Abs(speed-math.Mod(whole, 1<<32)) < 0.01*speed
		})
		switch {
		case at >= 0:
			whole := linkSpeeds[at] * 1e6
			v.figure("%s: %%ifutil %s is wrong, since the speed of %s Gbit/s did not fit in 32 bits: its larger direction is %s Gbit/s, %s %% of it",
				name, plain(share), plain(whole/1e9), plain(bits/1e9), plain(100*bits/whole))
		case share > 100.5:
			v.figure("%s: %%ifutil %s is wrong, since there is no more than 100 %%; its larger direction is %s Gbit/s", name, plain(share), plain(bits/1e9))
		case share >= linkFull && known(speed):
			v.outside("the network: the link of "+name+" is full", share/100,
				fmt.Sprintf("%s: %s %% of its speed is used (%%ifutil)", name, plain(share)))
			v.means("the link of %s is used to %s %%: packets queue for it", name, plain(share))
		}
	}
}

// known reports whether it is the speed of an interface, in bit/s, as near as rounding lets it be.
func known(speed float64) bool {
	return slices.ContainsFunc(linkSpeeds, func(mbit float64) bool { return math.Abs(speed-mbit*1e6) < 0.03*speed })
}
