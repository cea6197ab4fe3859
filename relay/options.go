package relay

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/openfiles"
	"github.com/rollway/rollway/internal/relaytune"
)

// Options of a Relay. The zero value of each field is the recommended setting,
// but To must be given.
type Options struct {
	// To are the upstreams: tcp://host:port, tls://host:port or unix:///path.
	// A host with several addresses is several upstreams.
	To []string
	// Routes are upstreams for the connections whose TLS client asked for a
	// name: "logs.example.com", or "*.example.com" for one label below it.
	// Other connections go to To.
	Routes map[string][]string
	// Balance says which upstream is next (default RoundRobin).
	Balance Balance
	// HealthInterval is how often each upstream is connected to, to see whether
	// it is there (default 0: never). In any case one that a connection could
	// not be opened to is avoided for a while, 1s at first, 30s at most.
	HealthInterval time.Duration
	// ResolveInterval is how often names of upstreams are looked up again
	// (default 30s).
	ResolveInterval time.Duration

	// ServerTLS is for tls listeners. They need a certificate, here or in
	// ServerFiles. A version below TLS 1.2 is refused.
	ServerTLS *tls.Config
	// ServerFiles are certificates for clients, and authorities for theirs.
	ServerFiles TLSFiles
	// ClientTLS is for tls upstreams. By default their certificate has to be
	// for their host and signed by one of the system's roots.
	ClientTLS *tls.Config
	// ClientFiles are certificates for upstreams, and authorities for theirs.
	ClientFiles TLSFiles

	// TrustProxy are the networks of proxies. A connection from there has to
	// begin with a PROXY header, version 1 or 2, which names the client; from
	// anywhere else such a header is bytes as any other (default: none).
	TrustProxy []netip.Prefix
	// SendProxy is the version, 1 or 2, of the PROXY header that upstreams are
	// sent (default 0: none).
	SendProxy int

	// MaxConns bounds the connections open at a time; those beyond it are reset
	// (default: what the process's limit on descriptors allows, at two for each
	// connection and each pipe; negative: no bound). More than that is said in
	// Log, and so is a limit that allows few.
	MaxConns int
	// MaxConnsPerSource bounds them for one client address, for one /64 with
	// IPv6 (default 0: no bound).
	MaxConnsPerSource int

	// SocketMemory bounds, roughly, how many bytes the system is to hold in the
	// receive buffers of directions that wait for their destination, so that many
	// who take nothing leave enough to the others (default, on Linux: a sixteenth of
	// what it lets TCP have, the second value of tcp_mem; negative: no bound). The
	// system tunes buffers as it likes while there is room. When there is little,
	// connections that come, and directions that begin to wait, get a part of that,
	// 128 KiB at least.
	SocketMemory int64

	// DialTimeout bounds one attempt to connect to an upstream, its TLS
	// handshake included (default 5s).
	DialTimeout time.Duration
	// HandshakeTimeout bounds a client's PROXY header and TLS handshake
	// together (default 10s).
	HandshakeTimeout time.Duration
	// IdleTimeout ends a connection on which no byte moved either way (default
	// 1h; negative: never).
	IdleTimeout time.Duration
	// StallTimeout resets a connection of which one side has taken nothing for that
	// long while bytes wait for it (default 5m; negative: never).
	//
	// On Linux a side has taken what its system has acknowledged, or from a unix
	// socket what it has read. On other Unix systems, without TLS, it has taken what
	// the relay's socket has. On Windows, with TLS outside Linux, and for what Join
	// gets that has no descriptor, only a write that is finished counts, of up to
	// 64 KiB: a side that takes less than that in StallTimeout is reset.
	StallTimeout time.Duration
	// DrainTimeout is how long Close, and Serve when its context ends, let
	// connections end by themselves (default 30s; negative: not at all).
	DrainTimeout time.Duration

	// Log takes what an operator has to know; a message that repeats is said
	// once a second (default: nothing is logged).
	Log *slog.Logger
	// Access takes a record for each connection that has ended (default: none).
	//
	// Nothing waits for the handlers of Log and Access. One goroutine for each
	// hands it its records, of which up to 16,384 wait. Stats.Unlogged counts those
	// that found no room, with which the handler failed or panicked, or that were
	// left at Shutdown.
	Access *slog.Logger

	noSplice   bool // see relaytune
	bufferSize int  // see relaytune
	// maxPipes bounds the pipes that hold bytes in flight: 128, less where the
	// limit on descriptors is below 38,400, one for 300 of them. A direction that
	// finds none copies through a buffer and holds nothing while its destination
	// takes nothing.
	maxPipes  int
	grace     time.Duration // drainGrace; tests on a busy machine give more
	logQueues []*logQueue   // of Log and Access
}

// Balance is a way to choose among upstreams.
type Balance int

const (
	// RoundRobin takes them in turn.
	RoundRobin Balance = iota
	// LeastConnections takes the one with the fewest connections of this relay.
	LeastConnections
)

var bufferSizes = []int{4 << 10, 8 << 10, 16 << 10, 64 << 10}

// withDefaults fills in defaults and returns what is wrong.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	defaultTo(&o.ResolveInterval, 30*time.Second)
	defaultTo(&o.DialTimeout, 5*time.Second)
	defaultTo(&o.HandshakeTimeout, 10*time.Second)
	defaultTo(&o.IdleTimeout, time.Hour)
	defaultTo(&o.StallTimeout, 5*time.Minute)
	defaultTo(&o.DrainTimeout, 30*time.Second)
	defaultTo(&o.SocketMemory, defaultBudget())
	defaultTo(&o.grace, drainGrace)
	defaultTo(&o.bufferSize, relaytune.BufferSize)
	o.noSplice = o.noSplice || relaytune.NoSplice
	check(len(o.To) > 0, "no upstream: To is empty")
	check(o.bufferSize == 0 || slices.Contains(bufferSizes, o.bufferSize), "the size of a buffer is %d: it must be 4, 8, 16 or 64 KiB", o.bufferSize)
	check(o.Balance == RoundRobin || o.Balance == LeastConnections, "unknown Balance %d", o.Balance)
	check(o.SendProxy >= 0 && o.SendProxy <= 2, "SendProxy is %d: it must be 0, 1 or 2", o.SendProxy)
	check(o.MaxConnsPerSource >= 0, "MaxConnsPerSource is negative")
	check(o.HealthInterval >= 0, "HealthInterval is negative")
	check(o.ResolveInterval > 0, "ResolveInterval is negative")
	check(o.DialTimeout > 0, "DialTimeout is negative")
	check(o.HandshakeTimeout > 0, "HandshakeTimeout is negative")
	for _, c := range []*tls.Config{o.ServerTLS, o.ClientTLS} {
		check(c == nil || c.MinVersion == 0 || c.MinVersion >= tls.VersionTLS12, "MinVersion is below TLS 1.2")
	}
	if o.ServerFiles.Authorities != "" && o.ServerTLS != nil {
		auth := o.ServerTLS.ClientAuth
		check((auth == tls.NoClientCert || auth >= tls.VerifyClientCertIfGiven) && o.ServerTLS.GetConfigForClient == nil,
			"ServerFiles.Authorities needs a ServerTLS whose ClientAuth verifies certificates and which has no GetConfigForClient")
	}
	for _, p := range o.TrustProxy {
		check(p.IsValid(), "TrustProxy has a network that is none")
	}
	for _, log := range []**slog.Logger{&o.Log, &o.Access} {
		if *log != nil {
			q := newLogQueue((*log).Handler())
			o.logQueues = append(o.logQueues, q)
			*log = slog.New(q)
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if len(errs) == 0 {
		o.fitDescriptors(openfiles.Limit())
	}
	return o, errors.Join(errs...)
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
