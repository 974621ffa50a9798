package target

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Kind says what an argument names.
type Kind string

// Kinds of arguments.
const (
	PID       Kind = "pid"
	Port      Kind = "port"
	URL       Kind = "URL"
	Unit      Kind = "unit"
	Container Kind = "container" // by its id
	Named     Kind = "container name"
	Program   Kind = "program"
)

// Arg is an argument that has been understood. Value is what is left of it without the prefix of
// its kind.
type Arg struct {
	Kind   Kind
	Value  string
	Number int // of PID and Port
}

// A container's id is 64 hexadecimal digits, of which people write 12 or more. No pid has so many.
const (
	shortID = 12
	longID  = 64
)

// Parse says what an argument names, by its form alone.
func Parse(arg string) (Arg, error) {
	switch {
	case arg == "":
		return Arg{}, fmt.Errorf("want a process: its pid, program, :PORT, unit, container or pprof URL")
	case strings.Contains(arg, "://"):
		return Arg{Kind: URL, Value: arg}, nil
	case strings.HasPrefix(arg, "container:"):
		name := strings.TrimPrefix(arg, "container:")
		if !plainName(name) {
			return Arg{}, fmt.Errorf("%s: want container:NAME, with letters, digits, ., _ and -", arg)
		}
		return Arg{Kind: Named, Value: name}, nil
	case strings.HasPrefix(arg, "unit:"):
		return unit(arg, strings.TrimPrefix(arg, "unit:"))
	case arg[0] == ':':
		n, err := strconv.Atoi(arg[1:])
		if err != nil || n < 1 || n > 65535 {
			return Arg{}, fmt.Errorf("%s: want a port from :1 to :65535", arg)
		}
		return Arg{Kind: Port, Value: arg, Number: n}, nil
	case isID(arg):
		return Arg{Kind: Container, Value: strings.ToLower(arg)}, nil
	case digits(arg):
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 || n > math.MaxInt32 {
			return Arg{}, fmt.Errorf("%s: want the number of a process", arg)
		}
		return Arg{Kind: PID, Value: arg, Number: n}, nil
	case strings.HasSuffix(arg, ".service"):
		return unit(arg, arg)
	case strings.Contains(arg, ":"):
		return Arg{}, fmt.Errorf("%s: want a URL with its scheme, as http://%s, or :PORT for the process that listens there", arg, arg)
	case strings.ContainsAny(arg, "/\x00\n"):
		return Arg{}, fmt.Errorf("%q: want the program's name without its folder", arg)
	}
	return Arg{Kind: Program, Value: arg}, nil
}

// unit is the name of a systemd unit. Without a suffix it is a service, as for systemctl.
func unit(arg, name string) (Arg, error) {
	if name == "" || strings.ContainsAny(name, "/ \x00\n") {
		return Arg{}, fmt.Errorf("%q: want unit:NAME or NAME.service", arg)
	}
	if !strings.Contains(name, ".") {
		name += ".service"
	}
	return Arg{Kind: Unit, Value: name}, nil
}

func isID(s string) bool {
	if len(s) < shortID || len(s) > longID {
		return false
	}
	return strings.Trim(strings.ToLower(s), "0123456789abcdef") == ""
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// plainName reports whether s may be a container's name. It goes to another program's command line,
// so it must not look like a flag.
func plainName(s string) bool {
	if s == "" || len(s) > 255 || s[0] == '-' || s[0] == '.' {
		return false
	}
	return strings.Trim(strings.ToLower(s), "0123456789abcdefghijklmnopqrstuvwxyz_.-") == ""
}
