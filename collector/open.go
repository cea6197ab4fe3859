package collector

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway/collector/backup"
	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/httpserver"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/ledger"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/secrets"
	"github.com/rollway/rollway/collector/sink"
	"github.com/rollway/rollway/collector/sink/kafka"
)

// listen listens wherever the configuration says.
func (c *Collector) listen() (err error) {
	if c.http, err = listen("listen", c.config.Listen); err != nil {
		return err
	}
	if err := c.openListeners(); err != nil {
		return err
	}
	if addr := c.config.AddrGRPC(); addr != "" {
		if c.grpc, err = listen("listen_grpc", addr); err != nil {
			if c.config.ListenGRPC == config.Auto {
				err = fmt.Errorf("%w; or leave it out by listen_grpc: \"\", as gRPC is taken at %s too", err, c.config.Listen)
			}
			return err
		}
	}
	return nil
}

// JournalFolder returns the folder of the journal in the data folder.
func JournalFolder(data string) string { return filepath.Join(data, "journal") }

// RejectedFolder returns the folder of dead letters in the data folder.
func RejectedFolder(data string) string { return filepath.Join(data, "rejected") }

func (c *Collector) openJournal() (err error) {
	o := &c.config.Journal
	if _, err := os.Stat(filepath.Join(c.config.Data, backup.Unfinished)); err == nil {
		return fmt.Errorf("the data folder %s cannot be used: a restore was interrupted there; run 'rollway restore' again", c.config.Data)
	}
	var last journal.End
	if l, err := ledger.Load(c.config.Data); err != nil {
		c.log.Warn("the ledger of the last collector cannot be read", "error", err)
	} else if l != nil {
		last = journal.End{ID: l.Journal, Next: l.Next}
	}
	limits, err := o.TenantLimits()
	if err != nil {
		return err
	}
	tenants := make(map[string]journal.Retention, len(limits))
	for name, l := range limits {
		tenants[name] = journal.Retention{Bytes: int64(l.RetainSize), Age: l.RetainAge}
	}
	c.journal, err = journal.Open(JournalFolder(c.config.Data), journal.Options{
		Last:         last,
		SegmentBytes: int64(o.SegmentSize),
		MaxBytes:     int64(o.MaxSize),
		RetainBytes:  int64(o.RetainSize),
		RetainAge:    o.RetainAge,
		Tenants:      tenants,
		Pack:         o.Compression == config.Zstd,
		MaxKeys:      o.MaxKeys,
		KeyAge:       o.KeyAge,
		Scrub:        o.Scrub,
		Hold:         holders(&c.config.Kafka),
		Rest:         c.admission.CPU.Rest,
		OnFinding:    c.logFinding,
	})
	if err != nil {
		return fmt.Errorf("the data folder %s cannot be used: %w", c.config.Data, err)
	}
	return nil
}

// openRejected opens the store of rejected events, if they are to be kept.
func (c *Collector) openRejected() (err error) {
	size := int64(c.config.Rejected.KeepSize)
	if size == 0 {
		return nil
	}
	c.rejected, err = deadletter.Open(RejectedFolder(c.config.Data), deadletter.Options{
		MaxBytes: size,
		OnError:  func(err error) { c.log.Error("rejected events: " + err.Error()) },
	})
	return err
}

func (c *Collector) receiveOptions() receiver.Options {
	limits, timeouts := &c.config.Limits, &c.config.Timeouts
	zone, err := time.LoadLocation(c.config.Normalize.Zone)
	if err != nil { // it was checked
		zone = time.UTC
	}
	o := receiver.Options{
		Admission: c.admission,
		Limits: normalize.Limits{
			MaxEventBytes: int(limits.MaxEvent),
			MaxDepth:      limits.MaxDepth,
			MaxFields:     limits.MaxFields,
			MaxKeyBytes:   int(limits.MaxKey),
			MaxValueBytes: int(limits.MaxValue),
			MaxEvents:     limits.MaxEvents,
			MaxFuture:     orNever(limits.MaxFuture),
			MaxPast:       orNever(limits.MaxPast),
			Text:          normalize.Text{Closed: c.config.Normalize.Payloads == "off", Apart: c.config.Normalize.Join == "off", Off: c.config.Normalize.Text == "off", Zone: zone},
			Keys:          c.names(),
			NoFingerprint: c.config.Normalize.Fingerprint == "off",
		},
		MaxBody:      int64(limits.MaxBody),
		MaxUnpacked:  int64(limits.MaxUnpacked),
		MaxRatio:     int64(limits.MaxRatio),
		MaxConns:     limits.MaxStreams,
		InFlight:     int64(limits.InFlight),
		BodyTimeout:  timeouts.Read,
		IdleTimeout:  timeouts.Stream,
		DrainTimeout: timeouts.Shutdown,
		Log:          c.log,
		Seen:         func(s clients.Seen) { c.clients.Add(time.Now(), &s) },
	}
	if c.rejected != nil {
		o.KeepRejected = deadletter.MaxBatch
	}
	return o
}

// names are those that events are read by.
func (c *Collector) names() *normalize.Keys {
	keys, err := c.config.Normalize.Keys()
	if err != nil { // it was checked
		return nil
	}
	return keys
}

func (c *Collector) queryOptions() query.Options {
	return query.Options{
		Admission:    c.admission,
		MaxHeld:      int(c.config.Limits.MaxQuery),
		MaxMemory:    int(c.config.Limits.QueryMemory),
		SearchTime:   c.config.Timeouts.Query,
		SearchCPU:    c.config.Timeouts.QueryCPU,
		WriteTimeout: c.config.Timeouts.Write,
		ReadAs:       c.names().ReadAs,
	}
}

// reserveConns is how many connections beyond limits.max_connections are let in, so that
// probes are answered.
const reserveConns = 64

// isProbe reports whether a request takes nothing that is shared.
func isProbe(r *http.Request) bool {
	return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" || r.URL.Path == "/metrics"
}

func (c *Collector) openServer() {
	errorLog := slog.NewLogLogger(c.log.Handler(), slog.LevelWarn)
	c.server = httpserver.New(httpserver.Options{
		Handler:           c.handler(errorLog),
		Admission:         c.admission,
		Limit:             c.conns,
		Probe:             isProbe,
		TLS:               serverTLS(&c.state),
		ReadHeaderTimeout: c.config.Timeouts.ReadHeader,
		ReadTimeout:       c.config.Timeouts.Read,
		WriteTimeout:      c.config.Timeouts.Write,
		IdleTimeout:       c.config.Timeouts.Idle,
		OnShutdown:        func() { c.api.Close(); c.receiver.Stop() },
		ErrorLog:          errorLog,
		Refused:           c.sawConnection,
	})
}

// orNever turns 0, no limit in a configuration, into normalize's value for that.
func orNever(d time.Duration) time.Duration { return cmp.Or(d, -1) }

// listen listens on addr; key names the setting it came from.
func listen(key, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	return l, explainListen(key, addr, err)
}

func listenPackets(key, addr string) (*net.UDPConn, error) {
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil, explainListen(key, addr, err)
	}
	return conn.(*net.UDPConn), nil
}

func explainListen(key, addr string, err error) error {
	if err == nil {
		return nil
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "; another program, perhaps another collector, listens there: stop it, or choose another address"
	case errors.Is(err, syscall.EACCES):
		hint = "; ports below 1024 need privileges: choose a higher one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "; this machine has no such address"
	}
	return fmt.Errorf("cannot listen on %s (%s): %w%s", addr, key, err, hint)
}

// kafkaSink is the name of the Kafka sink and its cursor.
const kafkaSink = "kafka"

// holders are the sinks for which retention waits.
func holders(k *config.Kafka) []string {
	if strings.TrimSpace(k.Brokers) == "" || k.WhenFull == config.DropOldest {
		return nil
	}
	return []string{kafkaSink}
}

// openSinks makes the sinks that the configuration asks for. It waits for no
// destination.
func (c *Collector) openSinks() error {
	k := c.config.Kafka
	brokers := strings.Fields(k.Brokers)
	if len(brokers) == 0 {
		return nil
	}
	encryption, err := secrets.KafkaTLS(k)
	if err != nil {
		return err
	}
	password, err := secrets.KafkaPassword(k)
	if err != nil {
		return err
	}
	c.kafka, err = kafka.New(kafka.Options{
		Brokers: brokers, Topic: k.Topic, Key: k.Key, Journal: c.journal.ID(),
		MaxRecord: int(k.MaxRecord), Compression: k.Compression,
		TLS: encryption, SASL: k.SASL, User: k.User, Password: kafka.Secret(password), Log: c.log,
	})
	if err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	r, err := sink.New(c.journal, c.kafka, sink.Options{
		Name: kafkaSink, MaxEvents: k.MaxEvents, MaxBytes: int(k.MaxBytes), MaxAge: k.MaxAge,
		DropOldest: k.WhenFull == config.DropOldest, Log: c.log,
	})
	if err != nil {
		return err
	}
	c.sinks = append(c.sinks, r)
	return nil
}
