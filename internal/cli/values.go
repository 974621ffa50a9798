package cli

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// The parser's own errors about values speak of types. These say what to type.

// values are options of the parser.
func values() []kong.Option {
	return []kong.Option{
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.NamedMapper("pid", kong.MapperFunc(decodePID)),
	}
}

// word takes the next word of the command line, also one that looks like a flag.
func word(ctx *kong.DecodeContext) (string, error) {
	if ctx.Scan.Peek().IsEOL() {
		return "", errors.New("want a value after it")
	}
	return fmt.Sprint(ctx.Scan.Pop().Value), nil
}

func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	s, err := word(ctx)
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(inHours(s))
	if err != nil {
		return fmt.Errorf("%q: want a number with its unit, as 500ms, 20s or 5m", s)
	}
	target.SetInt(int64(d))
	return nil
}

// inHours writes the days or weeks that a duration starts with in hours, as ParseDuration takes it.
func inHours(s string) string {
	i := strings.IndexAny(s, "dw")
	if i < 0 {
		return s
	}
	n, err := strconv.ParseUint(s[:i], 10, 16)
	if err != nil {
		return s
	}
	hours := uint64(24)
	if s[i] == 'w' {
		hours = 7 * 24
	}
	return strconv.FormatUint(n*hours, 10) + "h" + s[i+1:]
}

func decodePID(ctx *kong.DecodeContext, target reflect.Value) error {
	s, err := word(ctx)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("%q: want the number of a process; a program's name goes without --pid", s)
	}
	target.SetInt(int64(n))
	return nil
}
