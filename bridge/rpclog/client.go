package rpclog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/internal/request"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// UnaryClientInterceptor returns an interceptor that logs the calls of a client: one
// line when the call has ended, with method, code, duration, peer (the server's
// address, if one was reached) and any error.
//
// If the context has the id of a request that is being served (see
// [UnaryServerInterceptor] and httplog.Middleware), it is sent as x-request-id,
// unless the call's metadata has one. An id that only the metadata has is an
// attribute of the line.
func UnaryClientInterceptor(log *rollway.Logger, o Options) grpc.UnaryClientInterceptor {
	l := newLogs(log, o)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		begin := time.Now()
		ctx, line := outgoing(ctx)
		var to peer.Peer
		err := invoker(ctx, method, req, reply, cc, append(opts[:len(opts):len(opts)], grpc.Peer(&to))...)
		l.line(line, "grpc call", method, begin, err, peerOf(&to)...)
		return err
	}
}

// StreamClientInterceptor is [UnaryClientInterceptor] for streams. Their line is
// written when gRPC reports the end of the stream: its last message or an error was
// received, its context ended or the connection was closed.
func StreamClientInterceptor(log *rollway.Logger, o Options) grpc.StreamClientInterceptor {
	l := newLogs(log, o)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		begin := time.Now()
		ctx, line := outgoing(ctx)
		var to peer.Peer // set by gRPC before OnFinish
		var once sync.Once
		end := func(err error) {
			once.Do(func() { l.line(line, "grpc call", method, begin, err, peerOf(&to)...) })
		}
		s, err := streamer(ctx, desc, cc, method, append(opts[:len(opts):len(opts)], grpc.Peer(&to), grpc.OnFinish(end))...)
		if err != nil {
			end(err) // another interceptor may have rejected it
		}
		return s, err
	}
}

// outgoing returns the context of a call, with the id in its metadata, and the
// context of its line.
func outgoing(ctx context.Context) (call, line context.Context) {
	id := request.ID(ctx)
	md, _ := metadata.FromOutgoingContext(ctx)
	switch sent := md.Get(request.IDField); {
	case len(sent) == 0 && id != "":
		return metadata.AppendToOutgoingContext(ctx, request.IDField, id), ctx
	case len(sent) > 0 && id == "":
		return ctx, rollway.ContextWith(ctx, slog.String(request.IDKey, sent[0]))
	}
	return ctx, ctx
}

func peerOf(p *peer.Peer) []slog.Attr {
	if p == nil || p.Addr == nil {
		return nil
	}
	return []slog.Attr{slog.String("peer", p.Addr.String())}
}
