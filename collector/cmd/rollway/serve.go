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
	"syscall"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/slab"
)

var serveCommand = &command{
	name:    "serve",
	summary: "run a collector",
	help: `
Runs a collector until SIGINT (Ctrl-C) or SIGTERM. It then accepts nothing more,
answers the requests under way, syncs the journal and exits with 0. A second
signal ends it at once. On SIGHUP it reads enrich, rules and the files of
tokens, certificates and networks again; if one of them is invalid, nothing
changes.

The memory limit of the Go runtime is what is in use, plus a quarter of
limits.in_flight for garbage, and at most nine tenths of the limit of the
process's cgroup (version 1 or 2, parent groups included). GOMEMLIMIT in the
environment overrides it. If limits.in_flight does not fit the cgroup, it does
not start.

Without a configuration file all settings have their defaults; 'rollway check
-example' prints and explains them. Flags override the file.

Under systemd (Type=notify) it tells when it is ready, reads its files again or
stops, and feeds the watchdog while its journal gets on.

It prints its addresses and the state of the journal to standard output, and its
own log to standard error: for people on a terminal, as JSON elsewhere.

Examples:
  rollway serve
  rollway serve -data /var/lib/rollway -listen 127.0.0.1:4318
  rollway serve -config /etc/rollway.yaml

Settings of the file:
` + settingsHelp(),
	setup: setupServe,
}

// settingsHelp lists the keys of a configuration file, one line per section.
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
	{"listen", "listen", "listen for HTTP at `ADDR`, written host:port (default \"127.0.0.1:4318\")"},
	{"listen-tcp", "listen_tcp", "listen for NDJSON over TCP at `ADDRS`, such as 127.0.0.1:5170; empty: off"},
	{"listen-grpc", "listen_grpc", "listen for OTLP over gRPC at `ADDR` too, written host:port; auto: port 4317 if -listen has 4318; empty: at -listen only (default \"auto\")"},
	{"debug-listen", "debug_listen", "serve profiles and runtime metrics at `ADDR`, written host:port; empty: off"},
	{"listen-syslog", "listen_syslog", "listen for syslog at `ADDRS`, such as \"udp://127.0.0.1:5514 tcp://127.0.0.1:5514\"; empty: off"},
	{"listen-gelf", "listen_gelf", "listen for GELF, as clients of Graylog send it, at `ADDRS`, such as \"udp://127.0.0.1:12201 tcp://127.0.0.1:12201\"; empty: off"},
	{"listen-lumberjack", "listen_lumberjack", "listen for the Lumberjack protocol, which Beats and Logstash send, at `ADDRS`, such as \"tcp://127.0.0.1:5044\"; empty: off"},
	{"listen-forward", "listen_forward", "listen for the Fluent forward protocol at `ADDRS`, such as \"tcp://127.0.0.1:24224\"; empty: off"},
	{"data", "data", "the `DIR` that holds the journal (default \"./data\")"},
	{"durability", "journal.durability", "what a success answer means, `KIND` being buffered (the lines survive a crash of the process) or synced (of the machine) (default \"buffered\")"},
}

func setupServe(flags *flag.FlagSet) action {
	given := map[string]string{} // values by flag
	keep := func(name, help string, list ...string) {
		set := func(text string) { given[name] = text }
		if list != nil {
			wordFlag(flags, name, help, set, list...)
			return
		}
		flags.Func(name, help, func(text string) error {
			set(text)
			return nil
		})
	}
	keep("config", "read settings from this YAML `FILE`")
	for _, f := range serveFlags {
		keep(f.name, f.help, config.OneOf(f.key)...)
	}
	return func(c *call, _ []string) error {
		settings := func() (config.Config, error) { return serveSettings(given) }
		cfg, err := settings()
		if err != nil {
			return sayConfigErrors(c, "serve", err)
		}
		return serve(c, cfg, settings)
	}
}

// serveSettings reads the file that the flags name, if any, and applies the others.
func serveSettings(given map[string]string) (cfg config.Config, err error) {
	cfg = config.Default()
	if path, ok := given["config"]; path != "" {
		if cfg, err = config.Load(path); err != nil {
			return cfg, err
		}
	} else if ok { // an unset variable must not mean the defaults, which admit everybody
		return cfg, usagef("-config needs a FILE")
	}
	for _, f := range serveFlags {
		if text, ok := given[f.name]; ok {
			if err := cfg.Set(f.key, text); err != nil {
				return cfg, usagef("-%s: %v", f.name, err)
			}
		}
	}
	return cfg, nil
}

// hangup makes a running program read its files again. No system signal does on
// Windows.
var hangup = []os.Signal{syscall.SIGHUP}

// serve runs a collector. settings reads its configuration again.
func serve(c *call, cfg config.Config, settings func() (config.Config, error)) error {
	ctx, stop := interruptible()
	defer stop()
	again := hangups()
	log, err := ownLog(c, slog.LevelInfo)
	if err != nil {
		return err
	}
	defer log.Close()
	own := slog.New(log.Handler())
	if err := limitMemory(own, os.DirFS("/"), cfg.Limits.InFlight); err != nil {
		return err
	}
	defer boundGarbage(cfg.Limits.InFlight)()
	var debug net.Addr
	if cfg.DebugListen != "" {
		at, stop, err := serveDebug(cfg.DebugListen, cfg.Hosts, own)
		if err != nil {
			return err
		}
		defer stop()
		debug = at
	}
	system := newSupervisor(own)
	system.send("STATUS=opening the journal in " + cfg.Data)
	col, err := collector.New(cfg, own)
	if err != nil {
		return sayConfigErrors(c, "serve", err)
	}
	defer onHangup(again, func() { system.reload(func() { reload(col, settings, own) }) })()
	c.tellOf(runningEvent(col, debug), banner(col, cfg, debug))
	system.send("READY=1", "STATUS="+stored(col))
	defer system.watch(col)()
	running, end := context.WithCancel(context.Background())
	defer end()
	context.AfterFunc(ctx, func() {
		system.send("STOPPING=1")
		c.tellOf(happened("stopping"), fmt.Sprintf("stopping: requests under way have %s; a second signal ends it at once\n", cfg.Timeouts.Shutdown))
		end()
	})
	err = col.Run(running)
	stored := col.Stats().Receive.Stored
	c.tellOf(happened("stopped", "stored", stored), fmt.Sprintf("stopped: %s stored\n", lines(int(stored))))
	return err
}

// hangups returns a channel of SIGHUP for the rest of the process, which one that is
// not handled would kill.
func hangups() <-chan os.Signal {
	again := make(chan os.Signal, 1)
	signal.Notify(again, hangup...)
	return again
}

// onHangup calls f on each signal until stop is called.
func onHangup(again <-chan os.Signal, f func()) (stop func()) {
	return background(func(end <-chan struct{}) {
		for {
			select {
			case <-end:
				return
			case <-again:
				f()
			}
		}
	})
}

func reload(col *collector.Collector, settings func() (config.Config, error), log *slog.Logger) {
	cfg, err := settings()
	if err == nil {
		err = col.Reload(cfg)
	}
	if err != nil {
		log.Error("configuration not reloaded; the old one stays in force", "error", err)
		return
	}
	log.Info("configuration reloaded: enrichment, rules, tokens, certificates")
}

// ownLog returns the logger for the program's own messages: console format on a
// terminal, JSON elsewhere and with -o json. It never blocks the program: about 2 MiB are buffered,
// lines beyond that are dropped, and the log says how many. A crash loses the lines of
// the last 5 ms.
func ownLog(c *call, level slog.Level) (*rollway.Logger, error) {
	ignore := func(error) {} // the log itself has failed, so there is nowhere to report it
	out, color := c.stderr.colored()
	w, err := slab.New(out, slab.Options{Full: slab.Drop, SlabCount: 32, FlushInterval: 5 * time.Millisecond, KeepOpen: true, OnError: ignore})
	if err != nil {
		return nil, err
	}
	output := rollway.Output{Writer: w, Level: level, Encoder: rollway.JSON{}}
	if c.stderr.terminal && !c.json {
		console := rollway.Console{Color: rollway.ColorAlways}
		if !color {
			console.Color = rollway.ColorNever
		}
		output.Encoder = console
	}
	return rollway.New(rollway.Options{
		Outputs:      []rollway.Output{output},
		Caller:       slog.Level(127),
		CloseTimeout: time.Second,
		OnError:      ignore,
	})
}

// colorWanted reports whether the environment allows colors on a terminal.
func colorWanted() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// happened is what -o json prints of something that happens: its name, and pairs of names and
// values.
func happened(name string, pairs ...any) map[string]any {
	e := map[string]any{"event": name}
	for i := 0; i < len(pairs); i += 2 {
		e[pairs[i].(string)] = pairs[i+1]
	}
	return e
}

// runningEvent is the banner for programs.
func runningEvent(col *collector.Collector, debug net.Addr) map[string]any {
	base := col.Scheme() + "://" + dialable(col.Addr())
	r := col.Recovery()
	e := happened("running", "version", collector.Version(), "http", base, "lines", r.Next-r.First, "bytes", r.Bytes, "findings", len(r.Findings), "recovery_ns", r.Took)
	if col.ServesPage() {
		e["page"] = base + "/ui/"
	}
	for name, addrs := range map[string][]net.Addr{
		"tcp": {col.TCPAddr()}, "grpc": {col.GRPCAddr()}, "debug": {debug},
		"syslog": col.SyslogAddrs(), "gelf": col.GELFAddrs(), "lumberjack": col.LumberjackAddrs(), "forward": col.ForwardAddrs(),
	} {
		list := []string{}
		for _, a := range addrs {
			if a != nil {
				list = append(list, a.Network()+"://"+dialable(a))
			}
		}
		e[name] = list
	}
	return e
}

// banner describes the running collector: its addresses, its data, and first steps.
func banner(col *collector.Collector, cfg config.Config, debug net.Addr) string {
	var b strings.Builder
	base := col.Scheme() + "://" + dialable(col.Addr())
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s  %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "rollway %s is running; Ctrl-C stops it.\n\n", collector.Version())
	row("HTTP", "%s%s", base, onAll(col.Addr()))
	if col.ServesPage() {
		row("page", "%s/ui/", base)
	}
	if a := col.TCPAddr(); a != nil {
		row("TCP", "%s%s, one JSON object per line", dialable(a), onAll(a))
	}
	if debug != nil {
		row("debug", "http://%s/debug/pprof/ and /debug/runtime", dialable(debug))
	}
	if a := col.GRPCAddr(); a != nil {
		row("gRPC", "%s%s, for OTLP", dialable(a), onAll(a))
	}
	streams := func(name, setting string, addrs []net.Addr, usual string) {
		for i, a := range addrs {
			row(name, "%s%s%s", strings.TrimPrefix(networks(setting)[i]+" ", usual), dialable(a), onAll(a))
		}
	}
	streams("syslog", cfg.ListenSyslog, col.SyslogAddrs(), "")
	streams("GELF", cfg.ListenGELF, col.GELFAddrs(), "")
	streams("Beats", cfg.ListenLumberjack, col.LumberjackAddrs(), "tcp ")
	streams("forward", cfg.ListenForward, col.ForwardAddrs(), "tcp ")
	r := col.Recovery()
	kept, repaired := "empty so far", "nothing to repair,"
	if n := int(r.Next - r.First); n > 0 {
		kept = fmt.Sprintf("with %s in %s", lines(n), byteCount(r.Bytes))
	}
	if n := len(r.Findings); n > 0 {
		repaired = plural(n, "finding") + ", see the log;"
	}
	row("data", "%s, %s", cfg.Data, kept)
	row("memory", "up to %d MiB for requests and the program; connections, queries and keys come on top", plannedMemory(int64(cfg.Limits.InFlight))>>20)
	row("recovery", "%s ready after %s", repaired, shortTime(r.Took))
	addr := ""
	if base != defaultAddr {
		addr = " -addr " + base
	}
	const line = `{"level":"info","msg":"hello"}`
	send, set := fmt.Sprintf("curl -d '%s' %s/api/logs", line, base), ""
	if cfg.Access.Tokens != "" || cfg.TLS.Cert != "" {
		send = fmt.Sprintf("echo '%s' | %s send%s", line, program(), addr)
		set = ", with " + tokenEnv + " set, and " + caEnv + " for an authority of your own"
	}
	fmt.Fprintf(&b, "\nSend a first line, and find it again%s:\n\n  %s\n  %s query hello%s\n\n", set, send, program(), addr)
	return b.String()
}

// networks returns the network of each address in a checked setting. The Addr of a
// TLS listener says tcp.
func networks(setting string) (list []string) {
	addrs, _ := config.ParseAddrs(setting, "tcp", "tls", "udp")
	for _, a := range addrs {
		list = append(list, a.Network)
	}
	return list
}

// program returns the name under which the user called this program.
func program() string {
	if name := os.Args[0]; filepath.Base(name) == "rollway" {
		return name
	}
	return "rollway"
}

// dialable returns a as a client on this machine would dial it.
func dialable(a net.Addr) string {
	if onAll(a) == "" {
		return a.String()
	}
	_, port, _ := net.SplitHostPort(a.String())
	return net.JoinHostPort("127.0.0.1", port)
}

// onAll returns a remark if a is the unspecified address, and "" otherwise.
func onAll(a net.Addr) string {
	host, _, _ := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return " and every other address of this machine"
	}
	return ""
}
