package rpclog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/rpclog"
	"github.com/rollway/rollway/rollwaytest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
	parent  = "00-" + traceID + "-" + spanID + "-01"
	empty   = "/grpc.testing.TestService/EmptyCall"
)

func TestUnary(t *testing.T) {
	p := start(t, &service{empty: func(ctx context.Context) error {
		rollway.FromContext(ctx).Info(ctx, "in the handler", slog.String("id", rpclog.RequestID(ctx)))
		return nil
	}}, rpclog.Options{})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "req-1", "traceparent", parent)
	var header metadata.MD
	if _, err := p.EmptyCall(ctx, &pb.Empty{}, grpc.Header(&header)); err != nil {
		t.Fatal(err)
	}
	if got := header.Get("x-request-id"); len(got) != 1 || got[0] != "req-1" {
		t.Errorf("id in the response: %v", got)
	}
	got := wait(t, &p.server, 2)
	for _, r := range got {
		if r.Attrs["request_id"] != "req-1" || r.TraceID != traceID || r.SpanID != spanID || r.Level != slog.LevelInfo {
			t.Errorf("line without the call's attributes: %s", r.Line)
		}
	}
	if got[0].Attrs["id"] != "req-1" {
		t.Errorf("handler's line: %s", got[0].Line)
	}
	check := func(r map[string]any, line string, peer string) {
		t.Helper()
		d, _ := r["duration"].(int64)
		if from, _ := r["peer"].(string); r["method"] != empty || r["code"] != "OK" || d <= 0 || d > int64(time.Minute) || !strings.HasPrefix(from, peer) || r["request_id"] != "req-1" || len(r) != 5 {
			t.Errorf("got %s", line)
		}
	}
	check(got[1].Attrs, got[1].Line, "127.0.0.1:")
	client := wait(t, &p.client, 1)[0]
	check(client.Attrs, client.Line, p.addr)
	if got[1].Msg != "grpc request" || client.Msg != "grpc call" || got[1].Error != nil {
		t.Errorf("messages %q, %q", got[1].Msg, client.Msg)
	}
}

func TestRequestID(t *testing.T) {
	generated := regexp.MustCompile(`^[A-Z2-7]{26}$`)
	for name, c := range map[string]struct {
		o    rpclog.Options
		md   []string
		want string // "" for a generated one
	}{
		"none":  {},
		"sane":  {md: []string{"x-request-id", "a/b"}, want: "a/b"},
		"long":  {md: []string{"x-request-id", strings.Repeat("a", 129)}},
		"space": {md: []string{"x-request-id", `a b"`}},
		"twice": {md: []string{"x-request-id", "a", "x-request-id", "b"}},
		"own":   {o: rpclog.Options{IgnoreClientID: true}, md: []string{"x-request-id", "a"}},
		"NewID": {o: rpclog.Options{NewID: func() string { return "mine" }}, want: "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, &service{empty: func(context.Context) error { return nil }}, c.o)
			if _, err := p.EmptyCall(metadata.AppendToOutgoingContext(t.Context(), c.md...), &pb.Empty{}); err != nil {
				t.Fatal(err)
			}
			id, _ := wait(t, &p.server, 1)[0].Attrs["request_id"].(string)
			if c.want != "" && id != c.want || c.want == "" && !generated.MatchString(id) {
				t.Errorf("id %q, want %q", id, c.want)
			}
		})
	}
}

func TestCodes(t *testing.T) {
	var answer error
	p := start(t, &service{empty: func(context.Context) error { return answer }}, rpclog.Options{})
	for _, c := range []struct {
		err   error
		code  codes.Code
		level slog.Level
	}{
		{nil, codes.OK, slog.LevelInfo},
		{status.Error(codes.NotFound, "no card"), codes.NotFound, slog.LevelWarn},
		{fmt.Errorf("charge: %w", status.Error(codes.ResourceExhausted, "quota")), codes.ResourceExhausted, slog.LevelWarn},
		{status.Error(codes.Unavailable, "later"), codes.Unavailable, slog.LevelError},
		{errors.New("bare"), codes.Unknown, slog.LevelError},
		{fmt.Errorf("query: %w", context.DeadlineExceeded), codes.DeadlineExceeded, slog.LevelError},
		{context.Canceled, codes.Canceled, slog.LevelInfo},
	} {
		answer = c.err
		_, err := p.EmptyCall(t.Context(), &pb.Empty{})
		if status.Code(err) != c.code {
			t.Errorf("the client got %v, want %v", err, c.code)
		}
		server, client := wait(t, &p.server, 1)[0], wait(t, &p.client, 1)[0]
		if server.Level != c.level || server.Attrs["code"] != c.code.String() || client.Level != c.level || client.Attrs["code"] != c.code.String() {
			t.Errorf("%v: server %s\nclient %s", c.err, server.Line, client.Line)
		}
		if c.err != nil && (server.Error != c.err.Error() || client.Error != err.Error()) || c.err == nil && server.Error != nil {
			t.Errorf("%v: server %s\nclient %s", c.err, server.Line, client.Line)
		}
	}
}

func TestLevelAndSkip(t *testing.T) {
	fail := false
	p := start(t, &service{empty: func(context.Context) error {
		if fail {
			return status.Error(codes.Internal, "sick")
		}
		return nil
	}}, rpclog.Options{
		Level: func(_ string, code codes.Code) slog.Level { return slog.Level(code) },
		Skip:  func(method string, code codes.Code) bool { return method == empty && code == codes.OK },
	})
	p.EmptyCall(t.Context(), &pb.Empty{})
	fail = true
	p.EmptyCall(t.Context(), &pb.Empty{})
	if r := wait(t, &p.server, 1)[0]; r.Level != slog.Level(codes.Internal) {
		t.Errorf("got %s", r.Line)
	}
	wait(t, &p.client, 1)
}

type flushes struct{ n, syncs int }

func (f *flushes) Sync() error { f.syncs++; return nil }

func (f *flushes) Write(p []byte) (int, error) { return len(p), nil }
func (f *flushes) Flush(context.Context) error { f.n++; return nil }

func noCard(card *struct{ number int }) int { return card.number }

func TestPanic(t *testing.T) {
	p := start(t, &service{
		empty:    func(context.Context) error { noCard(nil); return nil },
		download: func(grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error { panic("no stream") },
	}, rpclog.Options{})
	_, err := p.EmptyCall(t.Context(), &pb.Empty{})
	if s := status.Convert(err); s.Code() != codes.Internal || s.Message() != "internal error" {
		t.Errorf("the client got %v", err)
	}
	got := wait(t, &p.server, 2)
	call, panicked := got[0], got[1]
	stack, _ := panicked.Attrs["stack"].(string)
	source, _ := panicked.Source.(string)
	if panicked.Level != rollway.LevelPanic || !strings.HasPrefix(panicked.Msg, "panic: runtime error: invalid memory address") || panicked.Attrs["request_id"] == nil ||
		!strings.HasPrefix(stack, "github.com/rollway/rollway/bridge/rpclog_test.noCard\n\t") || !strings.HasPrefix(source, "rpclog/server_test.go:") {
		t.Errorf("panic's line: %s", panicked.Line)
	}
	if call.Level != slog.LevelError || call.Attrs["code"] != "Internal" {
		t.Errorf("call's line: %s", call.Line)
	}

	stream, err := p.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Internal {
		t.Errorf("the client got %v", err)
	}
	if got := wait(t, &p.server, 2); got[1].Msg != "panic: no stream" || got[0].Attrs["code"] != "Internal" {
		t.Errorf("got %s\nand %s", got[0].Line, got[1].Line)
	}
}

type secretError struct{}

func (secretError) Error() string        { return "secret" }
func (secretError) LogValue() slog.Value { return slog.StringValue("shown") }

// TestPanicRedacts: what a LogValuer hides stays hidden when a handler panics with
// an error that wraps it.
func TestPanicRedacts(t *testing.T) {
	var s rollwaytest.Recorder
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: &s}}, Redact: &rollway.Redaction{Keys: []string{"password"}}})
	if err != nil {
		t.Fatal(err)
	}
	i := rpclog.UnaryServerInterceptor(log, rpclog.Options{})
	i(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: empty}, func(context.Context, any) (any, error) {
		panic(fmt.Errorf("charge: %w", secretError{}))
	})
	if got := wait(t, &s, 2)[1]; got.Msg != "panic: charge: shown" {
		t.Errorf("got %s", got.Line)
	}
}

// TestRepanic calls the interceptor itself: through a server the panic would
// end the test.
func TestRepanic(t *testing.T) {
	out := new(flushes)
	i := rpclog.UnaryServerInterceptor(newLogger(t, rollway.Output{Writer: out}), rpclog.Options{Repanic: true})
	defer func() {
		if p := recover(); p != "on" || out.n != 1 || out.syncs != 1 {
			t.Errorf("recovered %v after %d flushes and %d syncs", p, out.n, out.syncs)
		}
	}()
	i(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: empty}, func(context.Context, any) (any, error) { panic("on") })
}

func TestChainedTwice(t *testing.T) {
	out := newLogger(t, rollway.Output{Writer: new(flushes)})
	i := rpclog.UnaryServerInterceptor(out, rpclog.Options{})
	var outer, inner string
	_, err := i(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: empty}, func(ctx context.Context, req any) (any, error) {
		outer = rpclog.RequestID(ctx)
		return i(ctx, req, &grpc.UnaryServerInfo{FullMethod: empty}, func(ctx context.Context, _ any) (any, error) {
			inner = rpclog.RequestID(ctx)
			return nil, nil
		})
	})
	if err != nil || outer == "" || inner != outer {
		t.Errorf("%v: ids %q and %q", err, outer, inner)
	}
}
