package collector

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestGRPC calls both addresses at which gRPC is taken, and stops the collector
// while connections stand.
func TestGRPC(t *testing.T) {
	cfg := testConfig(t)
	cfg.ListenGRPC = "127.0.0.1:0"
	r := run(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, addr := range []string{r.Addr().String(), r.GRPCAddr().String()} {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		logs := plog.NewLogs()
		logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("over gRPC to " + addr)
		if _, err := plogotlp.NewGRPCClient(conn).Export(ctx, plogotlp.NewExportRequestFromLogs(logs)); err != nil {
			t.Fatal(err)
		}
		if _, _, lines := r.do(t, "GET", "/api/query?last=1", ""); !strings.Contains(lines, "over gRPC to "+addr) {
			t.Errorf("found %q", lines)
		}
	}
	if err := r.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}
