// Package fleet asks a Prometheus-compatible engine about a fleet: what cannot be seen in it, then
// which hosts, containers and services lose time to what, how much, since when, and how sure that
// is. The engine does the work; answers are top lists. It refuses to store anything, to ask what
// costs more than it may, and to call anything proven: metrics see no request.
//
// Files in reading order:
//
//	ask.go        Engine: questions to the engine, their bounds and what they cost
//	transport.go  what goes over the wire: credentials, redirects, bounds of answers
//	errors.go     what an engine's refusal means, in one line
//	tape.go       records answers, and plays them back
//	dump.go       samples in files: how an engine serves a copy
//	dump_wal.go   the times of a log of samples that are in no block yet
//	dump_archive.go such files in an archive, or packed
//	keys.go       which labels name a cluster, a host, a container, a service
//	promql.go     expressions, written so that copies, gaps and engines do not change them
//	wants.go      the metrics that rules want, and the setting that brings each
//	coverage.go   what cannot be seen
//	rules.go      Rule: what the table of rules holds; rules_*.go are its rows
//	look.go       Look: all of it, in stages
//	split.go      a question that would read too much, in parts
//	rank.go       candidates of a rule to groups
//	count.go      how many are ill, without listing them
//	since.go      when it started
//	arrange.go    the nearer cause stands first, the other under it
//	capture.go    the command for a deep capture
//	made.go       series for unit tests of rules
//	rulesfile.go  recording rules, alerts and their unit tests
//	dashboard.go  a dashboard for Grafana
//	result.go     what comes out: plain data
package fleet
