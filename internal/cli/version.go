package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

var _ = register(&command{
	Name: "version", Help: "Print the version.", Order: 80,
	New: func() any { return &versionCmd{} },
})

type versionCmd struct{}

func (*versionCmd) Run(con *console) error {
	_, err := fmt.Fprintf(con.stdout, "whystall %s %s %s/%s\n", version(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
	return err
}

// version is the module's version. For a build from a checkout it is the revision, if the go
// command recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
