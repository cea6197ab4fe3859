package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/relay"
)

var relayCommand = &command{
	name:    "relay",
	summary: "relay connections to a collector, or to any TCP service",
	help: `
Takes connections and copies each to an upstream, both ways, until both sides
are done. It runs until it gets SIGINT (Ctrl-C) or SIGTERM: it then takes no
more connections, lets those that are open end by themselves for -drain-timeout,
ends what is left in order where it can, and exits with 0. A second signal ends
it at once.

URLs are tcp://host:port, tls://host:port and unix:///path; -listen and -to may
be given more than once. Between plain sockets of Linux the bytes stay in the
kernel.

Certificates and authorities are read again within 10 seconds of a change, and
on SIGHUP; connections are not touched by that.

Examples:
  rollway relay -listen tcp://:6514 -to tcp://collector-a:6514 -to tcp://collector-b:6514
  rollway relay -listen tls://0.0.0.0:6514 -cert relay.pem -key relay.key -to tcp://127.0.0.1:6514
  rollway relay -listen unix:///run/logs.sock -to tls://logs.example.com:6514 -client-cert me.pem -client-key me.key
`,
	setup: setupRelay,
}

// relayFlags are the command's flags; those that are in options directly are
// not.
type relayFlags struct {
	options               relay.Options
	listen                []string
	buffer                config.Size
	certs, keys           []string
	clientCA, ca          string
	clientCert, clientKey string
	serverName            string
	access                bool
	metrics               string
}

const defaultRelayMetrics = "127.0.0.1:4319"

func setupRelay(flags *flag.FlagSet) func(*call, []string) error {
	f := &relayFlags{}
	f.declare(flags)
	f.declareTLS(flags)
	return func(c *call, args []string) error {
		if len(args) > 0 {
			return usagef("unexpected argument %q", args[0])
		}
		return f.run(c)
	}
}

func (f *relayFlags) declare(flags *flag.FlagSet) {
	o := &f.options
	several(flags, &f.listen, "listen", "where connections are taken, a `URL`")
	several(flags, &o.To, "to", "where they go, a `URL`")
	flags.Func("balance", "which upstream is next, `HOW` being round-robin or least-connections (default round-robin)", func(text string) (err error) {
		o.Balance, err = oneOf(text, map[string]relay.Balance{"round-robin": relay.RoundRobin, "least-connections": relay.LeastConnections})
		return err
	})
	flags.DurationVar(&o.HealthInterval, "health-interval", 0, "connect to each upstream every `TIME` to see whether it is there; 0: only avoid one that a connection could not be opened to")
	flags.DurationVar(&o.ResolveInterval, "resolve-interval", 30*time.Second, "look names of upstreams up again after `TIME`")
	flags.Func("proxy-from", "the `NETWORK` of proxies, such as 10.0.0.0/8; connections from there begin with a PROXY header; may be repeated", func(text string) error {
		p, err := netip.ParsePrefix(text)
		o.TrustProxy = append(o.TrustProxy, p)
		return err
	})
	flags.IntVar(&o.SendProxy, "send-proxy", 0, "send upstreams a PROXY header of `VERSION` 1 or 2; 0: none")
	flags.IntVar(&o.MaxConns, "max-conns", 0, "refuse connections beyond `N` at a time; 0: what the limit on descriptors allows")
	flags.IntVar(&o.MaxConnsPerSource, "max-conns-per-source", 0, "refuse those of a client address beyond `N`; 0: no bound")
	flags.Func("copy", "`HOW` to copy: auto uses splice(2) for bulk between plain sockets of Linux\nand buffers for the rest; buffers uses only buffers (default auto)", func(text string) (err error) {
		o.Copy, err = oneOf(text, map[string]relay.CopyMode{"auto": relay.CopyAuto, "buffers": relay.CopyBuffers})
		return err
	})
	flags.Func("buffer-size", "size of a buffer, where buffers are used: 4KiB, 8KiB, 16KiB or 64KiB as `SIZE` (default 64KiB, and 16KiB for those beyond 128 in use at a time)", func(text string) (err error) {
		f.buffer, err = config.ParseSize(text)
		return err
	})
	flags.DurationVar(&o.DialTimeout, "dial-timeout", 5*time.Second, "give up connecting to an upstream after `TIME`, and try the next")
	flags.DurationVar(&o.IdleTimeout, "idle-timeout", time.Hour, "end a connection on which nothing moved for `TIME`; negative: never")
	flags.DurationVar(&o.StallTimeout, "stall-timeout", 5*time.Minute, "reset a connection of which a side takes nothing for `TIME` while bytes wait for it; negative: never")
	flags.Func("socket-memory", "let the system hold about `SIZE` for sides that take nothing; -1: no bound\n(default, on Linux: a sixteenth of what TCP may have there)", func(text string) error {
		if text == "-1" {
			o.SocketMemory = -1
			return nil
		}
		size, err := config.ParseSize(text)
		if err == nil && size == 0 {
			err = errors.New("write a size, as in 64MiB, or -1 for no bound")
		}
		o.SocketMemory = int64(size)
		return err
	})
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 30*time.Second, "let open connections end by themselves for `TIME` when told to stop")
	flags.BoolVar(&f.access, "access-log", false, "log each connection when it has ended")
	flags.StringVar(&f.metrics, "metrics-listen", defaultRelayMetrics, "where /metrics is answered over HTTP, `ADDR` as host:port; empty: nowhere")
}

func (f *relayFlags) declareTLS(flags *flag.FlagSet) {
	several(flags, &f.certs, "cert", "the certificate for clients, a PEM `FILE` with its intermediates")
	several(flags, &f.keys, "key", "its key, a PEM `FILE`")
	flags.StringVar(&f.clientCA, "client-ca", "", "clients must show a certificate that the authorities in `FILE` vouch for")
	flags.StringVar(&f.ca, "ca", "", "the authorities in `FILE` vouch for upstreams, instead of the system's")
	flags.StringVar(&f.clientCert, "client-cert", "", "the certificate for upstreams, a PEM `FILE`")
	flags.StringVar(&f.clientKey, "client-key", "", "its key, a PEM `FILE`")
	flags.StringVar(&f.serverName, "server-name", "", "the `NAME` that certificates of upstreams must have, instead of their host")
	flags.DurationVar(&f.options.HandshakeTimeout, "handshake-timeout", 10*time.Second, "end a client whose PROXY header and handshake take more than `TIME`")
	flags.Func("route", "where connections go whose client asks for a name, `NAME=URL`; *.example.com is one label below it; may be repeated", func(text string) error {
		name, url, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("write NAME=URL")
		}
		if f.options.Routes == nil {
			f.options.Routes = map[string][]string{}
		}
		f.options.Routes[name] = append(f.options.Routes[name], url)
		return nil
	})
}

// several declares a flag that may be repeated.
func several(flags *flag.FlagSet, list *[]string, name, help string) {
	flags.Func(name, help+"; may be repeated", func(text string) error {
		*list = append(*list, text)
		return nil
	})
}

func oneOf[T any](text string, values map[string]T) (value T, err error) {
	value, ok := values[text]
	if !ok {
		return value, errors.New("it is none of the words for it")
	}
	return value, nil
}

func (f *relayFlags) run(c *call) error {
	if len(f.listen) == 0 || len(f.options.To) == 0 {
		return usagef("give -listen URL and -to URL")
	}
	f.options.BufferSize = int(f.buffer)
	log, err := ownLog(c.stderr, slog.LevelInfo)
	if err != nil {
		return err
	}
	defer log.Close()
	f.options.Log = slog.New(log.Handler())
	if f.access {
		f.options.Access = f.options.Log
	}
	signal.Ignore(hangup...) // until there is something to read again
	ctx, stop := interruptible()
	defer stop()
	files, err := f.readTLS()
	if err != nil {
		return err
	}
	r, err := relay.New(f.options)
	if err != nil {
		return usageError{err.Error()}
	}
	defer r.Shutdown(ctx)
	return f.serve(ctx, c, r, files)
}

// serve runs r on all listeners until ctx ends or one of them fails.
func (f *relayFlags) serve(ctx context.Context, c *call, r *relay.Relay, files []watched) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	metrics, err := f.serveMetrics(r)
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close()
	}
	var listeners []*relay.Listener
	for _, url := range f.listen {
		l, err := relay.Listen(ctx, url)
		if err != nil {
			return err
		}
		defer l.Close()
		listeners = append(listeners, l)
	}
	var running sync.WaitGroup
	defer running.Wait()
	watching, endWatch := context.WithCancel(context.Background()) // while connections end, too
	defer endWatch()
	f.watch(watching, &running, files)
	tell(c.stdout, "%s", f.banner(listeners, metrics, r.Stats().MaxConns))
	said := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(said)
		tell(c.stdout, "stopping: open connections have %s; a second signal ends it at once\n", f.options.DrainTimeout)
	})
	var serving sync.WaitGroup
	for _, l := range listeners {
		serving.Go(func() {
			if err := r.Serve(ctx, l); err != nil {
				cancel(err)
			}
		})
	}
	serving.Wait()
	if !unhook() {
		<-said
	}
	cause := context.Cause(ctx)
	cancel(nil)
	s := r.Stats()
	tell(c.stdout, "stopped: %s, %s up, %s down, %d cut off\n", plural(int(s.Accepted), "connection"), byteCount(int64(s.BytesUp)), byteCount(int64(s.BytesDown)), s.Closed[relay.ReasonDrainCut])
	if errors.Is(cause, context.Canceled) {
		return nil
	}
	return cause
}

// certificatesEvery is how soon a changed certificate is read.
const certificatesEvery = 10 * time.Second

// watch renews certificates and authorities until ctx ends. Signals for that
// are taken until the process ends, which one that comes late would kill.
func (f *relayFlags) watch(ctx context.Context, running *sync.WaitGroup, files []watched) {
	if len(files) == 0 {
		again := make(chan os.Signal, 1)
		signal.Notify(again, hangup...)
		running.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-again:
					f.options.Log.Info("SIGHUP: there are no certificates or authorities to read again")
				}
			}
		})
	}
	for _, one := range files {
		again := make(chan os.Signal, 1)
		signal.Notify(again, hangup...)
		running.Go(func() { one.Watch(ctx, certificatesEvery, again, f.options.Log) })
	}
}

// serveMetrics answers /metrics; nil: nobody asked for that.
func (f *relayFlags) serveMetrics(r *relay.Relay) (net.Listener, error) {
	if f.metrics == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", f.metrics)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for /metrics on %s: %w; choose another address by -metrics-listen, or none by -metrics-listen ''", f.metrics, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = r.Stats().WriteMetrics(w) // who asked may be gone
	})
	server := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(l) }() // until l is closed
	return l, nil
}

// banner says what goes where.
func (f *relayFlags) banner(listeners []*relay.Listener, metrics net.Listener, maxConns int) string {
	var b strings.Builder
	row := func(name, text string) { fmt.Fprintf(&b, "  %-9s  %s\n", name, text) }
	fmt.Fprintf(&b, "rollway %s is relaying; Ctrl-C stops it.\n\n", version())
	for _, l := range listeners {
		row("from", l.String())
	}
	for _, url := range f.options.To {
		row("to", url)
	}
	for name, urls := range f.options.Routes {
		row(name, strings.Join(urls, " "))
	}
	if maxConns > 0 {
		row("at most", plural(maxConns, "connection")+" at a time")
	}
	if metrics != nil {
		row("metrics", "http://"+dialable(metrics.Addr())+"/metrics")
	}
	return b.String() + "\n"
}
