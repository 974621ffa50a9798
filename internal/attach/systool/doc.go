// Package systool knows tools which print figures of the system and its processes: top, vmstat,
// pidstat. It refuses to judge by an average since boot, by a single sample, or by a busy CPU.
//
// Files in reading order:
//
//	kinds.go     Kinds: the table of this room
//	number.go    figures as tools print them, amounts with units, medians
//	wrapped.go   rows that a mail or a terminal broke
//	fields.go    tables of names and rows; how far a claim reaches
//	facts.go     the facts that several kinds write for rules over several parts
//	verdict.go   a reading in the making
//	cpu.go       what follows from the use of CPUs and the threads that want one
//	vmstat.go    vmstat N
//	vmstatphases.go  samples which no median stands for
//	vmstats.go   vmstat -s
//	sysstat.go   what the tools of sysstat share: banner, times, names, rows
//	headless.go  rows of these tools that lost their names
//	clock.go     when a screen or a run was taken
//	pidstat.go   pidstat: its tables, and the use of CPUs
//	pidstatmore.go   waits for a CPU, faults, disks and switches
//	pidstatsums.go   shares that are less than the sum of their parts
//	pidstatnames.go  rows of it that lost their names to a filter
//	mpstat.go    mpstat
//	sar.go       sar
//	sarpeaks.go  what stands out in single rows of it
//	sarnet.go    its tables of network interfaces
//	iostat.go    iostat: its reports
//	iostatdevice.go  one device over reports
//	iostatbare.go  rows of it that lost their names to a filter
//	iostatjudge.go   what they say
//	iostatlate.go  disks of which little is asked, and which take long for it
//	dstat.go     dstat
//	free.go      free
//	uptime.go    uptime and w
//	top.go       top: from lines to screens
//	topread.go   top: what screens say
//	toptasks.go  of them: tasks, their states, and threads of the kernel
//	topload.go   of them: the load average against what runs
//	othertop.go  top of busybox; top of other systems, refused
//	toyboxtop.go top of Android: toybox', and the one before it
//	oldtop.go    top of the years up to 2004
//	htop.go      htop's text
//	htoptree.go  trees of processes and their threads
//	atop.go      atop
//	atopsar.go   atopsar
//	ps.go        ps
//	psbare.go    its rows without a line of names
//	numastat.go  numastat
//	container.go docker stats, kubectl top, crictl stats, systemd-cgtop
//	described.go kubectl describe pod, systemctl: limits and states
//	describednode.go kubectl describe node
//	describedpending.go a pod that never ran
//	inspect.go   docker inspect: limits, how a container ended, and its health
//	events.go    events of Kubernetes; the kubelet's log
//	dockerevents.go  docker events
//	systemdlog.go    what systemd logs of services
//	slabs.go     what the kernel keeps objects in: vmstat -m, slabtop
//	grid.go      plain tables: vmstat -d, netstat -i, kubectl get, docker ps
//	foreign.go   tools of macOS, the BSDs, AIX and Solaris, refused by name
//	collectl.go  collectl; vmstat -D; nfsiostat
//	nmon.go      nmon; pmstat and pmval of PCP
//	nmonscreen.go  what nmon shows on a terminal
//	glances.go   glances
//	setting.go   nproc, taskset, chrt, ulimit: context
//	df.go        df
//	ss.go        ss, netstat -nt: a list of sockets
//	ssjudge.go   what it says
//	sockcounts.go  sockets that people counted by state
//	mtr.go       mtr
//	traceroute.go  traceroute
//	netstats.go  netstat -s, nstat
//	netdev.go    ip -s link, ifconfig; tc -s qdisc; ethtool -S
//	client.go    what clients say: ab, wrk, hey, vegeta; curl's timings, ping
//	fio.go       fio
//	time.go      the shell's time
//	benchsql.go  sysbench, pgbench
//	zpool.go     zpool iostat
//	iftop.go     iftop -t
//	clientgo.go  waits of Kubernetes clients for their own limit
//	frequency.go turbostat, cpupower
//	files.go     lsof, iotop
package systool
