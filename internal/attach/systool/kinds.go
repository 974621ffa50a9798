package systool

import "github.com/whystall/whystall/internal/attach"

// Kinds lists the kinds of this room.
func Kinds() []*attach.Kind {
	return append([]*attach.Kind{
		free,
		iostat,
		numastat,
		ps,
		sar,
		top,
		vmstat,
		vmstatSums,
		uptime,
		setting,
		df,
		ss,
		netstatSums,
		netdev,
		tc,
		ethtool,
		busyboxTop,
		foreignTop, foreignSar,
		htop,
		dstat,
		atop,
		containers,
		load,
		curl,
		ping,
		turbostat,
		cpupower,
		lsof,
		iotop,
		mpstat,
		pidstat,
		describePod,
		dockerInspect,
		dockerJSON,
		unit,
		diskSums,
		nfs,
		nmon,
		glances,
		pmval,
	}, gridKinds()...)
}
