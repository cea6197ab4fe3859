// Rollway is the collector and its tools in one program: it takes logs over
// HTTP and TCP, keeps them in a journal, and finds them again.
//
// "rollway help" lists the commands, and "rollway help COMMAND" describes one;
// docs/REFERENCE.md has them all. The exit status is 0 when all went well, 1 when
// something failed, and 2 when the command line was wrong.
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

// exitCodes says what the exit statuses mean.
var exitCodes = []struct {
	code  int
	means string
}{{exitOK, "all went well"}, {exitFailed, "something failed"}, {exitUsage, "the command line is wrong"}}

// variables are what the commands read of the environment.
var variables = []struct{ name, means string }{
	{addrEnv, "the collector's URL, for commands without -addr"},
	{tokenEnv, "the secret of a token, for commands that ask a collector"},
	{caEnv, "a PEM file of the authorities that sign collectors' certificates, instead of the system's"},
	{"NO_COLOR", "if it is not empty, nothing is colored"},
	{"TERM", "dumb: the terminal shows no colors"},
	{"NOTIFY_SOCKET", "where serve tells systemd how it fares"},
	{"WATCHDOG_USEC", "after how many microseconds without a sign of life systemd restarts serve"},
	{"WATCHDOG_PID", "the process that is meant, if it is not every one"},
	{"GOMEMLIMIT", "the memory limit of serve, instead of the one that it computes"},
}

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
	json           bool // -o json
}

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
	return []*command{serveCommand, initCommand, checkCommand, sendCommand, replayCommand, relayCommand, tailCommand, queryCommand, exportCommand, explainCommand, clientsCommand, catCommand, verifyCommand, reconcileCommand, recoverCommand, backupCommand, restoreCommand, doctorCommand, planCommand, demoCommand, completionCommand, versionCommand, helpCommand}
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
		c.json = asksJSON(args)
		return c.fail("", "help' for the list of commands", usagef("unknown command %q%s", name, didYouMean(name)))
	}
	return cmd.run(args, c)
}

func (cmd *command) run(args []string, c *call) int {
	flags, do := cmd.flags()
	positional, err := parseFlags(flags, args)
	c.json = flags.Lookup("o").Value.String() == "json" || err != nil && asksJSON(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		err = c.show(cmd.described(), cmd.usage())
	case err != nil:
		err = usageError{err.Error()}
	case cmd.needs != "" && len(positional) == 0:
		err = usagef("%s is missing", cmd.needs)
	case cmd.most >= 0 && len(positional) > cmd.most:
		err = usagef("unexpected argument %q", positional[cmd.most])
	default:
		err = do(c, positional)
	}
	return c.fail(cmd.name, cmd.name+" -h' for usage", err)
}

// fail prints the error of a command, if it is one, and where to find help with a command
// line that is wrong. It returns the exit status.
func (c *call) fail(name, help string, err error) int {
	if err == nil || closedPipe(err) {
		return exitOK
	}
	code := exitFailed
	if errors.As(err, new(usageError)) {
		code = exitUsage
	}
	switch {
	case errors.Is(err, errSaid):
	case c.json:
		list, _ := errors.AsType[config.Errors](err)
		tell(c.stderr, "%s", jsonLine(struct {
			Command string        `json:"command,omitempty"`
			Error   string        `json:"error"`
			Exit    int           `json:"exit"`
			Errors  config.Errors `json:"errors,omitempty"` // of a configuration, one by one
		}{name, err.Error(), code, list}))
	case code == exitUsage:
		tell(c.stderr, "%s: %v\nRun 'rollway %s.\n", strings.TrimSpace("rollway "+name), err, help)
	default:
		tell(c.stderr, "rollway %s: %v\n", name, err)
	}
	return code
}

// closedPipe reports whether a write to a pipe failed that nobody reads any more. A
// connection's failure may be the same error of the system.
func closedPipe(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	return errors.Is(err, syscall.EPIPE) && !network
}

// flags returns the flags of cmd and what to run once they are parsed. Every command has -o.
func (cmd *command) flags() (*flag.FlagSet, action) {
	flags := flag.NewFlagSet(cmd.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	do := cmd.setup(flags)
	if flags.Lookup("o") == nil {
		wordFlag(flags, "o", "print `FORMAT`: text, or json, also of errors (default text)", nil, "text", "json")
	}
	return flags, do
}

func (cmd *command) usage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s", cmd.synopsis(), strings.TrimLeft(cmd.help, "\n"))
	flags, _ := cmd.flags()
	b.WriteString("\nFlags, before or after the other arguments:\n")
	flags.SetOutput(&b)
	flags.PrintDefaults()
	return b.String()
}

func (cmd *command) synopsis() string {
	return strings.TrimSpace("Usage: rollway " + cmd.name + " " + cmd.args)
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
