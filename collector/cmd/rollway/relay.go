package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/internal/relaytune"
	"github.com/rollway/rollway/relay"
)

var relayCommand = &command{
	name:    "relay",
	summary: "relay connections to a collector, or to any TCP service",
	help: `
Accepts connections and copies each to an upstream, in both directions, until
both sides are done. It runs until SIGINT (Ctrl-C) or SIGTERM. It then accepts
no more connections, waits -drain-timeout for the open ones, closes the rest,
and exits with 0. A second signal ends it at once.

URLs are tcp://host:port, tls://host:port and unix:///path; -listen and -to may
be repeated. Between plain sockets on Linux the bytes stay in the kernel.

Certificates and authorities are reloaded within 10 seconds of a change and on
SIGHUP. Open connections keep theirs.

Examples:
  rollway relay -listen tcp://:6514 -to tcp://collector-a:6514 -to tcp://collector-b:6514
  rollway relay -listen tls://0.0.0.0:6514 -cert relay.pem -key relay.key -to tcp://127.0.0.1:6514
  rollway relay -listen unix:///run/logs.sock -to tls://logs.example.com:6514 -client-cert me.pem -client-key me.key
`,
	setup: func(flags *flag.FlagSet) action { return new(relayFlags).declare(flags) },
}

// relayFlags are the command's flags. Some set options directly.
type relayFlags struct {
	options     relay.Options
	listen      []string
	certs, keys []string
	client      relay.KeyPair
	serverName  string
	access      bool
	metrics     string
	hosts       string
}

const defaultRelayMetrics = "127.0.0.1:4319"

func (f *relayFlags) declare(flags *flag.FlagSet) action {
	o := &f.options
	listFlag(flags, &f.listen, "listen", "accept connections at `URL`")
	listFlag(flags, &o.To, "to", "relay them to `URL`")
	choiceFlag(flags, &o.Balance, "balance", "choose the next upstream by `METHOD`, round-robin or least-connections (default round-robin)",
		map[string]relay.Balance{"round-robin": relay.RoundRobin, "least-connections": relay.LeastConnections})
	flags.DurationVar(&o.HealthInterval, "health-interval", 0, "check each upstream by a connection every `TIME`; 0: only avoid one that could not be reached")
	flags.DurationVar(&o.ResolveInterval, "resolve-interval", 30*time.Second, "resolve the names of upstreams again after `TIME`")
	flags.Func("proxy-from", "the `NETWORK` of proxies, such as 10.0.0.0/8, whose connections begin with a PROXY header; may be repeated", func(text string) error {
		p, err := netip.ParsePrefix(text)
		o.TrustProxy = append(o.TrustProxy, p)
		return err
	})
	flags.IntVar(&o.SendProxy, "send-proxy", 0, "send upstreams a PROXY header of `VERSION` 1 or 2; 0: none")
	flags.IntVar(&o.MaxConns, "max-conns", 0, "accept at most `N` connections at a time; 0: as many as the limit on descriptors allows")
	flags.IntVar(&o.MaxConnsPerSource, "max-conns-per-source", 0, "accept at most `N` connections of a client address; 0: no limit")
	choiceFlag(flags, &relaytune.NoSplice, "copy", "`HOW` to copy: auto uses splice(2) for bulk between plain sockets of Linux\nand buffers for the rest; buffers uses only buffers (default auto)",
		map[string]bool{"auto": false, "buffers": true})
	sizeFlag(flags, &relaytune.BufferSize, "buffer-size", "size of a buffer, where buffers are used: 4KiB, 8KiB, 16KiB or 64KiB as `SIZE` (default 64KiB, and 16KiB for those beyond 128 in use at a time)")
	flags.DurationVar(&o.DialTimeout, "dial-timeout", 5*time.Second, "try the next upstream if one does not connect within `TIME`")
	flags.DurationVar(&o.IdleTimeout, "idle-timeout", time.Hour, "close a connection that is idle for `TIME`; negative: never")
	flags.DurationVar(&o.StallTimeout, "stall-timeout", 5*time.Minute, "reset a connection if one side reads nothing for `TIME` while bytes wait for it; negative: never")
	flags.Func("socket-memory", "bound the kernel memory of sides that do not read to about `SIZE`; -1: no bound\n(default, on Linux: a sixteenth of the memory for TCP)", func(text string) error {
		if text == "-1" {
			o.SocketMemory = -1
			return nil
		}
		size, err := config.ParseSize(text)
		if err == nil && size == 0 {
			err = errors.New("write a size such as 64MiB, or -1 for no bound")
		}
		o.SocketMemory = int64(size)
		return err
	})
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 30*time.Second, "wait `TIME` for open connections when stopping")
	flags.BoolVar(&f.access, "access-log", false, "log each connection when it ends")
	flags.StringVar(&f.metrics, "metrics-listen", defaultRelayMetrics, "serve /metrics over HTTP at `ADDR`, written host:port; empty: off")
	flags.StringVar(&f.hosts, "metrics-hosts", "", "host `NAMES`, separated by blanks, under which /metrics may be asked for besides IP addresses, localhost and this machine's name")

	listFlag(flags, &f.certs, "cert", "the certificate for clients, a PEM `FILE` with its intermediates")
	listFlag(flags, &f.keys, "key", "its key, a PEM `FILE`")
	flags.StringVar(&o.ServerFiles.Authorities, "client-ca", "", "require client certificates signed by an authority in `FILE`")
	flags.StringVar(&o.ClientFiles.Authorities, "ca", "", "verify upstreams with the authorities in `FILE` instead of the system's")
	flags.StringVar(&f.client.Cert, "client-cert", "", "the certificate for upstreams, a PEM `FILE`")
	flags.StringVar(&f.client.Key, "client-key", "", "its key, a PEM `FILE`")
	flags.StringVar(&f.serverName, "server-name", "", "the `NAME` that certificates of upstreams must have, instead of the host")
	flags.DurationVar(&o.HandshakeTimeout, "handshake-timeout", 10*time.Second, "close a client connection whose PROXY header and handshake take more than `TIME`")
	flags.Func("route", "relay clients that ask for a server name to an upstream of its own, `NAME=URL`; *.example.com matches one label; may be repeated", func(text string) error {
		name, url, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("write NAME=URL")
		}
		if o.Routes == nil {
			o.Routes = map[string][]string{}
		}
		o.Routes[name] = append(o.Routes[name], url)
		return nil
	})
	return func(c *call, _ []string) error { return f.run(c) }
}

// setFiles checks the flags of certificates and gives their files to the relay.
func (f *relayFlags) setFiles() error {
	o := &f.options
	needed := slices.ContainsFunc(f.listen, func(url string) bool { return strings.HasPrefix(url, "tls://") })
	switch {
	case len(f.certs) != len(f.keys):
		return usagef("each -cert needs its -key: there are %d and %d", len(f.certs), len(f.keys))
	case needed && len(f.certs) == 0:
		return usagef("-listen tls://… needs -cert and -key")
	case !needed && (len(f.certs) > 0 || o.ServerFiles.Authorities != "" || o.Routes != nil):
		return usagef("-cert, -client-ca and -route are for -listen tls://…")
	case (f.client.Cert == "") != (f.client.Key == ""):
		return usagef("-client-cert and -client-key belong together")
	}
	for i := range f.certs {
		o.ServerFiles.Certificates = append(o.ServerFiles.Certificates, relay.KeyPair{Cert: f.certs[i], Key: f.keys[i]})
	}
	o.ClientTLS = &tls.Config{ServerName: f.serverName}
	if f.client.Cert != "" {
		o.ClientFiles.Certificates = []relay.KeyPair{f.client}
	}
	return nil
}

func (f *relayFlags) run(c *call) error {
	if len(f.listen) == 0 || len(f.options.To) == 0 {
		return usagef("give -listen URL and -to URL")
	}
	log, err := ownLog(c, slog.LevelInfo)
	if err != nil {
		return err
	}
	defer log.Close()
	f.options.Log = slog.New(log.Handler())
	if f.access {
		f.options.Access = f.options.Log
	}
	again := hangups()
	ctx, stop := interruptible()
	defer stop()
	if err := f.setFiles(); err != nil {
		return err
	}
	r, err := relay.New(f.options)
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	if err != nil {
		return usageError{err.Error()}
	}
	defer r.Shutdown(ctx)
	return f.serve(ctx, c, r, again)
}

// serve runs r on all listeners until ctx ends or one of them fails.
func (f *relayFlags) serve(ctx context.Context, c *call, r *relay.Relay, again <-chan os.Signal) error {
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
	defer onHangup(again, r.Reload)() // also while connections drain
	c.tellOf(f.runningEvent(listeners, metrics), f.banner(listeners, metrics, r.Stats().MaxConns))
	said := make(chan struct{})
	stopping := func() {
		defer close(said)
		c.tellOf(happened("stopping"), fmt.Sprintf("stopping: open connections have %s; a second signal ends it at once\n", f.options.DrainTimeout))
	}
	unhook := context.AfterFunc(ctx, stopping)
	var serving sync.WaitGroup
	for _, l := range listeners {
		serving.Go(func() {
			if err := r.Serve(ctx, l); err != nil {
				cancel(err)
			}
		})
	}
	serving.Wait()
	switch {
	case !unhook():
		<-said
	case ctx.Err() != nil: // Serve has returned before the hook began
		stopping()
	}
	cause := context.Cause(ctx)
	cancel(nil)
	s := r.Stats()
	cut := s.Closed[relay.ReasonDrainCut]
	c.tellOf(happened("stopped", "connections", s.Accepted, "bytes_up", s.BytesUp, "bytes_down", s.BytesDown, "cut_off", cut),
		fmt.Sprintf("stopped: %s, %s up, %s down, %d cut off\n", plural(int(s.Accepted), "connection"), byteCount(int64(s.BytesUp)), byteCount(int64(s.BytesDown)), cut))
	if errors.Is(cause, context.Canceled) {
		return nil
	}
	return cause
}

// serveMetrics serves /metrics. It returns nil if the flags turn it off.
func (f *relayFlags) serveMetrics(r *relay.Relay) (net.Listener, error) {
	if f.metrics == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", f.metrics)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s for /metrics: %w; choose another address with -metrics-listen, or none with -metrics-listen ''", f.metrics, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = r.Stats().WriteMetrics(w) // the client may be gone
	})
	server := &http.Server{Handler: query.Guard(mux, "-metrics-hosts", query.Names(f.hosts, f.metrics)), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(l) }() // until l is closed
	return l, nil
}

// runningEvent is the banner for programs.
func (f *relayFlags) runningEvent(listeners []*relay.Listener, metrics net.Listener) map[string]any {
	var from []string
	for _, l := range listeners {
		from = append(from, l.String())
	}
	e := happened("running", "version", collector.Version(), "from", from, "to", f.options.To, "routes", f.options.Routes)
	if metrics != nil {
		e["metrics"] = "http://" + dialable(metrics.Addr()) + "/metrics"
	}
	return e
}

// banner describes listeners and upstreams.
func (f *relayFlags) banner(listeners []*relay.Listener, metrics net.Listener, maxConns int) string {
	var b strings.Builder
	row := func(name, text string) { fmt.Fprintf(&b, "  %-9s  %s\n", name, text) }
	fmt.Fprintf(&b, "rollway %s is relaying; Ctrl-C stops it.\n\n", collector.Version())
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
