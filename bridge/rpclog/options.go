package rpclog

import (
	"context"
	"log/slog"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/internal/request"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Options configures the interceptors. The zero value is the recommended
// setting.
type Options struct {
	// Level returns the level of a call's line. Default: INFO for OK and Canceled;
	// ERROR for faults of the server: Unknown, DeadlineExceeded, Unimplemented,
	// Internal, Unavailable, DataLoss; WARN for the others, such as InvalidArgument,
	// NotFound or Unauthenticated.
	Level func(fullMethod string, code codes.Code) slog.Level

	// Skip leaves out a call's line, for health checks and the like. Panics are
	// always logged. Default: no line is left out.
	Skip func(fullMethod string, code codes.Code) bool

	// IgnoreClientID gives every call to a server a new id. Interceptors of clients
	// do not use it.
	IgnoreClientID bool

	// NewID returns an id for a call to a server. Default: 26 random letters
	// and digits.
	NewID func() string

	// Repanic panics again after the panic of a server's handler is logged; gRPC lets
	// that end the process. Default: the call ends with code Internal.
	Repanic bool
}

// RequestID returns the id that a server's interceptor, or httplog.Middleware,
// put into a context, or "".
func RequestID(ctx context.Context) string { return request.ID(ctx) }

func levelOf(_ string, code codes.Code) slog.Level {
	switch code {
	case codes.OK, codes.Canceled:
		return slog.LevelInfo
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.Unauthenticated,
		codes.ResourceExhausted, codes.FailedPrecondition, codes.Aborted, codes.OutOfRange:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// logs is shared by the interceptors. It is immutable.
type logs struct {
	Options
	log *rollway.Logger
}

func newLogs(log *rollway.Logger, o Options) *logs {
	if o.Level == nil {
		o.Level = levelOf
	}
	if o.NewID == nil {
		o.NewID = request.NewID
	}
	return &logs{Options: o, log: log}
}

// line logs a call that has ended with err.
func (l *logs) line(ctx context.Context, msg, method string, begin time.Time, err error, more ...slog.Attr) {
	code := codeOf(err)
	if l.Skip != nil && l.Skip(method, code) {
		return
	}
	level := l.Level(method, code)
	if !l.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("method", method), slog.String("code", code.String()), slog.Duration("duration", time.Since(begin)))
	attrs = append(attrs, more...)
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	l.log.LogAt(ctx, time.Time{}, 0, level, msg, attrs...)
}

// codeOf returns the code that gRPC gives an error: that of a status or an ended
// context in it.
func codeOf(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return status.FromContextError(err).Code()
}
