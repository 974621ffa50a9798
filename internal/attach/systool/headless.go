package systool

import (
	"math"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// Rows of sysstat's tools whose names were cut off, which the figures themselves tell.

var mpstatColumns = []string{"CPU", "%usr", "%nice", "%sys", "%iowait", "%irq", "%soft", "%steal",
	"%guest", "%gnice", "%idle"}

// sarCPUColumns are those of sar -u. Versions before 7.1 have no %steal.
var sarCPUColumns = [][]string{{"CPU", "%user", "%nice", "%system", "%iowait", "%steal", "%idle"},
	{"CPU", "%user", "%nice", "%system", "%iowait", "%idle"}}

// sarDiskColumns are those of sar -d. The amounts read and written are in sectors or in kB, which
// nothing in a row tells, so they have no name here. Versions from 12.1.2 on have a third one.
var sarDiskColumns = [][]string{{"DEV", "tps", "r", "w", "size", "aqu-sz", "await", "svctm", "%util"},
	{"DEV", "tps", "r", "w", "d", "size", "aqu-sz", "await", "%util"}}

func headlessTool(cells []string) sysstatTool {
	tool, _ := headless(cells)
	return tool
}

// headless knows rows of mpstat and of sar -u by a CPU and shares which sum to 100, of sar -d by a
// disk and figures which follow from each other.
func headless(cells []string) (sysstatTool, []string) {
	if len(cells) < 5 || !numeric(cells[1:]) {
		return noTool, nil
	}
	f := make([]float64, len(cells))
	for i, c := range cells {
		f[i], _ = number(c)
	}
	_, cpu := whole(cells[0])
	cpu = cpu || cells[0] == "all"
	switch {
	case cpu && len(cells) == len(mpstatColumns) && shares(f[1:]):
		// sar -u ALL has as many, with steal before the interrupts.
		if max(f[5], f[7]) >= stealMatters {
			return noTool, nil
		}
		return mpstatTool, mpstatColumns
	case cpu && strings.Contains(cells[1], ".") && shares(f[1:]):
		for _, names := range sarCPUColumns {
			if len(cells) == len(names) {
				return sarTool, names
			}
		}
	case !cpu && diskName(cells[0]) && len(cells) == 9:
		if names := diskColumns(f); names != nil {
			return sarTool, names
		}
	}
	return noTool, nil
}

// shares reports whether these are all shares of a CPU's time, in percent.
func shares(f []float64) bool {
	total := 0.0
	for _, one := range f {
		if one < 0 {
			return false
		}
		total += one
	}
	return total >= 99 && total <= 101
}

// diskName reports whether a word is a disk's name as sar prints it.
func diskName(s string) bool {
	for _, p := range []string{"dev", "sd", "vd", "xvd", "hd", "nvme", "dm-", "md", "mmcblk", "loop", "sr", "nbd", "rbd"} {
		if strings.HasPrefix(s, p) && len(s) <= 24 {
			return true
		}
	}
	return false
}

// diskColumns are the columns of a row of sar -d, nil: none fit. The queue is the requests a second
// times how long each takes, by which it is found.
func diskColumns(f []float64) []string {
	const tps = 1
	for _, names := range sarDiskColumns {
		queue := 5
		if names[6] == "aqu-sz" {
			queue = 6
		}
		want := f[tps] * f[queue+1] / 1000
		if f[tps] >= 1 && want >= 0.05 && math.Abs(f[queue]-want) <= 0.05*want+0.02 && f[8] <= impossibleShares {
			return names
		}
	}
	return nil
}

// mostHeadless is how many rows without names may stand above the first line of names: one of each
// CPU.
const mostHeadless = 512

// namesBelow is the tool of the first line of names below rows that lost theirs.
func namesBelow(lines []paste.Line) sysstatTool {
	for _, l := range lines[:min(len(lines), mostHeadless)] {
		if l.Command != "" {
			break
		}
		if _, _, rest, ok := sysstatTime(fields(l.Text)); ok && sysstatNames(rest) != noTool {
			return sysstatNames(rest)
		}
	}
	return noTool
}
