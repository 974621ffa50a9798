// Package twin holds traces written by hand, for tests. A text that a person can check by eye is
// made into the events that a real trace would have. The package refuses what no runtime would
// write, unless the text says that the trace is damaged. [Parse] describes the language.
//
// In reading order:
//
//   - trace.go: the result, a source of events;
//   - item.go: what a line says;
//   - parser.go: what is kept while lines are read;
//   - process.go, line.go: the lines of the process, and those of a goroutine;
//   - order.go: who woke whom, and the order of one instant;
//   - gen.go: from lines to events;
//   - twin.go: Parse.
package twin
