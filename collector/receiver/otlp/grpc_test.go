package otlp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/rollway/rollway/collector/receiver"
)

// overHTTP2 serves s as gRPC and returns a connection of grpc-go to it.
func (s *server) overHTTP2(t testing.TB) *grpc.ClientConn {
	mux := http.NewServeMux()
	mux.Handle(GRPCPath, s.GRPC(GRPC))
	mux.Handle("/", Unimplemented(http.NotFoundHandler()))
	web := httptest.NewUnstartedServer(mux)
	web.Config.Protocols = new(http.Protocols)
	web.Config.Protocols.SetUnencryptedHTTP2(true)
	web.Config.Protocols.SetHTTP1(true)
	web.Start()
	t.Cleanup(web.Close)
	conn, err := grpc.NewClient("passthrough:///"+web.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func requestOf(texts ...string) plogotlp.ExportRequest {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, text := range texts {
		records.AppendEmpty().Body().SetStr(text)
	}
	return plogotlp.NewExportRequestFromLogs(logs)
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestGRPC has the answers read by grpc-go, plain and with gzip.
func TestGRPC(t *testing.T) {
	for name, options := range map[string][]grpc.CallOption{"plain": nil, "gzip": {grpc.UseCompressor("gzip")}} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(o *receiver.Options) { o.Limits.MaxEventBytes = 500; o.MaxBody = 5_000; o.MaxUnpacked = 10_000 })
			client := plogotlp.NewGRPCClient(s.overHTTP2(t))
			res, err := client.Export(within(t), requestOf("one", "two"), options...)
			if err != nil || res.PartialSuccess().RejectedLogRecords() != 0 || len(s.Lines) != 2 || !strings.Contains(s.Lines[1], `"msg":"two"`) {
				t.Fatalf("%v, %q", err, s.Lines)
			}
			res, err = client.Export(within(t), requestOf(), options...)
			if err != nil || res.PartialSuccess().RejectedLogRecords() != 0 {
				t.Errorf("no records: %v", err)
			}
			res, err = client.Export(within(t), requestOf("three", strings.Repeat("x", 600)), options...)
			if p := res.PartialSuccess(); err != nil || p.RejectedLogRecords() != 1 || p.ErrorMessage() != "event 1 is larger than 500 bytes as a canonical line" || len(s.Lines) != 3 {
				t.Errorf("partly: %v, %q, %q", err, p.ErrorMessage(), s.Lines)
			}
			for _, c := range []struct {
				name  string
				req   plogotlp.ExportRequest
				fail  error
				code  codes.Code
				retry bool
				text  string
			}{
				{"all rejected", requestOf(strings.Repeat("é%", 300)), nil, codes.InvalidArgument, false, "event 0 is larger"},
				{"too large", requestOf(strings.Repeat("x", 20_000)), nil, codes.ResourceExhausted, false, "send smaller requests"},
				{"full", requestOf("a"), receiver.ErrFull, codes.Unavailable, true, "the journal is full"},
				{"stopping", requestOf("a"), os.ErrClosed, codes.Unavailable, true, "stopping"},
				{"disk fails", requestOf("a"), errors.New("broken"), codes.Unavailable, true, "could not be stored"},
			} {
				s.Fail = c.fail
				_, err := client.Export(within(t), c.req, options...)
				st := status.Convert(err)
				if st.Code() != c.code || !strings.Contains(st.Message(), c.text) {
					t.Errorf("%s: %v", c.name, err)
				}
				retry := len(st.Details()) == 1
				if retry {
					info, is := st.Details()[0].(*errdetails.RetryInfo)
					retry = is && info.RetryDelay.AsDuration() == time.Second
				}
				if retry != c.retry {
					t.Errorf("%s: details %v", c.name, st.Details())
				}
			}
			if got := s.Stats().Requests[503]; got != 3 {
				t.Errorf("%d requests are counted as refused", got)
			}
		})
	}
}

func TestGRPCOfOtherKinds(t *testing.T) {
	s := newServer(t, nil)
	conn := s.overHTTP2(t)
	err := conn.Invoke(within(t), "/opentelemetry.proto.collector.trace.v1.TraceService/Export", &errdetails.RetryInfo{}, &errdetails.RetryInfo{})
	if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), GRPCPath) {
		t.Errorf("traces: %v", err)
	}
	handler := s.GRPC(GRPC)
	for _, c := range []struct{ name, contentType, encoding, body, status, text string }{
		{"an empty message", inGRPC, "", "\x00\x00\x00\x00\x00", "", ""},
		{"not gRPC", inJSON, "", "\x00\x00\x00\x00\x00", "12", "send OTLP over HTTP"},
		{"no head", inGRPC, "", "\x00\x00", "3", "begins with"},
		{"a bad head", inGRPC, "", "\x07\x00\x00\x00\x00", "3", "begins with"},
		{"too short", inGRPC, "", "\x00\x00\x00\x00\x05abc", "3", "5 bytes long, but 3 came"},
		{"two messages", inGRPC, "", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "3", "0 bytes long, but 5 came"},
		{"packed without a name", inGRPC, "", "\x01\x00\x00\x00\x01x", "3", "does not say how"},
		{"packed, but not so", inGRPC, "gzip", "\x01\x00\x00\x00\x01x", "3", "the body is not"},
		{"packed in another way", inGRPC, "compress", "\x01\x00\x00\x00\x01x", "12", "supported are"},
		{"larger than all", inGRPC, "", "\x00\xff\xff\xff\xff", "8", "4294967295 bytes"},
		{"not OTLP", inGRPC, "", "\x00\x00\x00\x00\x05hello", "3", "not a valid ExportLogsServiceRequest"},
	} {
		req := httptest.NewRequest("POST", GRPCPath, strings.NewReader(c.body))
		req.Header.Set("Content-Type", c.contentType)
		if c.encoding != "" {
			req.Header.Set("Grpc-Encoding", c.encoding)
		}
		res := httptest.NewRecorder()
		handler.ServeHTTP(res, req)
		if res.Code != 200 || res.Header().Get(grpcStatus) != c.status || !strings.Contains(res.Header().Get(grpcMessage), c.text) {
			t.Errorf("%s: %d %v", c.name, res.Code, res.Header())
		}
	}
}

func TestPercent(t *testing.T) {
	if got := percent("50% of é\n"); got != "50%25 of %C3%A9%0A" {
		t.Errorf("%q", got)
	}
}
