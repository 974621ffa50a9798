package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// lsof lists open files: context.
var lsof = &attach.Kind{
	Name:  "lsof",
	Hints: []string{"COMMAND", "FD", " REG ", " IPv4 ", " IPv6 ", " DIR "},
	Claim: claimLsof,
	Read:  readLsof,
}

var lsofRow = pattern.New(`^\S+ +\d+ +(\d+ +)?(\S+ +)?\S+ +(cwd|rtd|txt|mem|del|err|NOFD|DEL|\d+[rwuRWUN -]*\w?) +(REG|DIR|CHR|BLK|FIFO|IPv4|IPv6|unix|a_inode|sock|unknown|netlink|pack|0000|TCP|UDP|systm)\b`)

func claimLsof(lines []paste.Line) int {
	return attach.ClaimWhile(lines, func(_ int, text string) bool {
		f := fields(text)
		return len(f) > 5 && f[0] == "COMMAND" && f[1] == "PID" && slices.Contains(f, "FD") || lsofRow.MatchString(text)
	})
}

func readLsof(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Glance = "lsof", true
	kinds := map[string]int{}
	total := 0
	for _, l := range p.Lines {
		if m := lsofRow.FindStringSubmatch(l.Text); m != nil {
			kinds[m[4]]++
			total++
		}
	}
	v.figure("%s", attach.Plural(total, "open file"))
	for _, k := range attach.Largest(kinds)[:min(2, len(kinds))] {
		v.figure("%d of type %s", kinds[k], k)
	}
	v.means("it is context: open files say nothing of slowness")
	return v.done()
}

// iotop lists who reads and writes.
var iotop = &attach.Kind{
	Name:  "iotop",
	Hints: []string{"DISK READ", "DISK read"},
	Claim: claimIotop,
	Read:  readIotop,
}

var (
	iotopTop = pattern.New(`^(Total|Actual|Current) DISK (?i:read) *:\s+([\d.,]+) (\w)\S*/s.*DISK (?i:write) *:\s+([\d.,]+) (\w)\S*/s`)
	// With -a a row has amounts since the start in place of rates: "21.27 M", without "/s".
	iotopRow = pattern.New(`^(?:\d\d:\d\d:\d\d\s+)?(\d+) +\S+/\S+ +\S+ +([\d.,]+) (\w)\S* +([\d.,]+) (\w)\S* +(\?unavailable\?|([\d.,]+) % +([\d.,]+) %)? *(.*)$`)
	iotopSum = pattern.New(`^(?:\d\d:\d\d:\d\d\s+)?\d+ +\S+/\S+ +\S+ +[\d.,]+ [BKMGTP]i?B? `)
)

func iotopNames(text string) bool {
	text = strings.ToUpper(text)
	return strings.Contains(text, "DISK READ") && strings.Contains(text, "COMMAND")
}

func claimIotop(lines []paste.Line) int {
	headed := false
	whole := func(text string) bool {
		text = strings.TrimSpace(text)
		return iotopTop.MatchString(text) || iotopNames(text) || iotopRow.MatchString(text)
	}
	return claimLogical(lines, broken{whole: whole}, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		if iotopTop.MatchString(text) || iotopNames(text) {
			headed = true
			return true
		}
		return headed && iotopRow.MatchString(text)
	})
}

func readIotop(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Glance = "iotop, 1 screen", true
	most, what := 0.0, ""
	worst, who := 0.0, ""
	var waits []string // of others that wait, too
	total, rows, each := "", 0, "/s"
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := iotopTop.FindStringSubmatch(text); m != nil {
			if sum := fmt.Sprintf("reads %s %s/s, writes %s %s/s", m[2], m[3], m[4], m[5]); m[1] == "Total" {
				total = sum
			} else {
				v.figure("disks: %s", sum)
			}
		}
		m := iotopRow.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if rows++; iotopSum.MatchString(text) {
			each = ""
		}
		r, _ := size(m[2]+strings.TrimSuffix(m[3], "B"), 1)
		w, _ := size(m[4]+strings.TrimSuffix(m[5], "B"), 1)
		name := fmt.Sprintf("%s (tid %s)", firstWord(m[9]), m[1])
		if r+w > most {
			most, what = r+w, fmt.Sprintf("%s: %s%s read and written", name, bytes(r+w), each)
		}
		share, ok := number(m[8])
		if ok && share >= 20 {
			waits = append(waits, fmt.Sprintf("%s %s %%", name, plain(share)))
		}
		if ok && share > worst {
			worst, who = share, fmt.Sprintf("%s waits for the disk %s %% of the time", name, plain(share))
		}
	}
	if what != "" {
		if each == "" {
			what += " since iotop was started"
		}
		v.figure("%s", what)
	}
	if len(v.Figures) == 0 && total != "" {
		v.figure("programs: %s", total)
	}
	if what == "" && rows > 0 {
		v.means("nobody reads or writes at that moment")
	}
	if worst >= 20 {
		v.Figures = slices.Insert(v.Figures, 0, who)
		v.candidate("disk-wait", worst/100, who)
		v.means("%s in this screen", who)
		if len(waits) > 1 {
			v.Figures[0] = fmt.Sprintf("%d wait for the disk a fifth of the time or more: %s", len(waits), strings.Join(waits[:min(4, len(waits))], ", "))
		}
		v.next("iostat -x 1 10", "whether the device is slow")
	} else {
		v.unsure = true
	}
	v.means("it says who reads and writes, and not how long that takes")
	v.not("one screen is a glance, and its IO> is unknown where delay accounting is off")
	return v.done()
}
