package rpclog

import (
	"context"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/internal/request"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// UnaryServerInterceptor returns an interceptor that logs the calls to a server.
//
// A call gets an id: the x-request-id in its metadata if that is valid (1 to 128
// letters, digits and -._~:/+=@), else a new one. The response's header has it too.
// The handler's context carries it as the attribute request_id, and with a valid W3C
// traceparent also the caller's trace_id and span_id. Every line logged with that
// context has them. In the handler, rollway.FromContext returns log and [RequestID]
// the id.
//
// When the handler has returned, one line reports method, code, duration, peer and
// any error. Calls that gRPC answers without a handler, such as those of unknown
// methods, have no line.
//
// A panic is logged at PANIC, with its stack and source, and every output is synced.
func UnaryServerInterceptor(log *rollway.Logger, o Options) grpc.UnaryServerInterceptor {
	l := newLogs(log, o)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		c := l.begin(ctx, info.FullMethod)
		defer func() { c.end(recover(), &err) }()
		resp, err = handler(c.ctx, req)
		c.returned = true
		return resp, err
	}
}

// StreamServerInterceptor is [UnaryServerInterceptor] for streams. Their line is
// written when the handler has returned.
func StreamServerInterceptor(log *rollway.Logger, o Options) grpc.StreamServerInterceptor {
	l := newLogs(log, o)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
		c := l.begin(stream.Context(), info.FullMethod)
		defer func() { c.end(recover(), &err) }()
		err = handler(srv, serverStream{stream, c.ctx})
		c.returned = true
		return err
	}
}

type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s serverStream) Context() context.Context { return s.ctx }

// serverCall is one call to a server. The goroutine that serves it owns it.
type serverCall struct {
	l        *logs
	ctx      context.Context // of the handler
	id       string          // "" if an outer interceptor has set it
	method   string
	start    time.Time
	returned bool // the handler returned without a panic
}

func (l *logs) begin(ctx context.Context, method string) *serverCall {
	c := &serverCall{l: l, method: method, start: time.Now()}
	c.ctx = rollway.NewContext(c.context(ctx), l.log)
	return c
}

// context returns ctx with what the handler's lines carry, and sets the id in the
// response's header. If interceptors are nested, the outer one counts.
func (c *serverCall) context(ctx context.Context) context.Context {
	if request.ID(ctx) != "" {
		return ctx
	}
	var ids []string
	if !c.l.IgnoreClientID {
		ids = metadata.ValueFromIncomingContext(ctx, request.IDField)
	}
	ctx = request.Begin(ctx, &c.id, ids, metadata.ValueFromIncomingContext(ctx, request.TraceField), c.l.NewID)
	_ = grpc.SetHeader(ctx, metadata.Pairs(request.IDField, c.id)) // fails if an interceptor has sent the header: then without
	return ctx
}

// end logs the call and, if there was one, the panic p, which it turns into an error.
// The deferred function that recovered p calls it.
func (c *serverCall) end(p any, err *error) {
	at := time.Now()
	if p != nil {
		*err = status.Error(codes.Internal, "internal error") // the client does not see the value of the panic
	} else if !c.returned {
		*err = status.Error(codes.Unknown, "the handler ended its goroutine")
	}
	from, _ := peer.FromContext(c.ctx)
	c.l.line(c.ctx, "grpc request", c.method, c.start, *err, peerOf(from)...)
	if p == nil {
		return
	}
	c.l.log.LogPanic(c.ctx, at, p)
	if c.l.Repanic {
		panic(p)
	}
}
