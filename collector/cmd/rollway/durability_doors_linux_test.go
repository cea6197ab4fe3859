package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Events that concurrent clients send each of each protocol.
const syncClients, syncEach = 6, 5

// syncedReceivers runs a collector in which synced is what is promised where nobody asks,
// has send called for each client, and checks that what send names in its answers
// left only after an fdatasync that began after the event was written.
func syncedReceivers(t *testing.T, prepare func(d *daemon), send func(client, n int) error, answer func(client, n int) string) {
	t.Helper()
	small := filepath.Join(t.TempDir(), "small.yaml")
	writeFile(t, small, "limits: {max_event: 400}\n")
	d := serveDaemon(t, "-config", small, "-data", realFolder(t), "-durability", "synced", "-listen-forward", "tcp://127.0.0.1:0")
	prepare(d)
	trace := traceDaemon(t, d, 20*time.Millisecond)
	var sending sync.WaitGroup
	for client := range syncClients {
		sending.Go(func() {
			for n := range syncEach {
				if err := send(client, n); err != nil {
					t.Errorf("client %d: %v", client, err)
					return
				}
			}
		})
	}
	sending.Wait()
	calls := trace()
	syncs := 0
	for _, c := range calls {
		if c.name == "fdatasync" {
			syncs++
		}
	}
	if syncs == 0 || syncs >= syncClients*syncEach {
		t.Errorf("%d calls of fdatasync for %d answers", syncs, syncClients*syncEach)
	}
	if t.Failed() {
		return
	}
	for client := range syncClients {
		for n := range syncEach {
			checkSyncedBefore(t, calls, eventName(client, n), answer(client, n))
		}
	}
}

func eventName(client, n int) string { return fmt.Sprintf("event-%d-%d.", client, n) }

// An acknowledgement of Fluent forward is one of events that are synced.
func TestSyncedForward(t *testing.T) {
	chunk := func(client, n int) string { return fmt.Sprintf("chunk-%d-%d.", client, n) }
	conns := make([]net.Conn, syncClients)
	syncedReceivers(t, func(d *daemon) {
		m := regexp.MustCompile(`(?m)^  forward +([0-9.:]+)`).FindStringSubmatch(d.stdout.String())
		if m == nil {
			t.Fatalf("no address of forward in\n%s", d.stdout.String())
		}
		for i := range conns {
			c, err := net.Dial("tcp", m[1])
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			c.SetDeadline(time.Now().Add(2 * time.Minute))
			conns[i] = c
		}
	}, func(client, n int) error {
		short := func(s string) string { return string([]byte{0xa0 | byte(len(s))}) + s }
		message := "\x94" + short("app") + "\xce\x6a\x18\x39\xa0\x81" + short("log") + short(eventName(client, n)) + "\x81" + short("chunk") + short(chunk(client, n))
		if _, err := io.WriteString(conns[client], message); err != nil {
			return err
		}
		want := "\x81" + short("ack") + short(chunk(client, n))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conns[client], got); err != nil || string(got) != want {
			return fmt.Errorf("answered %q, %v", got, err)
		}
		return nil
	}, chunk)
}

// An answer of OTLP over gRPC that says what was stored is one of events that are
// synced. As an answer of success names nothing, each request has some records
// that are too long, and each another number of those before it: the answer says
// which the first is.
func TestSyncedGRPC(t *testing.T) {
	number := func(client, n int) int { return 1 + client*syncEach + n }
	var conn *grpc.ClientConn
	syncedReceivers(t, func(d *daemon) {
		var err error
		conn, err = grpc.NewClient("passthrough:///"+strings.TrimPrefix(d.addr, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}, func(client, n int) error {
		logs := plog.NewLogs()
		records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for range number(client, n) {
			records.AppendEmpty().Body().SetStr(eventName(client, n))
		}
		records.AppendEmpty().Body().SetStr(strings.Repeat("long", 200))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		answer, err := plogotlp.NewGRPCClient(conn).Export(ctx, plogotlp.NewExportRequestFromLogs(logs))
		if err != nil {
			return err
		}
		if p := answer.PartialSuccess(); p.RejectedLogRecords() != 1 || !strings.HasPrefix(p.ErrorMessage(), fmt.Sprintf("event %d is", number(client, n))) {
			return fmt.Errorf("%d are rejected: %s", p.RejectedLogRecords(), p.ErrorMessage())
		}
		return nil
	}, func(client, n int) string { return fmt.Sprintf("event %d is", number(client, n)) })
}
