package main

import (
	"flag"
	"fmt"
	"runtime"

	"github.com/rollway/rollway/collector"
)

var helpCommand = &command{
	name:    "help",
	summary: "describe a command",
	args:    "[COMMAND]",
	most:    1,
	help: `
Describes a command, or lists all of them.

Examples:
  rollway help
  rollway help send
`,
}

// init completes helpCommand, whose action refers to the list that contains it.
func init() {
	helpCommand.setup = func(*flag.FlagSet) action {
		return func(c *call, args []string) error {
			text := overview()
			if len(args) == 1 {
				cmd := find(args[0])
				if cmd == nil {
					return usagef("unknown command %q%s", args[0], didYouMean(args[0]))
				}
				text = cmd.usage()
			}
			_, err := fmt.Fprint(c.stdout, text)
			return err
		}
	}
}

var versionCommand = &command{
	name:    "version",
	summary: "print the version of this program",
	help: `
Prints the version, the commit if it is known, the Go release and the platform.

Example:
  rollway version
`,
	setup: func(*flag.FlagSet) action {
		return func(c *call, _ []string) error {
			_, err := fmt.Fprintf(c.stdout, "rollway %s %s %s/%s\n", collector.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}
	},
}
