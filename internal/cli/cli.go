package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/whystall/whystall/internal/report"
)

// Exit statuses. Scripts rely on them: they are listed in the help.
const (
	statusNothing  = 0 // looked, nothing found
	statusFound    = 1
	statusUsage    = 2
	statusNoLook   = 3 // could not look: unreadable input, unreachable service, nothing for any detector
	statusInternal = statusNoLook
)

// console is the part of the world that a command may use. kong passes it to the command:
//
//	func (c *recordCmd) Run(con *console) error
//
// A nil error is status 0, and an [exit] carries another status. Any other error is printed as one
// line on stderr and means statusNoLook. Use [usagef] for what the user typed wrongly.
type console struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	command        string // whose help to name: "whystall explain"
}

// command is a row of the table of commands. Each command's file adds its own with register.
type command struct {
	Name  string
	Help  string // one line
	Order int    // place in the help
	New   func() any

	Hidden bool // for whystall itself: in no list
}

var commands []*command

func register(c *command) *command {
	commands = append(commands, c)
	return c
}

// exit ends a command with a status and prints nothing.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// usageError is what the user typed wrongly.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

const description = `whystall finds out why a Linux service is slow when CPU, disk and network look fine. It accounts
for every nanosecond that slow requests waited, and names the cause with its proof.

Examples:
  whystall diagnose 4121                                            record 20 s, explain, print
  whystall diagnose :8080                                           whoever listens on that port
  whystall diagnose http://localhost:6060 --for 60s                 a Go service elsewhere
  whystall record shop.service --for 1h --slow-over 500ms           wait for the stall
  whystall doctor 4121                                              what can be seen of it here?
  whystall explain trace.out                                        files that you have
  whystall explain slow.case --format json                          for a program
  whystall report slow.case -o slow.html                            a page for a browser
  whystall compare before.case after.case                           did the remedy work?
  whystall causes lock-contention                                   a page of the manual

Exit status:
  0  nothing found
  1  a cause was found
  2  wrong usage
  3  could not look, or no request was slow; standard error or the report says why`

// Main runs the command line args (without the program's name) and returns the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	con := &console{stdin: stdin, stdout: stdout, stderr: stderr, getenv: getenv}
	// kong calls Exit after --help and --version and returns. The parse goes on, and its error does
	// not matter.
	left := -1
	parser, err := newParser(con, func(status int) {
		if left < 0 {
			left = status
		}
	})
	if err != nil {
		return con.fail(err)
	}
	if args = markSides(habits(args)); isCommand(args[0]) {
		con.command = "whystall " + args[0]
	}
	ctx, err := parser.Parse(args)
	if left >= 0 {
		return left
	}
	if err != nil {
		if st, serr := os.Stat(args[0]); serr == nil && !isCommand(args[0]) &&
			(st.Mode().IsRegular() || strings.HasSuffix(args[0], ".part")) {
			err = fmt.Errorf("%s is a file: whystall explain %s", args[0], shellWord(args[0]))
		}
		return con.fail(usageError{err})
	}
	return con.fail(ctx.Run(con))
}

// habits turns what people type out of habit into commands.
func habits(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "--version":
		return []string{"version"}
	case args[0] == "help":
		return append(args[1:len(args):len(args)], "--help")
	}
	return args
}

func isCommand(name string) bool {
	return slices.ContainsFunc(commands, func(c *command) bool { return c.Name == name })
}

func newParser(con *console, leave func(int)) (*kong.Kong, error) {
	var root struct{}
	options := []kong.Option{
		kong.Name("whystall"),
		kong.Description(description),
		kong.Writers(con.stdout, con.stderr),
		kong.Exit(leave),
		kong.Help(printHelp),
		outputVars(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	}
	options = append(options, values()...)
	for _, c := range sorted() {
		var tags []string
		if c.Hidden {
			tags = append(tags, `hidden:""`)
		}
		options = append(options, kong.DynamicCommand(c.Name, c.Help, "", c.New(), tags...))
	}
	return kong.New(&root, options...)
}

func sorted() []*command {
	s := append([]*command(nil), commands...)
	sort.SliceStable(s, func(i, j int) bool { return s[i].Order < s[j].Order })
	return s
}

// fail prints err as one line and returns the status that it means.
func (con *console) fail(err error) int {
	if err == nil {
		return statusNothing
	}
	var status exit
	if errors.As(err, &status) {
		return int(status)
	}
	var usage usageError
	if errors.As(err, &usage) {
		con.say("%v; see %s --help", err, cmp.Or(con.command, "whystall"))
		return statusUsage
	}
	con.say("%v", err)
	return statusNoLook
}

// say prints one line on stderr. Errors quote names from files and from servers. So what a terminal
// would act upon is made visible, and a line break cannot forge a second line.
func (con *console) say(format string, args ...any) {
	s := strings.TrimSpace(fmt.Sprintf(format, args...))
	fmt.Fprintf(con.stderr, "whystall: %s\n", report.Printable(s))
}

// sayRow prints a line of a table on stderr, below a line of say. What is in it must be printable.
func (con *console) sayRow(format string, args ...any) {
	fmt.Fprintln(con.stderr, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}
