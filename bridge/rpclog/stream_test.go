package rpclog_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/rpclog"
	"github.com/rollway/rollway/rollwaytest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func echo(st grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	rollway.FromContext(st.Context()).Info(st.Context(), "stream begins")
	for {
		if _, err := st.Recv(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := st.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

func TestStream(t *testing.T) {
	p := start(t, &service{duplex: echo}, rpclog.Options{})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "s1")
	st, err := p.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := st.Send(&pb.StreamingOutputCallRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.client.Records()); n != 0 {
		t.Errorf("%d lines before the stream has ended", n)
	}
	st.CloseSend()
	if _, err := st.Recv(); err != io.EOF {
		t.Fatal(err)
	}
	server, client := wait(t, &p.server, 2), wait(t, &p.client, 1)[0]
	for _, r := range append(server, client) {
		if r.Attrs["request_id"] != "s1" || r.Level != slog.LevelInfo {
			t.Errorf("got %s", r.Line)
		}
	}
	if a := server[1].Attrs; a["code"] != "OK" || a["method"] != "/grpc.testing.TestService/FullDuplexCall" {
		t.Errorf("got %s", server[1].Line)
	}
	if client.Attrs["peer"] != p.addr || client.Attrs["code"] != "OK" {
		t.Errorf("got %s", client.Line)
	}
}

// TestStreamCanceled: the client walks away and never receives again.
func TestStreamCanceled(t *testing.T) {
	p := start(t, &service{duplex: echo}, rpclog.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	st, err := p.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&pb.StreamingOutputCallRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	server, client := wait(t, &p.server, 2)[1], wait(t, &p.client, 1)[0]
	if server.Attrs["code"] != "Canceled" || client.Attrs["code"] != "Canceled" || server.Level != slog.LevelInfo || client.Level != slog.LevelInfo {
		t.Errorf("server %s\nclient %s", server.Line, client.Line)
	}
}

func TestUpload(t *testing.T) {
	p := start(t, &service{upload: func(st grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
		for {
			if _, err := st.Recv(); err == io.EOF {
				return st.SendAndClose(&pb.StreamingInputCallResponse{})
			} else if err != nil {
				return err
			}
		}
	}}, rpclog.Options{})
	st, err := p.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st.Send(&pb.StreamingInputCallRequest{})
	if _, err := st.CloseAndRecv(); err != nil {
		t.Fatal(err)
	}
	wait(t, &p.server, 1)
	if r := wait(t, &p.client, 1)[0]; r.Attrs["code"] != "OK" {
		t.Errorf("got %s", r.Line)
	}
}

// TestUnreachable: a line with the code and without a peer.
func TestUnreachable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	var rec rollwaytest.Recorder
	log := newLogger(t, rollway.Output{Writer: &rec})
	refuse := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
		return nil, status.Error(codes.PermissionDenied, "refused here")
	}
	dial := func(inner ...grpc.StreamClientInterceptor) pb.TestServiceClient {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithUnaryInterceptor(rpclog.UnaryClientInterceptor(log, rpclog.Options{})),
			grpc.WithChainStreamInterceptor(append([]grpc.StreamClientInterceptor{rpclog.StreamClientInterceptor(log, rpclog.Options{})}, inner...)...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return pb.NewTestServiceClient(conn)
	}
	c := dial()
	if _, err := c.EmptyCall(t.Context(), &pb.Empty{}); err == nil {
		t.Error("answered")
	}
	if _, err := c.FullDuplexCall(t.Context()); err == nil {
		t.Error("answered")
	}
	for _, r := range wait(t, &rec, 2) {
		if r.Attrs["code"] != "Unavailable" || r.Attrs["peer"] != nil || r.Level != slog.LevelError || r.Error == nil {
			t.Errorf("got %s", r.Line)
		}
	}
	if _, err := dial(refuse).FullDuplexCall(t.Context()); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	if r := wait(t, &rec, 1)[0]; r.Attrs["code"] != "PermissionDenied" || r.Level != slog.LevelWarn {
		t.Errorf("got %s", r.Line)
	}
}

// TestPropagation: the id of a request goes along with the calls that it makes.
func TestPropagation(t *testing.T) {
	back := start(t, &service{empty: func(context.Context) error { return nil }}, rpclog.Options{})
	front := start(t, &service{empty: func(ctx context.Context) error {
		_, err := back.EmptyCall(ctx, &pb.Empty{})
		_, err2 := back.EmptyCall(metadata.AppendToOutgoingContext(ctx, "x-request-id", "another"), &pb.Empty{})
		return errors.Join(err, err2)
	}}, rpclog.Options{})
	if _, err := front.EmptyCall(metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "r1"), &pb.Empty{}); err != nil {
		t.Fatal(err)
	}
	got := wait(t, &back.server, 2)
	if got[0].Attrs["request_id"] != "r1" || got[1].Attrs["request_id"] != "another" {
		t.Errorf("got %s\nand %s", got[0].Line, got[1].Line)
	}
	for _, r := range wait(t, &back.client, 2) { // the client's lines are of the request that makes the calls
		if r.Attrs["request_id"] != "r1" {
			t.Errorf("got %s", r.Line)
		}
	}
}

func TestConcurrent(t *testing.T) {
	p := start(t, &service{empty: func(ctx context.Context) error { return status.Error(codes.NotFound, rpclog.RequestID(ctx)) }}, rpclog.Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 25 {
				p.EmptyCall(metadata.AppendToOutgoingContext(t.Context(), "x-request-id", string(rune('a'+i))), &pb.Empty{})
			}
		})
	}
	wg.Wait()
	for _, r := range append(wait(t, &p.server, 200), wait(t, &p.client, 200)...) {
		if id, _ := r.Attrs["request_id"].(string); r.Error != "rpc error: code = NotFound desc = "+id {
			t.Fatalf("got %s", r.Line)
		}
	}
}
