package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Options of a Relay. The zero value of each field is the recommended setting,
// but To must be given.
type Options struct {
	// To are the upstreams: tcp://host:port, tls://host:port or unix:///path.
	To []string

	// Copy says how bytes are copied (default CopyAuto).
	Copy CopyMode
	// BufferSize is the size of a buffer, where buffers are used: 4, 8, 16 or
	// 64 KiB (default 16 KiB, which is a TLS record).
	BufferSize int
	// MaxPipes bounds the pipes that hold bytes in flight (default 128). A
	// direction that finds none copies through a buffer and holds nothing while
	// its destination takes nothing.
	MaxPipes int

	// DialTimeout bounds one attempt to connect to an upstream (default 5s).
	DialTimeout time.Duration
	// IdleTimeout ends a connection on which no byte moved either way (default
	// 1h; negative: never).
	IdleTimeout time.Duration
	// DrainTimeout is how long Serve, when its context ends, lets connections
	// end by themselves (default 30s; negative: not at all).
	DrainTimeout time.Duration

	// Log takes what an operator has to know; a message that repeats is said
	// once a second (default: nothing is logged).
	Log *slog.Logger
	// Access takes a record for each connection that has ended (default: none).
	Access *slog.Logger
}

// CopyMode is a way to copy bytes.
type CopyMode int

const (
	// CopyAuto splices where both sides are plain sockets of Linux, and takes
	// buffers elsewhere.
	CopyAuto CopyMode = iota
	// CopyBuffers takes buffers everywhere.
	CopyBuffers
)

const defaultBufferSize = 16 << 10

var bufferSizes = []int{4 << 10, 8 << 10, 16 << 10, 64 << 10}

// withDefaults fills in defaults and returns what is wrong.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(o.To) == 0 {
		bad("no upstream: To is empty")
	}
	if o.BufferSize == 0 {
		o.BufferSize = defaultBufferSize
	}
	if !slices.Contains(bufferSizes, o.BufferSize) {
		bad("BufferSize is %d: it must be 4, 8, 16 or 64 KiB", o.BufferSize)
	}
	if o.Copy < CopyAuto || o.Copy > CopyBuffers {
		bad("unknown CopyMode %d", o.Copy)
	}
	if o.MaxPipes == 0 {
		o.MaxPipes = 128
	}
	if o.MaxPipes < 0 {
		bad("MaxPipes is negative: for no pipes at all set Copy to CopyBuffers")
	}
	defaultTo(&o.DialTimeout, 5*time.Second)
	defaultTo(&o.IdleTimeout, time.Hour)
	defaultTo(&o.DrainTimeout, 30*time.Second)
	if o.DialTimeout < 0 {
		bad("DialTimeout is negative")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, errors.Join(errs...)
}

func defaultTo(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}
