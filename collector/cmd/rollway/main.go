// Rollway is the collector and its tools in one program: it takes logs over
// HTTP and TCP, keeps them in a journal, and finds them again.
//
//	rollway serve     run a collector
//	rollway check     check a configuration file
//	rollway send      send log files to a collector
//	rollway replay    send events that a collector has rejected again
//	rollway relay     relay connections to a collector, or to any TCP service
//	rollway tail      show the newest lines, and follow
//	rollway query     find lines
//	rollway export    write what a query finds to packed files
//	rollway explain   show what a collector would make of an event
//	rollway clients   show who sends to a collector, and who is turned away
//	rollway cat       print log files
//	rollway verify    check log files for damage
//	rollway reconcile compare what a collector counted with what it stored
//	rollway recover   deliver what a killed process had not written
//	rollway probe     check a folder's disk as a place for logs
//	rollway plan      choose slabs for a workload
//	rollway demo      log through every stage, and verify each line
//
// "rollway help COMMAND" describes each. The exit status is 0 when all went
// well, 1 when something failed, and 2 when the command line was wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway/collector/config"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

type command struct {
	name    string
	summary string // a few words for the list of commands
	args    string // after the name, in the usage line
	needs   string // argument that must be given; "": none
	most    int    // positional arguments at most; -1: any number
	help    string // paragraphs and examples
	// setup declares the flags and returns the function to run once they are parsed.
	setup func(flags *flag.FlagSet) action
}

// An action runs a command with its positional arguments.
type action = func(c *call, args []string) error

type call struct {
	stdin          *os.File
	stdout, stderr *stream
}

// say writes a line for people, to stderr.
func (c *call) say(format string, args ...any) { fmt.Fprintf(c.stderr, format+"\n", args...) }

// tell writes to a standard stream and waits for at most a second: a pipe that nobody
// reads must not stop a service.
func tell(to io.Writer, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = await(ctx, func() (int, error) { return io.WriteString(to, text) })
}

// commands returns the commands in the order of the overview. It is a function because
// help refers to the list that contains it.
func commands() []*command {
	return []*command{serveCommand, checkCommand, sendCommand, replayCommand, relayCommand, tailCommand, queryCommand, exportCommand, explainCommand, clientsCommand, catCommand, verifyCommand, reconcileCommand, recoverCommand, probeCommand, planCommand, demoCommand, versionCommand, helpCommand}
}

type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// errSaid is returned by a command that has already printed its failure.
var errSaid = errors.New("failed")

func main() {
	// A closed pipe, as in "rollway query … | head", is an error of the write and not
	// the end of the process: serve goes on, and other commands end quietly.
	signal.Ignore(syscall.SIGPIPE)
	c := &call{stdin: os.Stdin, stdout: newStream(os.Stdout), stderr: newStream(os.Stderr)}
	log.SetOutput(c.stderr) // of net/http, where nothing else is set
	os.Exit(run(os.Args[1:], c))
}

func run(args []string, c *call) int {
	if len(args) == 0 {
		fmt.Fprint(c.stderr, overview())
		return exitUsage
	}
	name, args := args[0], args[1:]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-v", "-version", "--version":
		name = "version"
	}
	cmd := find(name)
	if cmd == nil {
		fmt.Fprintf(c.stderr, "rollway: unknown command %q%s\nRun 'rollway help' for the list of commands.\n", name, didYouMean(name))
		return exitUsage
	}
	return cmd.run(args, c)
}

func (cmd *command) run(args []string, c *call) int {
	flags := cmd.flags()
	do := cmd.setup(flags)
	positional, err := parseFlags(flags, args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(c.stdout, cmd.usage())
		return exitOK
	}
	switch {
	case err != nil:
		err = usageError{err.Error()}
	case cmd.needs != "" && len(positional) == 0:
		err = usagef("%s is missing", cmd.needs)
	case cmd.most >= 0 && len(positional) > cmd.most:
		err = usagef("unexpected argument %q", positional[cmd.most])
	default:
		err = do(c, positional)
	}
	var usage usageError
	switch {
	case err == nil, closedPipe(err):
		return exitOK
	case errors.As(err, &usage):
		tell(c.stderr, "rollway %s: %v\nRun 'rollway %s -h' for usage.\n", cmd.name, err, cmd.name)
		return exitUsage
	case !errors.Is(err, errSaid):
		tell(c.stderr, "rollway %s: %v\n", cmd.name, err)
	}
	return exitFailed
}

// closedPipe reports whether a write to a pipe failed that nobody reads any more. A
// connection's failure may be the same error of the system.
func closedPipe(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	return errors.Is(err, syscall.EPIPE) && !network
}

func (cmd *command) flags() *flag.FlagSet {
	flags := flag.NewFlagSet(cmd.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

func (cmd *command) usage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: rollway %s", cmd.name)
	if cmd.args != "" {
		b.WriteString(" " + cmd.args)
	}
	fmt.Fprintf(&b, "\n\n%s", strings.TrimLeft(cmd.help, "\n"))
	flags := cmd.flags()
	cmd.setup(flags)
	var list strings.Builder
	flags.SetOutput(&list)
	flags.PrintDefaults()
	if list.Len() > 0 {
		b.WriteString("\nFlags, before or after the other arguments:\n" + list.String())
	}
	return b.String()
}

// parseFlags parses flags anywhere among args and returns the other arguments in order.
// Arguments after "--" are never flags.
func parseFlags(flags *flag.FlagSet, args []string) (positional []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		rest := flags.Args()
		if len(rest) == 0 {
			return positional, nil
		}
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			return append(positional, rest...), nil
		}
		positional, args = append(positional, rest[0]), rest[1:]
	}
}

func find(name string) *command {
	all := commands()
	if i := slices.IndexFunc(all, func(cmd *command) bool { return cmd.name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// didYouMean suggests the command with the most similar name, if there is one.
func didYouMean(name string) string {
	var names []string
	for _, cmd := range commands() {
		names = append(names, cmd.name)
	}
	if nearest := config.Nearest(name, names); nearest != "" {
		return fmt.Sprintf(", did you mean %q?", nearest)
	}
	return ""
}

func overview() string {
	var b strings.Builder
	b.WriteString("Rollway takes logs, keeps them, and finds them again.\n\nUsage: rollway COMMAND [ARGUMENT…]\n\n")
	for _, cmd := range commands() {
		fmt.Fprintf(&b, "  %-9s %s\n", cmd.name, cmd.summary)
	}
	b.WriteString(`
'rollway help COMMAND' or 'rollway COMMAND -h' describes one of them.
Exit status: 0 all went well, 1 something failed, 2 the command line is wrong.
`)
	return b.String()
}

// sizeFlag declares a flag for a number of bytes.
func sizeFlag[T ~int | ~int64](flags *flag.FlagSet, dst *T, name, usage string) {
	flags.Func(name, usage, func(text string) error {
		n, err := config.ParseSize(text)
		if err == nil && config.Size(T(n)) != n {
			err = fmt.Errorf("%q is more than this machine can address", text)
		}
		*dst = T(n)
		return err
	})
}

// listFlag declares a flag that may be repeated.
func listFlag(flags *flag.FlagSet, dst *[]string, name, usage string) {
	flags.Func(name, usage+"; may be repeated", func(text string) error {
		*dst = append(*dst, text)
		return nil
	})
}

// choiceFlag declares a flag with a few values.
func choiceFlag[T any](flags *flag.FlagSet, dst *T, name, usage string, values map[string]T) {
	flags.Func(name, usage, func(text string) error {
		v, ok := values[text]
		if !ok {
			return errors.New("unknown value")
		}
		*dst = v
		return nil
	})
}
