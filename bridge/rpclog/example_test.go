package rpclog_test

import (
	"context"
	"net"
	"os"
	"regexp"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/rpclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
)

// stable is an io.Writer that replaces what differs from run to run, so that
// the example's output can be checked.
type stable struct{}

var varies = regexp.MustCompile(`("time":|"duration":|"peer":)("[^"]*"|[0-9]+)`)

func (stable) Write(p []byte) (int, error) {
	if _, err := os.Stdout.Write(varies.ReplaceAll(p, []byte(`$1…`))); err != nil {
		return 0, err
	}
	return len(p), nil
}

type payments struct {
	pb.UnimplementedTestServiceServer
}

func (payments) EmptyCall(ctx context.Context, _ *pb.Empty) (*pb.Empty, error) {
	rollway.FromContext(ctx).Info(ctx, "charging")
	return &pb.Empty{}, nil
}

func Example() {
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: stable{}}}})
	if err != nil {
		panic(err)
	}
	srv := grpc.NewServer(
		grpc.ChainUnaryInterceptor(rpclog.UnaryServerInterceptor(log, rpclog.Options{})),
		grpc.ChainStreamInterceptor(rpclog.StreamServerInterceptor(log, rpclog.Options{})),
	)
	pb.RegisterTestServiceServer(srv, payments{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go srv.Serve(ln)

	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-request-id", "req-7")
	if _, err := pb.NewTestServiceClient(conn).EmptyCall(ctx, &pb.Empty{}); err != nil {
		panic(err)
	}
	conn.Close()
	srv.GracefulStop()
	// Output:
	// {"time":…,"level":"INFO","msg":"charging","attrs":{"request_id":"req-7"}}
	// {"time":…,"level":"INFO","msg":"grpc request","attrs":{"request_id":"req-7","method":"/grpc.testing.TestService/EmptyCall","code":"OK","duration":…,"peer":…}}
}
