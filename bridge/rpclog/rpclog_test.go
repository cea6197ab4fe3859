package rpclog_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/rpclog"
	"github.com/rollway/rollway/rollwaytest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// service is a gRPC service whose handlers are those of a test.
type service struct {
	pb.UnimplementedTestServiceServer
	empty    func(context.Context) error
	upload   func(grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error
	download func(grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error
	duplex   func(grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error
}

func (s *service) EmptyCall(ctx context.Context, _ *pb.Empty) (*pb.Empty, error) {
	return &pb.Empty{}, s.empty(ctx)
}

func (s *service) StreamingInputCall(st grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	return s.upload(st)
}

func (s *service) StreamingOutputCall(_ *pb.StreamingOutputCallRequest, st grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	return s.download(st)
}

func (s *service) FullDuplexCall(st grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	return s.duplex(st)
}

func newLogger(t *testing.T, o rollway.Output) *rollway.Logger {
	t.Helper()
	l, err := rollway.New(rollway.Options{Outputs: []rollway.Output{o}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pair is a server and a client of it, connected by TCP, and what each logged.
type pair struct {
	pb.TestServiceClient
	server, client rollwaytest.Recorder
	addr           string
	srv            *grpc.Server
	conn           *grpc.ClientConn
}

func start(t *testing.T, s *service, o rpclog.Options) *pair {
	t.Helper()
	p := new(pair)
	server, client := newLogger(t, rollway.Output{Writer: &p.server}), newLogger(t, rollway.Output{Writer: &p.client})
	p.srv = grpc.NewServer(grpc.UnaryInterceptor(rpclog.UnaryServerInterceptor(server, o)), grpc.StreamInterceptor(rpclog.StreamServerInterceptor(server, o)))
	pb.RegisterTestServiceServer(p.srv, s)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = ln.Addr().String()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.srv.Serve(ln)
	}()
	p.conn, err = grpc.NewClient(p.addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(rpclog.UnaryClientInterceptor(client, o)), grpc.WithStreamInterceptor(rpclog.StreamClientInterceptor(client, o)))
	if err != nil {
		t.Fatal(err)
	}
	p.TestServiceClient = pb.NewTestServiceClient(p.conn)
	t.Cleanup(func() {
		p.conn.Close()
		p.srv.Stop()
		<-done
	})
	return p
}

// wait returns the n records that are to come: a line is written after the
// other side has its answer.
func wait(t *testing.T, rec *rollwaytest.Recorder, n int) []rollwaytest.Record {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(rec.Records()) < n && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	got := rec.Records()
	if len(got) != n || len(rec.Invalid()) > 0 {
		t.Fatalf("%d records, want %d: %v %v", len(got), n, got, rec.Invalid())
	}
	rec.Reset()
	return got
}
