package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// stoodStill adds the causes that fit a process which stood still as a whole.
func stoodStill(r *result, line string) {
	r.candidate("cpu-contention", line)
	r.candidate("cpu-throttled", line)
	r.next("vmstat 1 10; cat /sys/fs/cgroup/CGROUP/cpu.stat", "r says CPUs, si swap, nr_throttled a quota")
}

// zookeeper is ZooKeeper's log: its own fsyncs, and clients that did not hear of it.
var zookeeper = (&spoken{
	name:  "ZooKeeper log",
	marks: []string{"fsync-ing the write ahead log", "have not heard from server in", "Expiring session 0x"},
	rules: []late{
		{pattern.New(`fsync-ing the write ahead log in \S+ took (\d+)ms which will adversely`),
			1e-3, "fsync of the transaction log"},
		{pattern.New(`have not heard from server in (\d+)ms for session ?id 0x[0-9a-f]+`), 1e-3,
			"a client heard nothing of its server"},
		{pattern.New(`Expiring session 0x[0-9a-f]+, timeout of (\d+)ms exceeded`), 1e-3,
			"the server gave up a session after its timeout"},
	},
	tell: func(r *result, s *saidLate) {
		switch fsync, silent := s.worst(0), s.worst(1); {
		case fsync > 0:
			r.fact(FactFsync, attach.Median(s.took[0])*1e3, "")
			r.Means = "ZooKeeper measured its own fsync: writes, and all who wait for them, waited for the disk below its log."
			r.Not = "Whether the device was slow, or the thread had no CPU. The size is that of the file, which is made beforehand, and not of what was written."
			if fsync >= 0.1 {
				r.found("disk-wait", finding.Possible, r.Figures[0], 0)
			} else {
				r.candidate("disk-wait", r.Figures[0])
			}
			r.next("iostat -x 1 30", "whether the disk is slow, or full of others' writes")
		case silent >= 120:
			// A client gives up after two thirds of its session's timeout, 2 to 40 s as a rule.
			r.Means = "A client that runs gives up within its session's timeout, tens of seconds as a rule: so its own process stood still, or its machine, or the clock was set."
			r.Not = "That ZooKeeper or the network was away for so long."
			stoodStill(r, r.Figures[0])
			r.candidate("jvm-safepoint", r.Figures[0])
		case silent > 0:
			r.Means = "The client heard nothing until its session's timeout: the server or the network was late, or the client itself did not run."
			r.next("the server's log of that moment, and the client's log of its collections",
				"an fsync that took long, or a pause of the client")
		default:
			r.Means = "The server heard nothing of these clients: they, or the way to them, were late, or the server itself."
			r.next("the clients' logs of that moment", "whether they ran, and what they waited for")
		}
	},
}).kind()

// A stall of a reactor that a request feels, in s; so many shorter ones add up.
const (
	stallFelt  = 0.025
	manyStalls = 20
)

// seastar is the log of a program on Seastar, such as ScyllaDB, whose reactor did not come back.
var seastar = (&spoken{
	name:  "Seastar reactor stalls",
	marks: []string{"Reactor stalled for "},
	rules: []late{{pattern.New(`\bReactor stalled for (\d+) ms on (shard \d+)`), 1e-3,
		"the reactor did not come back to its loop"}},
	also: pattern.New(`^\s*(?:scylla(?:\[\d+\])?: *)?(?:Backtrace:|0x[0-9a-f]{6,}|/\S+\+0x[0-9a-f]+|\S*\(inlined by\)|kernel callstack:)`),
	tell: func(r *result, s *saidLate) {
		line := r.Figures[0]
		if len(s.took[0]) < manyStalls && s.worst(0) < stallFelt {
			r.Means = "These are few stalls, and each too short for a client to feel: a detector that is set low logs them, and nothing of it is ill."
			r.Not = "That a whole node stood still: a shard is one thread of many."
			return
		}
		r.Means = "A shard has one thread: while it ran on without coming back to its loop, all else on that shard waited."
		r.Not = "What it did: addresses are no names. A task that computes, a page fault and a thread without a CPU look alike."
		r.candidate("event-loop", line)
		r.candidate("cpu-contention", line)
		r.next("seastar-addr2line -e the program", "puts names to the addresses of the backtrace")
	},
}).kind()

// blockedLoop is what watchers of an event loop log: blocked-at of Node.js, and Vert.x.
var blockedLoop = (&spoken{
	name:  "blocked event loop",
	marks: []string{"Blocked for ", " has been blocked for "},
	rules: []late{
		{pattern.New(`\bBlocked for ([\d.]+)ms, operation started here:`), 1e-3, "the event loop was blocked"},
		{pattern.New(`Thread Thread\[#?\d*,?(vert\.x-eventloop-thread-\d+|[^\],]+).*\bhas been blocked for (\d+) ms, time limit is \d+`), 0, ""},
	},
	also: pattern.New(`^\s*(?:[\w.-]+\[[\w.]+\]: )?\s*at \S`),
	tell: tellBlocked,
}).kind()

var vertxBlocked = pattern.New(`Thread\[#?\d*,?([\w.-]+?-thread-\d+)\b.* has been blocked for (\d+) ms`)

func tellBlocked(r *result, s *saidLate) {
	worst, loops := map[string]float64{}, 0
	for _, text := range s.text {
		if m := vertxBlocked.FindStringSubmatch(text); m != nil {
			ms, _ := number(m[2])
			worst[m[1]] = max(worst[m[1]], ms/1e3) // one wait is logged each second
		}
	}
	most, who := 0.0, ""
	for name, v := range worst {
		if strings.Contains(name, "eventloop") {
			loops++
		}
		if v > most || v == most && name < who {
			most, who = v, name
		}
	}
	if who != "" {
		r.figure(fmt.Sprintf("%s was blocked for %s at the worst; %s in all", who, dur(most),
			attach.Plural(len(worst), "thread")))
	}
	if len(r.Figures) == 0 {
		r.Means = "A thread was blocked; for how long cannot be read."
		return
	}
	r.Means = "The one thread of an event loop did not come back for so long: all its other requests waited."
	if who != "" && loops == 0 {
		r.Means = "A worker was busy for long: that holds up no event loop, only who waits for that worker."
		return
	}
	r.Not = "What ran: the stack is where the operation was started, or what ran at that instant; a process without a CPU looks the same."
	r.candidate("event-loop", r.Figures[0])
	r.candidate("cpu-contention", r.Figures[0])
}

// guestSafepoint is TruffleRuby's wait for its threads. It logs one wait again and again.
var guestSafepoint = (&spoken{
	name:  "TruffleRuby safepoint",
	marks: []string{" seconds in the SafepointManager"},
	rules: []late{{pattern.New(`waited (\d+) seconds in the SafepointManager but (\d+ of \d+ threads) did not arrive`), 1, ""}},
	tell: func(r *result, s *saidLate) {
		r.figure(fmt.Sprintf("a safepoint was waited for, for %s at the worst: %s did not arrive",
			dur(s.worst(0)), attach.Largest(s.of[0])[0]))
		r.Means = "All other threads wait until the last one arrives: it is in a call that blocks, most likely outside of Ruby."
		r.Not = "Which call that is. Lines of one wait repeat with a growing time: they do not add up."
		r.next("jstack or gdb of the process while it waits", "names the thread that does not arrive, and its call")
	},
}).kind()

// hashiRaft is what programs on hashicorp/raft log, such as Consul, Nomad and InfluxDB: a leader
// that does not reach its followers.
var hashiRaft = (&spoken{
	name: "log of hashicorp/raft",
	marks: []string{"raft: Failed to contact", "raft: failed to contact", "raft: Heartbeat timeout",
		"raft: heartbeat timeout"},
	rules: []late{
		{pattern.New(`\braft: Failed to contact ([^\s=]+:\d+|[0-9a-f-]{36}) in \S+`), 0, ""},
		{pattern.New(`\braft: failed to contact: .*\btime=\S+`), 0, ""},
		{pattern.New(`\braft: [Ff]ailed to contact quorum of nodes, stepping down`), 0, ""},
		{pattern.New(`\braft: [Hh]eartbeat timeout .*(?:reached|starting)`), 0, ""},
	},
	also: pattern.New(`\[(?:TRACE|DEBUG|INFO|WARN|ERR|ERROR)\] +(?:[\w.]+[.:] ?)?(?:raft|memberlist|serf|consul|nomad)(?:\.\w+)*: `),
	tell: tellRaft,
}).kind()

var (
	raftMissed = pattern.New(`\braft: Failed to contact ([^\s=]+:\d+|[0-9a-f-]{36}) in ([\d.]+(?:ms|µs|s|m[\d.]+s))`)
	raftKeyed  = pattern.New(`\braft: failed to contact: .*?(?:server-id|peer|address)="?([^\s"]+)"?.*\btime=([\d.]+(?:ms|µs|s|m[\d.]+s))`)
)

func tellRaft(r *result, s *saidLate) {
	peers := map[string]float64{}
	quorum, beats := 0, 0
	for _, text := range s.text {
		m := raftMissed.FindStringSubmatch(text)
		if m == nil {
			m = raftKeyed.FindStringSubmatch(text)
		}
		if m != nil && len(peers) < mostOwners {
			v, _ := seconds(m[2])
			peers[m[1]] = max(peers[m[1]], v)
		}
		if strings.Contains(text, "contact quorum of nodes, stepping down") {
			quorum++
		}
		if strings.Contains(text, "eartbeat timeout") {
			beats++
		}
	}
	names := attach.Largest(peers)
	var list []string
	for _, n := range names[:min(len(names), 3)] {
		list = append(list, fmt.Sprintf("%s for %s", n, dur(peers[n])))
	}
	if len(list) > 0 {
		r.figure("the leader did not reach " + strings.Join(list, ", "))
	}
	if quorum > 0 {
		r.figure("it lost the majority and stepped down: " + times(quorum))
	}
	if beats > 0 {
		r.figure("a follower heard nothing of a leader: " + times(beats))
	}
	r.Not = "Whether the peers, the network or this process was late: each of them looks alike from here."
	switch {
	case len(peers) == 1 && quorum == 0 && peers[names[0]] >= peerGone:
		r.outside("the member "+names[0]+", or the way to it: these lines show no other that the leader misses", r.Figures[0], 0)
	case len(peers) > 1 && peers[names[len(names)-1]] >= peerGone:
		r.Means = "Several peers are missed for so long that they are away, or the network between: a leader that is only late does not stay one."
	case len(peers) == 1:
		r.Means = "A peer was missed for a moment: it was late, or the way to it, or the leader itself."
	case len(peers) > 1:
		r.Means = "Several peers were missed by one leader: it was late itself, as where its disk is slow or it has no CPU, its network failed, or they were away."
		r.candidate("disk-wait", r.Figures[0])
		r.candidate("cpu-contention", r.Figures[0])
		r.next("the other members' logs of that moment", "whether they reached each other while this one reached none")
	default:
		r.Means = "Members did not hear of each other in time; these lines do not say which of them was late."
	}
}

// peerGone is for how long, in s, a peer is missed that is away, or cut off: a leader that does not
// reach most of its peers steps down long before.
const peerGone = 5.0

// redisClient is StackExchange.Redis, whose exceptions say where a request was.
var redisClient = (&spoken{
	name:  "StackExchange.Redis timeout",
	marks: []string{"Timeout performing ", "Timeout awaiting response"},
	rules: []late{
		{pattern.New(`Timeout (?:performing|awaiting response)\b.*?\b(\d+)ms\b.*\binst: ?\d+`),
			1e-3, "a command waited until its timeout"},
		{pattern.New(`Timeout performing \w+ .*\binst: ?\d+, (?:mgr|queue|clientName)`), 0, ""}, // version 1
	},
	tell: tellRedisClient,
}).kind()

var (
	clientIn   = pattern.New(`\bin[:=] ?(\d+)`)
	clientSent = pattern.New(`\bqs[:=] ?(\d+)`)
	clientBusy = pattern.New(`WORKER: \(Busy=(\d+),Free=\d+,Min=(\d+)`)
	clientCPU  = pattern.New(`Local-CPU: ([\d.]+)%`)
)

func tellRedisClient(r *result, s *saidLate) {
	unread, sent, over := 0, 0.0, 0
	var busy, cpu []float64
	floor := 0.0
	for _, text := range s.text {
		if v := counted(nil, clientIn, text); len(v) > 0 && v[0] > 0 {
			unread++
		}
		if v := counted(nil, clientSent, text); len(v) > 0 {
			sent = max(sent, v[0])
		}
		if m := clientBusy.FindStringSubmatch(text); m != nil {
			b, _ := number(m[1])
			floor, _ = number(m[2])
			busy = append(busy, b)
			if b > floor {
				over++
			}
		}
		cpu = counted(cpu, clientCPU, text)
	}
	line := fmt.Sprintf("in %d of %d, bytes of the answer lay unread in the client's socket; up to %s commands were sent and unanswered", unread, len(s.text), count(sent))
	r.figure(line)
	if len(busy) > 0 {
		r.figure(fmt.Sprintf("busy workers of the client's thread pool: %s at most, of %s that start at once", count(slices.Max(busy)), count(floor)))
	}
	if len(cpu) > 0 {
		r.figure(fmt.Sprintf("the client's machine: CPU %s %% at most", three(slices.Max(cpu))))
	}
	switch {
	case over > 0:
		r.Means = "The client's thread pool has more work than threads that start at once: answers wait for a thread, whatever Redis does."
		r.candidate("pool-exhaustion", fmt.Sprintf("%s busy workers, of %s that start at once",
			count(slices.Max(busy)), count(floor)))
	case 2*unread > len(s.text):
		r.Means = "Answers had arrived and nobody read them: the client's process was late, for lack of a CPU or of a free thread, and not Redis."
		r.candidate("cpu-contention", line)
		r.candidate("pool-exhaustion", line)
	default:
		r.Means = "No answer had come: Redis, one of its slow commands, the network, or the client had not sent the command yet."
		if sent > 0 {
			r.Means = "Commands were sent, and no answer had come: Redis, one of its slow commands, or the network."
		}
		r.next("redis-cli SLOWLOG GET 25; redis-cli LATENCY LATEST", "whether Redis itself was held up")
	}
	r.Not = "How long Redis took: the client's clock is all that it has."
}

// kafka is a broker's log: replicas that fall behind, and steps of its log that took long.
var kafka = (&spoken{
	name: "Kafka broker log",
	marks: []string{"Shrinking ISR from ", "Shrinking ISR for ", "Rolled new log segment",
		"Wrote producer snapshot", "Session expired", "in purgatory", "Expanding ISR from "},
	rules: []late{
		{pattern.New(`\bShrinking ISR (?:from|for) `), 0, ""},
		{pattern.New(`\bExpanding ISR (?:from|for) `), 0, ""},
		{pattern.New(`\bRolled new log segment (?:at offset \d+|for \S+) in ([\d.]+) ms\.`), 1e-3,
			"a new segment of the log was rolled"},
		{pattern.New(`\bWrote producer snapshot at offset \d+ with \d+ producer ids in ([\d.]+) ms\.`), 1e-3, "a snapshot of producers was written"},
	},
	tell: func(r *result, s *saidLate) {
		shrunk, grown := 0, 0
		for _, text := range s.text {
			if strings.Contains(text, "Shrinking ISR") {
				shrunk++
			} else if strings.Contains(text, "Expanding ISR") {
				grown++
			}
		}
		if shrunk+grown > 0 {
			r.figure(fmt.Sprintf("replicas fell behind their leader (Shrinking ISR): %s; came back: %s",
				timesOr(shrunk, "never"), timesOr(grown, "never")))
		}
		disk := max(s.worst(2), s.worst(3))
		switch {
		case disk >= 0.5:
			r.Means = "Steps of the broker's log that are a few writes took long: the disk below it was slow, or the broker had no CPU."
			r.candidate("disk-wait", r.Figures[0])
			r.candidate("cpu-contention", r.Figures[0])
			r.next("iostat -x 1 30", "whether the disk is slow")
		case shrunk > 0:
			r.Means = "Replicas did not fetch in time (replica.lag.time.max.ms): those brokers, the network or this leader was late. Producers that want all acknowledgements wait."
			r.next("the log of those brokers at that moment, and their collections", "which of them stood still")
		case len(s.took[2])+len(s.took[3]) == 0:
			r.Means = "Replicas came back; these lines do not say what had kept them behind."
		default:
			r.Means = "Steps of the broker's log, none of which took long."
		}
		r.Not = "How long a producer or a consumer waited: the broker's log has no times of requests."
	},
}).kind()
