package main

import (
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"strings"

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
			if len(args) == 0 {
				return c.show(describedProgram(), overview())
			}
			cmd := find(args[0])
			if cmd == nil {
				return usagef("unknown command %q%s", args[0], didYouMean(args[0]))
			}
			return c.show(cmd.described(), cmd.usage())
		}
	}
}

func overview() string {
	var b strings.Builder
	b.WriteString("Rollway takes logs, keeps them, and finds them again.\n\nUsage: rollway COMMAND [ARGUMENT…]\n\n")
	for _, cmd := range commands() {
		fmt.Fprintf(&b, "  %-10s %s\n", cmd.name, cmd.summary)
	}
	b.WriteString("\n'rollway help COMMAND' or 'rollway COMMAND -h' describes one of them.\n\nEnvironment:\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "  %-14s %s\n", v.name, v.means)
	}
	b.WriteString("\nExit status:")
	for i, e := range exitCodes {
		fmt.Fprintf(&b, "%.*s %d %s", min(i, 1), ",", e.code, e.means)
	}
	return b.String() + ".\n"
}

// A describedFlag is a flag as help, completion and docs/REFERENCE.md have it.
type describedFlag struct {
	Name    string   `json:"name"`
	Value   string   `json:"value,omitempty"` // what it takes; empty: nothing
	Usage   string   `json:"usage"`
	Default string   `json:"default,omitempty"`
	Words   []string `json:"words,omitempty"` // it takes one of these
}

type describedCommand struct {
	Name    string          `json:"name"`
	Summary string          `json:"summary"`
	Usage   string          `json:"usage"`
	Flags   []describedFlag `json:"flags"`
}

func (cmd *command) described() describedCommand {
	d := describedCommand{Name: cmd.name, Summary: cmd.summary, Usage: strings.TrimPrefix(cmd.synopsis(), "Usage: ")}
	flags, _ := cmd.flags()
	flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		described := describedFlag{Name: f.Name, Value: value, Usage: usage}
		if w, ok := f.Value.(*words); ok {
			described.Words = w.list
		}
		if f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" {
			described.Default = f.DefValue
		}
		d.Flags = append(d.Flags, described)
	})
	return d
}

// describedProgram is the overview for programs.
func describedProgram() any {
	var all []describedCommand
	for _, cmd := range commands() {
		all = append(all, cmd.described())
	}
	environment := map[string]string{}
	for _, v := range variables {
		environment[v.name] = v.means
	}
	status := map[string]string{}
	for _, e := range exitCodes {
		status[strconv.Itoa(e.code)] = e.means
	}
	return map[string]any{"commands": all, "environment": environment, "exit_status": status}
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
			v, release, system, arch := collector.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH
			return c.show(map[string]string{"version": v, "go": release, "os": system, "arch": arch},
				fmt.Sprintf("rollway %s %s %s/%s\n", v, release, system, arch))
		}
	},
}
