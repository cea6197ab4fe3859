package main

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

var versionCommand = &command{
	name:    "version",
	summary: "print the version of this program",
	help: `
Prints the version, the commit if it is known, the Go release and the platform.

Example:
  rollway version
`,
	setup: func(*flag.FlagSet) func(*call, []string) error {
		return func(c *call, args []string) error {
			if len(args) > 0 {
				return usagef("unexpected argument %q", args[0])
			}
			_, err := fmt.Fprintf(c.stdout, "rollway %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}
	},
}

// version returns the module's version and, for a build from a checkout, the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	var revision, modified string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				modified = ", with changes"
			}
		}
	}
	if revision != "" {
		v += " (" + revision + modified + ")"
	}
	return v
}
