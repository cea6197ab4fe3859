package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/slab"
	"golang.org/x/term"
)

var serveCommand = &command{
	name:    "serve",
	summary: "run a collector",
	help: `
Runs a collector until it gets SIGINT (Ctrl-C) or SIGTERM: it then takes nothing
more, answers what it has taken, makes the journal durable and exits with 0. A
second signal ends it at once. SIGHUP has it read enrich, rules and the files of
tokens, certificates and networks again; what cannot be used changes nothing.

The garbage collector keeps to limits.in_flight and what else is in use, with
a quarter of the former for garbage, and to nine tenths of the memory that the
cgroup of the process allows (both versions, and the groups around it);
GOMEMLIMIT in the environment says something else.

Without a configuration file all settings are at their defaults; 'rollway check
-example' prints them with their meaning. Flags override the file.

Where it listens and what it found goes to standard output, its own log to
standard error: for people on a terminal, as JSON elsewhere.

Examples:
  rollway serve
  rollway serve -data /var/lib/rollway -listen 127.0.0.1:4318
  rollway serve -config /etc/rollway.yaml

Settings of the file:
` + settingsHelp(),
	setup: setupServe,
}

// settingsHelp lists the keys of a configuration file, a line for each section.
func settingsHelp() string {
	var b strings.Builder
	var single []string
	last := ""
	for _, key := range config.Keys() {
		section, name, nested := strings.Cut(key, ".")
		switch {
		case !nested:
			single = append(single, key)
		case section == last:
			b.WriteString(" " + name)
		default:
			fmt.Fprintf(&b, "\n  %s: %s", section, name)
			last = section
		}
	}
	return "  " + strings.Join(single, " ") + b.String() + "\n"
}

// serveFlags are the flags that override settings of the file.
var serveFlags = []struct{ name, key, help string }{
	{"listen", "listen", "where HTTP requests are taken, `ADDR` as host:port (default \"127.0.0.1:4318\")"},
	{"listen-tcp", "listen_tcp", "where NDJSON over TCP is taken, `ADDR` as host:port; empty: nowhere"},
	{"listen-grpc", "listen_grpc", "where OTLP over gRPC is taken besides, `ADDR` as host:port; auto: at port 4317 if -listen has 4318; empty: at -listen alone (default \"auto\")"},
	{"debug-listen", "debug_listen", "where profiles and figures of the runtime can be asked for, `ADDR` as host:port; empty: nowhere"},
	{"listen-syslog", "listen_syslog", "where syslog is taken, `ADDRS` as in \"udp://127.0.0.1:5514 tcp://127.0.0.1:5514\"; empty: nowhere"},
	{"listen-forward", "listen_forward", "where the Fluent forward protocol is taken, `ADDRS` as in \"tcp://127.0.0.1:24224\"; empty: nowhere"},
	{"data", "data", "the `DIR` that holds the journal (default \"./data\")"},
	{"durability", "journal.durability", "what an answer promises, `KIND` being buffered or synced: lines survive the end of the process, or of the machine (default \"buffered\")"},
}

func setupServe(flags *flag.FlagSet) func(*call, []string) error {
	path := flags.String("config", "", "read settings from this YAML `FILE`")
	values := make([]*string, len(serveFlags))
	for i, f := range serveFlags {
		values[i] = flags.String(f.name, "", f.help)
	}
	return func(c *call, args []string) error {
		if len(args) > 0 {
			return usagef("unexpected argument %q", args[0])
		}
		settings := func() (config.Config, error) { return serveSettings(flags, *path, values) }
		cfg, err := settings()
		if err != nil {
			return sayConfigErrors(c, "serve", err)
		}
		return serve(c, cfg, settings)
	}
}

// serveSettings reads the file at path, "" being none, and puts the flags that
// were given over it.
func serveSettings(flags *flag.FlagSet, path string, values []*string) (cfg config.Config, err error) {
	cfg = config.Default()
	if path != "" {
		if cfg, err = config.Load(path); err != nil {
			return cfg, err
		}
	}
	flags.Visit(func(given *flag.Flag) {
		if given.Name == "config" && path == "" { // of a variable that is not set: not the defaults, which let everybody in
			err = usagef("-config: a FILE is wanted")
		}
		for i, f := range serveFlags {
			if f.name == given.Name && err == nil {
				if wrong := cfg.Set(f.key, *values[i]); wrong != nil {
					err = usagef("-%s: %v", f.name, wrong)
				}
			}
		}
	})
	return cfg, err
}

// serve runs a collector. settings reads its configuration once more.
func serve(c *call, cfg config.Config, settings func() (config.Config, error)) error {
	ctx, stop := interruptible()
	defer stop()
	again := make(chan os.Signal, 1) // from the beginning: SIGHUP would end a process that does not ask for it
	signal.Notify(again, hangup...)
	defer signal.Stop(again)
	log, err := ownLog(c.stderr, slog.LevelInfo)
	if err != nil {
		return err
	}
	defer log.Close()
	own := slog.New(log.Handler())
	limitMemory(own, os.DirFS("/"))
	warnMemory(own, cfg.Limits.InFlight)
	defer boundGarbage(cfg.Limits.InFlight)()
	var debug net.Addr
	if cfg.DebugListen != "" {
		at, stop, err := serveDebug(cfg.DebugListen, own)
		if err != nil {
			return err
		}
		defer stop()
		debug = at
	}
	col, err := collector.New(cfg, own)
	if err != nil {
		return sayConfigErrors(c, "serve", err)
	}
	tell(c.stdout, "%s", banner(col, cfg, debug))
	running, end := context.WithCancel(context.Background())
	defer end()
	go reloadOn(running, again, col, settings, own)
	context.AfterFunc(ctx, func() {
		tell(c.stdout, "stopping: requests under way have %s; a second signal ends it at once\n", cfg.Timeouts.Shutdown)
		end()
	})
	err = col.Run(running)
	tell(c.stdout, "stopped: %s stored\n", lines(int(col.Stats().Receive.Stored)))
	return err
}

// reloadOn has col read again what it can whenever asked to.
func reloadOn(ctx context.Context, asked <-chan os.Signal, col *collector.Collector, settings func() (config.Config, error), log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		cfg, err := settings()
		if err == nil {
			err = col.Reload(cfg)
		}
		if err != nil {
			log.Error("configuration is not read again: all stays as it was", "error", err)
			continue
		}
		log.Info("enrichment, tokens and certificates read again")
	}
}

// ownLog is the logger for what the program has to say of itself: for people on
// a terminal, JSON elsewhere. Nothing waits for whoever reads it: up to about
// 2 MiB wait, and what is dropped beyond that is said in the log. If the process
// crashes, the lines of its last 5 ms are lost.
func ownLog(stderr *os.File, level slog.Level) (*rollway.Logger, error) {
	// Whoever reads the log may be gone; there is no other place to say so.
	nobody := func(error) {}
	w, err := slab.New(stderr, slab.Options{Full: slab.Drop, SlabCount: 32, FlushInterval: 5 * time.Millisecond, KeepOpen: true, OnError: nobody})
	if err != nil {
		return nil, err
	}
	out := rollway.Output{Writer: w, Level: level, Encoder: rollway.JSON{}}
	if term.IsTerminal(int(stderr.Fd())) {
		console := rollway.Console{Color: rollway.ColorAlways}
		if !colorWanted() {
			console.Color = rollway.ColorNever
		}
		out.Encoder = console
	}
	return rollway.New(rollway.Options{
		Outputs:      []rollway.Output{out},
		Caller:       slog.Level(127),
		CloseTimeout: time.Second,
		OnError:      nobody,
	})
}

// colorWanted is what the environment says about colour on a terminal.
func colorWanted() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// banner says where the collector is, what it found, and how to begin.
func banner(col *collector.Collector, cfg config.Config, debug net.Addr) string {
	var b strings.Builder
	scheme := "http://"
	if col.Secure() {
		scheme = "https://"
	}
	base := scheme + dialable(col.Addr())
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s  %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "rollway %s is running; Ctrl-C stops it.\n\n", version())
	row("HTTP", "%s%s", base, onAll(col.Addr()))
	if a := col.TCPAddr(); a != nil {
		row("TCP", "%s%s, one JSON object per line", dialable(a), onAll(a))
	}
	if debug != nil {
		row("debug", "http://%s/debug/pprof/ and /debug/runtime", dialable(debug))
	}
	if a := col.GRPCAddr(); a != nil {
		row("gRPC", "%s%s, for OTLP", dialable(a), onAll(a))
	}
	for i, a := range col.SyslogAddrs() {
		row("syslog", "%s %s%s", networks(cfg.ListenSyslog)[i], dialable(a), onAll(a))
	}
	for i, a := range col.ForwardAddrs() {
		network := networks(cfg.ListenForward)[i] + " "
		if network == "tcp " {
			network = ""
		}
		row("forward", "%s%s%s", network, dialable(a), onAll(a))
	}
	r := col.Recovery()
	if n := int(r.Next - r.First); n > 0 {
		row("data", "%s, with %s in %s", cfg.Data, lines(n), byteCount(r.Bytes))
	} else {
		row("data", "%s, empty so far", cfg.Data)
	}
	row("recovery", "%s", recovered(len(r.Findings), r.Took))
	addr := ""
	if base != defaultAddr {
		addr = " -addr " + base
	}
	fmt.Fprintf(&b, "\nSend a first line, and find it again:\n\n")
	token := ""
	if cfg.Access.Tokens != "" {
		token = fmt.Sprintf(` -H "Authorization: Bearer $%s"`, tokenEnv)
	}
	fmt.Fprintf(&b, "  curl%s -d '{\"level\":\"info\",\"msg\":\"hello\"}' %s/api/logs\n", token, base)
	fmt.Fprintf(&b, "  %s query hello%s\n\n", program(), addr)
	return b.String()
}

// networks are those of the addresses of a setting, which was checked: a listener
// for TLS says tcp of itself.
func networks(setting string) (list []string) {
	addrs, _ := config.ParseAddrs(setting, "udp", "tcp", "tls")
	for _, a := range addrs {
		list = append(list, a.Network)
	}
	return list
}

// program is this program as its user called it, which finds it again.
func program() string {
	if name := os.Args[0]; filepath.Base(name) == "rollway" {
		return name
	}
	return "rollway"
}

func recovered(findings int, took time.Duration) string {
	if findings == 0 {
		return fmt.Sprintf("nothing to repair, ready after %s", roundDuration(took))
	}
	return fmt.Sprintf("%s, told in the log, ready after %s", plural(findings, "finding"), roundDuration(took))
}

// dialable is a as a client on this machine would name it.
func dialable(a net.Addr) string {
	if onAll(a) == "" {
		return a.String()
	}
	_, port, _ := net.SplitHostPort(a.String())
	return net.JoinHostPort("127.0.0.1", port)
}

// onAll is a remark for an address that stands for all of this machine's.
func onAll(a net.Addr) string {
	host, _, _ := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return " and every other address of this machine"
	}
	return ""
}
