package receivertest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdk "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/remote"
)

// sendOTLP emits records by OpenTelemetry's SDK for Go.
func sendOTLP(t *testing.T, exporter sdk.Exporter, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := sdk.NewLoggerProvider(sdk.WithProcessor(sdk.NewBatchProcessor(exporter)),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"), attribute.String("host.name", "web-1"))))
	l := p.Logger("checkout", log.WithInstrumentationVersion("1.2.3"), log.WithSchemaURL("https://example.com/1"))
	var r log.Record
	r.SetTimestamp(time.Unix(1779972000, 123456789))
	r.SetSeverity(log.SeverityWarn2)
	r.SetSeverityText("slow")
	r.SetBody(attribute.StringValue("slow"))
	r.AddAttributes(attribute.Int("ms", 812), attribute.Float64("ratio", 0.5), attribute.Bool("ok", true), attribute.ByteSlice("raw", []byte{1, 2}),
		attribute.Slice("list", attribute.StringValue("a"), attribute.IntValue(2)), attribute.Map("map", attribute.String("k", "v")))
	l.Emit(ctx, r)
	r.SetEventName("declined")
	r.SetBody(attribute.MapValue(attribute.Int("code", 7)))
	l.Emit(ctx, r)
	if err := p.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

const (
	attrs    = `"ms":812,"ratio":0.5,"ok":true,"raw":"AQI=","list":["a",2],"map":{"k":"v"}`
	observed = `"observed_time":"TIME","severity_text":"slow"`
	shared   = `"scope.version":"1.2.3","scope.schema_url":"https://example.com/1"`
	head     = `{"time":"2026-05-28T12:40:00.123456789Z","level":"WARN+1",`
	wantGo   = head + `"msg":"slow","service":"shop","logger":"checkout","attrs":{` + attrs + `,` + observed + `,` + shared + `,"host":"web-1"}}` + "\n" +
		head + `"service":"shop","logger":"checkout","attrs":{` + attrs + `,` + observed + `,"event_name":"declined",` + shared + `,"code":7,"host":"web-1"}}` + "\n"
)

func TestSDKForGo(t *testing.T) {
	for _, compression := range []otlploghttp.Compression{otlploghttp.NoCompression, otlploghttp.GzipCompression} {
		s := Run(t, nil)
		e, err := otlploghttp.New(t.Context(), otlploghttp.WithEndpointURL(s.URL+"/v1/logs"), otlploghttp.WithCompression(compression))
		sendOTLP(t, e, err)
		if got := string(Mask{}.Lines(t, s.Lines(t))); got != wantGo {
			t.Errorf("over HTTP:\ngot  %s\nwant %s", got, wantGo)
		}
	}
	for _, compression := range []string{"none", "gzip"} {
		s := Run(t, func(c *config.Config) { c.ListenGRPC = "127.0.0.1:0" })
		for _, addr := range []string{s.GRPCAddr().String(), s.Addr().String()} {
			e, err := otlploggrpc.New(t.Context(), otlploggrpc.WithInsecure(), otlploggrpc.WithEndpoint(addr), otlploggrpc.WithCompressor(strings.TrimPrefix(compression, "none")))
			sendOTLP(t, e, err)
		}
		if got := string(Mask{}.Lines(t, s.Lines(t))); got != wantGo+wantGo {
			t.Errorf("over gRPC:\ngot  %s\nwant %s", got, wantGo+wantGo)
		}
	}
}

// TestSDKForGoGolden records what it sends in each way, and compares the lines.
func TestSDKForGoGolden(t *testing.T) {
	for name, compression := range map[string]otlploghttp.Compression{"otlp/opentelemetry-go": otlploghttp.NoCompression, "otlp/opentelemetry-go-gzip": otlploghttp.GzipCompression} {
		Client(t, name, func(url string) {
			e, err := otlploghttp.New(t.Context(), otlploghttp.WithEndpointURL(url+"/v1/logs"), otlploghttp.WithCompression(compression))
			sendOTLP(t, e, err)
		})
	}
	for name, compression := range map[string]string{"otlp/opentelemetry-go-grpc": "", "otlp/opentelemetry-go-grpc-gzip": "gzip"} {
		Client(t, name, func(url string) {
			e, err := otlploggrpc.New(t.Context(), otlploggrpc.WithInsecure(), otlploggrpc.WithEndpoint(strings.TrimPrefix(url, "http://")), otlploggrpc.WithCompressor(compression))
			sendOTLP(t, e, err)
		})
	}
}

// TestOtlpFluentBit has Fluent Bit send, or where it is not, what it once sent.
func TestOtlpFluentBit(t *testing.T) {
	const (
		head = "    name opentelemetry\n    host HOST\n    port PORT\n"
		ids  = "[FILTER]\n    name record_modifier\n    match *\n    record trace_id 4bf92f3577b34da6a3ce929d0e0e4736\n    record span_id 00f067aa0ba902b7\n"
	)
	Agents(t, FluentBit, map[string]string{
		"otlp/fluent-bit": head,
		"otlp/fluent-bit-keys": head + "    logs_body_key $message\n    logs_body_key_attributes on\n    logs_severity_text_message_key level\n" +
			"    logs_trace_id_message_key trace_id\n    logs_span_id_message_key span_id\n    add_label env prod\n    compress gzip\n" + ids,
		"otlp/fluent-bit-whole": head + "    logs_body_key $none\n    http2 force\n    compress zstd\n",
		"otlp/fluent-bit-grpc":  head + "    logs_body_key $none\n    grpc on\n    compress gzip\n",
	})
}

// No registry that CI reaches has it whole.
var otelcol = flag.String("otelcol", "", "the program of an OpenTelemetry Collector with the otlp receiver and the exporters otlp and otlphttp, to send logs and with -update record what it sends")

// What the OpenTelemetry Collector is given to pass on.
const forOtelcol = `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},{"key":"host.name","value":{"stringValue":"web-1"}}]},` +
	`"schemaUrl":"https://example.com/1","scopeLogs":[{"scope":{"name":"cart","version":"1.2","attributes":[{"key":"a","value":{"intValue":"1"}}]},"logRecords":[` +
	`{"timeUnixNano":"1779972000123456789","observedTimeUnixNano":"1779972000200000000","severityNumber":13,"severityText":"warn","body":{"stringValue":"one"},` +
	`"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","flags":1,"attributes":[{"key":"n","value":{"intValue":"9007199254740993"}},{"key":"raw","value":{"bytesValue":"AP8="}},` +
	`{"key":"list","value":{"arrayValue":{"values":[{"stringValue":"a"},{"doubleValue":0.5},{}]}}},{"key":"map","value":{"kvlistValue":{"values":[{"key":"k","value":{"boolValue":true}}]}}}]},` +
	`{"timeUnixNano":"1779972001000000005","body":{"kvlistValue":{"values":[{"key":"msg","value":{"stringValue":"two"}},{"key":"level","value":{"stringValue":"error"}}]}},"eventName":"e"},` +
	`{"observedTimeUnixNano":"1779972002500000000","severityNumber":17,"body":{"stringValue":"{\"level\":\"info\"}"}}]}]}]}`

// TestCollector has the OpenTelemetry Collector pass logs on, or where it is not,
// what it once sent.
func TestCollector(t *testing.T) {
	Agents(t, passOn, map[string]string{
		"otlp/otelcol-grpc":      "otlp_grpc: {endpoint: HOST:PORT, tls: {insecure: true}}",
		"otlp/otelcol-grpc-zstd": "otlp_grpc: {endpoint: HOST:PORT, compression: zstd, tls: {insecure: true}}",
		"otlp/otelcol-http":      "otlp_http: {endpoint: http://HOST:PORT}",
		"otlp/otelcol-http-json": "otlp_http: {endpoint: http://HOST:PORT, encoding: json, compression: snappy}",
	})
}

// TestRemoteOTLP has this project's own writer send canonical lines, which come out as
// they went in, and through the Collector, if it is there, with what that adds.
func TestRemoteOTLP(t *testing.T) {
	s := Run(t, nil)
	var lines []string
	for i, level := range strings.Fields("TRACE DEBUG DEBUG+2 INFO INFO+2 WARN ERROR ERROR+1 PANIC FATAL FATAL+2") {
		lines = append(lines, fmt.Sprintf(`{"time":"2026-05-28T12:40:00.12345678%dZ","level":%q,"msg":"quoted \"and\"\nmore","service":"shop","logger":"db","trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7ec3c1b174","attrs":{"n":%d,"ratio":0.5,"ok":true,"list":["a",2,[]],"map":{"k":{"v":null}}}}`, i%10, level, i))
	}
	send := func(url string) {
		w, err := remote.Open("otlp+"+url, remote.Options{Timeout: time.Minute, Compress: remote.Gzip{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	send(s.URL)
	if got := s.Lines(t); !slices.Equal(got, lines) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
	s = Run(t, nil)
	if !passOnFrom(t, "otlp_http: {endpoint: "+s.URL+", encoding: json}", send) {
		return
	}
	for _, line := range lines {
		if got := s.Lines(t); !slices.Contains(got, line) {
			t.Errorf("through the Collector came\n%s\nwhich lacks\n%s", strings.Join(got, "\n"), line)
		}
	}
}

// passOn runs the Collector with an exporter until sent returns.
func passOn(t testing.TB, exporter string, sent func()) bool {
	return passOnFrom(t, exporter, func(string) { sent() })
}

// passOnFrom tells sent the Collector's URL.
func passOnFrom(t testing.TB, exporter string, sent func(url string)) bool {
	if *otelcol == "" {
		return false
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close() // for the Collector
	path := filepath.Join(t.TempDir(), "otelcol.yaml")
	name, _, _ := strings.Cut(exporter, ":")
	config := "receivers: {otlp: {protocols: {http: {endpoint: " + ln.Addr().String() + "}}}}\nexporters: \n  " + exporter +
		"\nservice: {telemetry: {metrics: {level: none}}, pipelines: {logs: {receivers: [otlp], exporters: [" + name + "]}}}\n"
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), *otelcol, "--config", path)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(os.Interrupt)
		t.Logf("%v\n%s", cmd.Wait(), out.String())
	}()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Post("http://"+ln.Addr().String()+"/v1/logs", "application/json", strings.NewReader(forOtelcol))
		if err == nil {
			if resp.Body.Close(); resp.StatusCode != http.StatusOK {
				t.Fatal(resp.Status)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	sent("http://" + ln.Addr().String())
	return true
}
