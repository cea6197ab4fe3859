// Package collector composes the collector: events come in through package receiver, are
// kept by package journal, and are found through package query.
package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/health"
	"github.com/rollway/rollway/collector/httpserver"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/ledger"
	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/sink"
	"github.com/rollway/rollway/collector/sink/kafka"
	"github.com/rollway/rollway/collector/ui"
	"github.com/rollway/rollway/collector/ulid"
)

// A Collector listens from New on and serves while Run runs. Its methods are
// safe for concurrent use; Run may be called once.
type Collector struct {
	config    config.Config
	log       *slog.Logger
	http      net.Listener
	grpc      net.Listener // of HTTP too, where gRPC is expected; nil: off
	listeners []listener   // besides these
	journal   *journal.Journal
	receiver  *receiver.Receiver
	rejected  *deadletter.Store // nil: not kept
	api       *query.API
	server    *httpserver.Server
	admission *admission.Controller
	conns     *admission.Limit // of HTTP and gRPC
	state     atomic.Pointer[state]
	ids       *ulid.Source
	health    *health.Health
	metrics   *metrics
	clients   *clients.Table
	sessions  ui.Sessions
	backups   backups

	sinks []*sink.Runner
	kafka *kafka.Destination // nil: off

	began   time.Time
	running atomic.Bool // set by the first Run
	closing sync.Once
	closed  error // set by closing
}

// New opens the journal below cfg.Data, repairs what a crash left in it, and listens. The
// caller calls Run, or else Close. log gets what the collector reports; nil discards it.
func New(cfg config.Config, log *slog.Logger) (_ *Collector, err error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Collector{config: cfg, log: log, began: time.Now(), ids: new(ulid.Source), admission: admission.New(), clients: clients.New(log)}
	c.conns = c.admission.NewLimit(cfg.Limits.MaxConns, reserveConns)
	c.conns.Evicted = func(peer net.Addr, why string) { c.sawConnection(peer, clients.Evicted, why) }
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	now, err := loadState(cfg, c.ids)
	if err != nil {
		return nil, err
	}
	c.enforce(now)
	for _, open := range []func() error{c.listen, c.openJournal, c.openSinks, c.openRejected} {
		if err := open(); err != nil {
			return nil, err
		}
	}
	c.health = health.New(health.Options{
		Data: cfg.Data, Journal: JournalFolder(cfg.Data), MaxSize: cfg.Journal.MaxSize,
		Size: func() int64 { return c.journal.Stats().Bytes },
		Look: c.journal.Look, Check: c.journal.Check, Turn: c.journal.Turn,
	})
	c.receiver = receiver.New(backend{c}, c.receiveOptions())
	if c.api, err = query.New(c.journal, c.queryOptions()); err != nil {
		return nil, err
	}
	if err := ledger.Remove(cfg.Data); err != nil {
		return nil, err
	}
	c.metrics = newMetrics(c)
	c.openServer()
	for _, f := range c.journal.Recovery().Findings {
		c.logFinding(f)
	}
	c.warnExposed(cfg)
	return c, nil
}

func (c *Collector) logFinding(f journal.Finding) { c.log.Warn("journal: "+f.String(), "file", f.File) }

// Addr is where HTTP is served.
func (c *Collector) Addr() net.Addr { return c.http.Addr() }

// Scheme is that of its URLs: https if HTTP is served by TLS.
func (c *Collector) Scheme() string {
	if c.state.Load().tls != nil {
		return "https"
	}
	return "http"
}

// Recovery says what New found in the journal.
func (c *Collector) Recovery() journal.Recovery { return c.journal.Recovery() }

// Ready returns why lines cannot be stored now, or nil. It may wait for the disk.
func (c *Collector) Ready() error { return c.health.Ready() }

// Stalled returns how long ago the journal was last found to get on, which Run looks for once
// a second. It never waits.
func (c *Collector) Stalled() time.Duration { return c.health.Stalled() }

// GRPCAddr is where gRPC is taken besides Addr; nil: nowhere.
func (c *Collector) GRPCAddr() net.Addr {
	if c.grpc == nil {
		return nil
	}
	return c.grpc.Addr()
}

func (c *Collector) webListeners() []net.Listener {
	return slices.DeleteFunc([]net.Listener{c.http, c.grpc}, func(l net.Listener) bool { return l == nil })
}

// Stats is what the parts count. Each is consistent in itself.
type Stats struct {
	Receive receiver.Stats
	Journal journal.Stats
	Query   query.Stats

	Connections admission.LimitStats // of HTTP and gRPC

	Rejected deadletter.Stats
	Sinks    []sink.Stats
	Findings []journal.Finding // of the journal
	Start    uint64            // offset at which the journal ended when it was opened
}

// Stats returns a snapshot. It never waits for the disk.
func (c *Collector) Stats() Stats {
	s := Stats{
		Receive: c.receiver.Stats(), Journal: c.journal.Stats(), Query: c.api.Stats(), Connections: c.conns.Stats(),
		Findings: c.journal.Findings(), Start: c.journal.Recovery().Next,
	}
	if c.rejected != nil {
		s.Rejected = c.rejected.Stats()
	}
	for _, r := range c.sinks {
		s.Sinks = append(s.Sinks, r.Stats())
	}
	return s
}

// Run serves until ctx ends or a listener fails, then stops: no more is
// accepted, kept connections have timeouts.linger for a last request, what was taken up is
// answered within timeouts.shutdown, and the journal is synced and closed.
func (c *Collector) Run(ctx context.Context) error {
	if c.running.Swap(true) {
		return errors.New("collector: Run was called before")
	}
	failed := make(chan error, 2+len(c.listeners))
	var serving sync.WaitGroup
	serveCtx, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	for _, l := range c.webListeners() {
		serving.Go(func() {
			if err := c.server.Serve(l); err != nil {
				failed <- fmt.Errorf("serve HTTP: %w", err)
			}
		})
	}
	for _, e := range c.listeners {
		serving.Go(func() {
			if err := e.serve(serveCtx); err != nil {
				failed <- fmt.Errorf("serve %s: %w", e.takes, err)
			}
		})
	}
	serving.Go(func() { c.health.Watch(serveCtx, c.log) })
	serving.Go(func() { c.clients.Watch(serveCtx) })
	for _, r := range c.sinks {
		serving.Go(func() { r.Run(serveCtx) }) // an error is logged, and the next start delivers again
	}
	c.health.Start()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	c.health.Stop()
	stopServing()
	c.server.Linger(c.config.Timeouts.Linger)
	timed, cancel := context.WithTimeout(context.Background(), c.config.Timeouts.Shutdown)
	defer cancel()
	if stopErr := c.server.Shutdown(timed); stopErr != nil {
		c.log.Warn("some requests were cut off, as they did not end in time", "timeouts.shutdown", c.config.Timeouts.Shutdown)
	}
	serving.Wait()
	return errors.Join(err, c.close())
}

// Close gives everything back if Run was never called. Otherwise Run does.
func (c *Collector) Close() error {
	if c.running.Swap(true) {
		return nil
	}
	return c.close()
}

func (c *Collector) close() error {
	c.closing.Do(func() {
		if c.server != nil {
			c.server.Close() // shut down already if it was served
		}
		for _, l := range c.webListeners() {
			l.Close() // closed already if it was served
		}
		for _, e := range c.listeners {
			e.close() // likewise
		}
		if c.rejected != nil {
			if err := c.rejected.Close(); err != nil {
				c.closed = fmt.Errorf("close rejected events: %w", err)
			}
		}
		if c.kafka != nil {
			c.kafka.Close()
		}
		if c.journal != nil {
			if err := c.journal.Close(); err != nil {
				c.closed = errors.Join(c.closed, fmt.Errorf("close journal: %w", err))
			}
			c.leaveLedger()
		}
		for _, r := range c.sinks { // last: until then they hold what they have not delivered
			r.Close()
		}
	})
	return c.closed
}
