package main

import (
	"flag"
	"fmt"
)

var helpCommand = &command{
	name:    "help",
	summary: "describe a command",
	args:    "[COMMAND]",
	help: `
Describes a command, or lists all of them.

Examples:
  rollway help
  rollway help send
`,
}

// init completes helpCommand: setupHelp refers to the list that contains it.
func init() { helpCommand.setup = setupHelp }

func setupHelp(*flag.FlagSet) func(*call, []string) error {
	return func(c *call, args []string) error {
		switch len(args) {
		case 0:
			_, err := fmt.Fprint(c.stdout, overview())
			return err
		case 1:
			cmd := find(args[0])
			if cmd == nil {
				return usagef("unknown command %q%s", args[0], didYouMean(args[0]))
			}
			_, err := fmt.Fprint(c.stdout, cmd.usage())
			return err
		}
		return usagef("one command at a time, got %d", len(args))
	}
}
