package collector

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/internal/disk"
)

// A tenant's words are in all that it sends, and in nothing of the other's.
const canary = "canary"

// words returns words of a tenant, more or fewer of them.
func words(tenant string, i int) string {
	return strings.Repeat(canary+"-"+tenant+" ", 1+i*37%300)
}

// canaryReceiver sends something of a tenant: request i, of stored and rejected
// events, as body in a request to path.
type canaryReceiver struct {
	path, contentType string
	stored, rejected  int
	body              func(text string) []byte // with text in all of its events
}

var canaryReceivers = []canaryReceiver{
	{"/api/logs", "", 2, 1, func(s string) []byte {
		return fmt.Appendf(nil, `[{"msg":%q},{"msg":"m","attrs":{"a":{"b":[%q]},"a":1}},%q]`, s, s, s)
	}},
	{"/api/logs", "", 1, 2, func(s string) []byte { return fmt.Appendf(nil, "{\"msg\":%q}\n{%q:}\n{\"%s\":\xff}", s, s, s) }},
	{"/v1/logs", "application/json", 1, 0, func(s string) []byte {
		return fmt.Appendf(nil, `{"resourceLogs":[{"resource":{"attributes":[{"key":"r","value":{"stringValue":%q}}]},"scopeLogs":[{"logRecords":[{"body":{"stringValue":%q}}]}]}]}`, s, s)
	}},
	{"/v1/logs", "application/x-protobuf", 1, 0, func(s string) []byte {
		b, err := (&plog.ProtoMarshaler{}).MarshalLogs(otlpLogs(s))
		if err != nil {
			panic(err)
		}
		return b
	}},
	{"/loki/api/v1/push", "application/json", 2, 0, func(s string) []byte {
		return fmt.Appendf(nil, `{"streams":[{"stream":{"l":"\u0020%s"},"values":[["1","%s",{"m":"\u0020%s"}],["2","{\"x\":\"%s\"}"]]}]}`, s, s, s, s)
	}},
	{"/loki/api/v1/push", "application/x-protobuf", 1, 0, func(s string) []byte {
		field := func(num protowire.Number, b []byte) []byte {
			return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
		}
		entry := field(2, field(2, []byte(s)))
		return snappy.Encode(nil, field(1, append(field(1, []byte(`{l="`+s+`\""}`)), entry...)))
	}},
	{"/_bulk", "application/x-ndjson", 1, 2, func(s string) []byte {
		return fmt.Appendf(nil, "{\"index\":{\"_id\":%q}}\n{\"message\":%q,\"\\u0061\":1}\n{\"create\":{}}\n{%q\n{\"delete\":{\"_id\":%q}}\n", s, s, s, s)
	}},
	{"/services/collector/event", "", 1, 1, func(s string) []byte {
		return fmt.Appendf(nil, `{"event":%q,"fields":{"\u0061b":%q}} {"event":"","x":%q}`, s, s, s)
	}},
	{"/upload", "application/vnd.fdo.journal", 2, 0, func(s string) []byte {
		return fmt.Appendf(nil, "MESSAGE=%s\nA=%s\n\nMESSAGE\n%s%s\xff\n\n", s, s, binary.LittleEndian.AppendUint64(nil, uint64(len(s)+1)), s)
	}},
	{"/services/collector/raw?source=x", "", 2, 0, func(s string) []byte { return fmt.Appendf(nil, "%s\n%s\n", s, s) }},
	{"/api/7/store/", "", 1, 0, func(s string) []byte {
		return fmt.Appendf(nil, `{"exception":{"values":[{"type":"T\u0020","value":%q}]},"tags":{"\u0061":%q}}`, s, s)
	}},
	{"/api/7/envelope/", "", 2, 1, func(s string) []byte {
		return fmt.Appendf(nil, "{\"event_id\":\"0123456789abcdef0123456789abcdef\"}\n{\"type\":\"log\"}\n{\"items\":[{\"body\":%q},{\"body\":\"m\",\"attributes\":{\"\\u0061\":{\"value\":%q}}},%q]}\n{\"type\":\"session\"}\n{\"did\":%q}\n", s, s, s, s)
	}},
}

func otlpLogs(text string) plog.Logs {
	logs := plog.NewLogs()
	record := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.Body().SetStr(text)
	record.Attributes().PutStr("a", text)
	return logs
}

// Two tenants send over every receiver at once. What is stored of one, and what it
// is answered, holds words of its own only: with memory that is used again, which
// the build tag rollway_poison overwrites, and with none that is.
func TestTenantsNeverCross(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		t.Run(fmt.Sprintf("fresh memory %v", fresh), func(t *testing.T) {
			pool.KeepNothing(fresh)
			defer pool.KeepNothing(false)
			sendOfTenants(t)
		})
	}
}

const canaryRequests = 12 // of each tenant at each receiver

func sendOfTenants(t *testing.T) {
	tenants := []string{"alpha", "beta"}
	cfg := testConfig(t)
	cfg.ListenTCP, cfg.ListenForward = "127.0.0.1:0", "tcp://127.0.0.1:0"
	cfg.ListenSyslog = "tcp://127.0.0.1:0?tenant=alpha udp://127.0.0.1:0?tenant=alpha tcp://127.0.0.1:0?tenant=beta udp://127.0.0.1:0?tenant=beta"
	cfg.Access.Tokens = filepath.Join(t.TempDir(), "tokens.yaml")
	tokens := ""
	for _, tenant := range tenants {
		tokens += fmt.Sprintf("- {name: %s, secret: %s-0123456789abcdef, tenant: %s}\n", tenant, tenant, tenant)
	}
	writeFile(t, cfg.Access.Tokens, tokens)
	r := run(t, cfg)
	before := pool.Faults()
	var wantStored, wantRejected int
	var sending sync.WaitGroup
	for number, tenant := range tenants {
		for i := range canaryReceivers {
			d := &canaryReceivers[i]
			wantStored, wantRejected = wantStored+canaryRequests*d.stored, wantRejected+canaryRequests*d.rejected
			sending.Go(func() { r.sendCanaries(t, d, tenant) })
		}
		wantStored, wantRejected = wantStored+6*canaryRequests, wantRejected+canaryRequests
		sending.Go(func() { r.sendOverGRPC(t, tenant) })
		sending.Go(func() { r.sendLines(t, tenant) })
		sending.Go(func() { r.sendForward(t, tenant) })
		sending.Go(func() { r.sendSyslog(t, tenant, 2*number) })
		sending.Go(func() { r.sendDatagrams(t, tenant, 2*number+1) })
	}
	sending.Wait()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	s := r.Stats().Receive
	if s.Stored != uint64(wantStored) || s.RejectedTotal() != uint64(wantRejected) || s.Panics != 0 {
		t.Errorf("%d stored, %d rejected, %d panics, want %d and %d; %v", s.Stored, s.RejectedTotal(), s.Panics, wantStored, wantRejected, s.Rejected)
	}
	if n := pool.Faults() - before; n != 0 {
		t.Errorf("%d faults of pools; the log says\n%s", n, r.log)
	}
	checkStored(t, cfg, wantStored)
	checkDeadLetters(t, cfg)
}

// checkWords reports text that lacks its tenant's words, or holds others, or
// pieces of any.
func checkWords(t *testing.T, what, tenant, text string, needed bool) {
	t.Helper()
	rest := strings.ReplaceAll(text, canary+"-"+tenant, "")
	if needed && rest == text || strings.Contains(rest, canary) || strings.Contains(rest, "\xdb\xdb") {
		t.Errorf("%s of %s: %.600q", what, tenant, text)
	}
}

func (r *running) sendCanaries(t *testing.T, d *canaryReceiver, tenant string) {
	for i := range canaryRequests {
		body := d.body(words(tenant, i))
		req, err := http.NewRequest("POST", r.url+d.path, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		if packed := i%3 == 1 && !strings.Contains(d.contentType, "protobuf") && d.path != "/upload"; packed {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write(body)
			z.Close()
			req.Body, req.ContentLength = io.NopCloser(&b), int64(b.Len())
			req.Header.Set("Content-Encoding", "gzip")
		}
		req.Header.Set("Authorization", "Bearer "+tenant+"-0123456789abcdef")
		req.Header.Set("Content-Type", d.contentType)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode >= 500 {
			t.Errorf("%s: %d %s, %v", d.path, resp.StatusCode, answer, err)
		}
		checkWords(t, d.path+" answer", tenant, string(answer), false)
	}
}

func (r *running) sendOverGRPC(t *testing.T, tenant string) {
	conn, err := grpc.NewClient("passthrough:///"+r.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+tenant+"-0123456789abcdef"), time.Minute)
	defer cancel()
	for i := range canaryRequests {
		if _, err := plogotlp.NewGRPCClient(conn).Export(ctx, plogotlp.NewExportRequestFromLogs(otlpLogs(words(tenant, i)))); err != nil {
			t.Error(err)
		}
	}
}

// sendLines sends over TCP, which has no tokens: its lines are of no tenant.
func (r *running) sendLines(t *testing.T, tenant string) {
	conn, err := net.Dial("tcp", r.TCPAddr().String())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for i := range canaryRequests {
		if _, err := fmt.Fprintf(conn, "{\"msg\":%q}\n", words(tenant, i)); err != nil {
			t.Error(err)
		}
	}
	conn.(*net.TCPConn).CloseWrite()
	io.Copy(io.Discard, conn) // until the collector has read all
}

// sendForward sends packed entries and reads what acknowledges them.
func (r *running) sendForward(t *testing.T, tenant string) {
	conn, err := net.Dial("tcp", r.ForwardAddrs()[0].String())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	str := func(s string) string { return "\xda" + string([]byte{byte(len(s) >> 8), byte(len(s))}) + s }
	for i := range canaryRequests {
		text := words(tenant, i)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		io.WriteString(z, "\x92\x01\x81"+str("log")+str(text))
		z.Close()
		chunk := canary + "-" + tenant
		message := "\x93" + str(text) + "\xc5" + str(packed.String())[1:] + "\x82" + str("compressed") + str("gzip") + str("chunk") + str(chunk)
		want := "\x81\xa3ack" + str(chunk)
		answer := make([]byte, len(want))
		if _, err := io.WriteString(conn, message); err != nil {
			t.Error(err)
			return
		}
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != want {
			t.Errorf("%q is acknowledged by %q, %v", chunk, answer, err)
			return
		}
	}
}

// sendSyslog sends frames of both kinds to the address of the tenant; one
// in three is rejected.
func (r *running) sendSyslog(t *testing.T, tenant string, address int) {
	conn, err := net.Dial("tcp", r.SyslogAddrs()[address].String())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for i := range canaryRequests {
		text := words(tenant, i)
		octets := fmt.Sprintf("<14>1 2026-05-28T12:40:00Z host app 7 - [x a=\"\\\"%s\"] %s", text, text)
		binary := "<14>1 - - - - - " + text + "\x01\x02\xff"
		if _, err := fmt.Fprintf(conn, "%d %s<13>May 28 12:40:00 host tag: %s\n%d %s", len(octets), octets, text, len(binary), binary); err != nil {
			t.Error(err)
		}
	}
	conn.(*net.TCPConn).CloseWrite()
	io.Copy(io.Discard, conn) // until the collector has read all
}

// sendDatagrams sends so few messages that no system drops one.
func (r *running) sendDatagrams(t *testing.T, tenant string, address int) {
	conn, err := net.Dial("udp", r.SyslogAddrs()[address].String())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for i := range canaryRequests {
		if _, err := fmt.Fprintf(conn, "<14>@cee: {\"msg\":%q,\"\\u0061\":1}", words(tenant, i)); err != nil {
			t.Error(err)
		}
	}
}

// checkStored reads all lines of the journal.
func checkStored(t *testing.T, cfg config.Config, want int) {
	t.Helper()
	cfg.Access.Tokens, cfg.ListenTCP, cfg.ListenForward, cfg.ListenSyslog = "", "", "", ""
	r := run(t, cfg)
	_, _, lines := r.do(t, "GET", "/api/query?last=10000", "")
	if n := strings.Count(lines, "\n"); n != want {
		t.Errorf("%d lines are stored, want %d", n, want)
	}
	for line := range strings.Lines(lines) {
		var l struct{ Attrs struct{ Tenant string } }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("%v in %q", err, line)
		}
		tenant := l.Attrs.Tenant
		if tenant == "" { // over TCP
			tenant = "alpha"
			if strings.Contains(line, canary+"-beta") {
				tenant = "beta"
			}
		}
		checkWords(t, "a line", tenant, line, true)
	}
}

// checkDeadLetters reads what is kept of rejected events.
func checkDeadLetters(t *testing.T, cfg config.Config) {
	t.Helper()
	var text []byte
	files, err := deadletter.Files(disk.Real{}, RejectedFolder(cfg.Data))
	for _, name := range files {
		part, errPart := os.ReadFile(name)
		text, err = append(text, part...), errors.Join(err, errPart)
	}
	if err != nil || len(text) == 0 {
		t.Fatal(err, files)
	}
	for line := range bytes.Lines(text) {
		var l struct {
			Tenant, Event string
			Base64        []byte
		}
		if err := json.Unmarshal(line, &l); err != nil || l.Tenant == "" {
			t.Fatalf("%v in %q", err, line)
		}
		checkWords(t, "a dead letter", l.Tenant, string(line)+string(l.Base64), len(l.Event)+len(l.Base64) > 0)
	}
}
