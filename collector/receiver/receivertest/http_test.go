package receivertest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"

	"github.com/rollway/rollway/internal/testkit"
)

const (
	events = `{"time":"2026-05-28T12:40:00.5Z","level":"warn","msg":"slow","customer":"cus_123","ms":812}
{"timestamp":1779972000,"severity":"INFO","message":"café","metadata":{"retry":[1, 2]}}
`
	object = `{"time":"2026-05-28T12:40:00Z","level":"error","msg":"it failed","error":{"code":7}}`
	array  = `[ {"ts":1779972000250,"msg":"one"},
  {"ts":"1779972000000000005","msg":"two","level":40} ]`
)

// TestCurl has curl send to /api/logs, as a form, which is what it says unless it
// is told otherwise, and in other ways; and what programs have packed.
func TestCurl(t *testing.T) {
	curl := testkit.Program(t, "curl")
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return "@" + path
	}
	plain := file("plain", []byte(events))
	packed := func(name string, program string, args ...string) string {
		out, err := exec.Command(testkit.Program(t, program), args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return file(name, out)
	}
	const toDeflate = "import sys,zlib; sys.stdout.buffer.write(zlib.compress(open(sys.argv[1],'rb').read()))"
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"curl-form", []string{"-d", object}},
		{"curl-json", []string{"--json", array}},
		{"curl-lines", []string{"--data-binary", plain}},
		{"curl-chunked", []string{"-H", "Transfer-Encoding: chunked", "-H", "Content-Type: application/x-ndjson", "--data-binary", plain}},
		{"curl-gzip", []string{"-H", "Content-Encoding: gzip", "--data-binary", packed("gz", "gzip", "-nc", plain[1:])}},
		{"curl-zstd", []string{"-H", "Content-Encoding: zstd", "--data-binary", packed("zst", "zstd", "-qc", plain[1:])}},
		{"curl-deflate", []string{"-H", "Content-Encoding: deflate", "--data-binary", packed("zz", "python3", "-c", toDeflate, plain[1:])}},
		{"curl-snappy", []string{"-H", "Content-Encoding: snappy", "--data-binary", file("sz", snappy.Encode(nil, []byte(events)))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			Client(t, "receivertest/"+tt.name, func(url string) {
				out, err := exec.Command(curl, append([]string{"-sS", "--fail-with-body", "--max-time", "60", url + "/api/logs"}, tt.args...)...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			})
		})
	}
}

// TestHTTPFluentBit has Fluent Bit send, or where it is not, what it once sent.
func TestHTTPFluentBit(t *testing.T) {
	const head = "    name http\n    host HOST\n    port PORT\n    uri /api/logs\n"
	Agents(t, FluentBit, map[string]string{
		"receivertest/fluent-bit-http":        head,
		"receivertest/fluent-bit-http-lines":  head + "    format json_lines\n    json_date_format iso8601\n    compress gzip\n",
		"receivertest/fluent-bit-http-stream": head + "    format json_stream\n    json_date_format epoch_ms\n    compress zstd\n",
	})
}

// TestHTTPFluentd is TestHTTPFluentBit for Fluentd, which sends no time over HTTP.
func TestHTTPFluentd(t *testing.T) {
	const head = "  @type http\n  endpoint http://HOST:PORT/api/logs\n"
	Agents(t, Fluentd, map[string]string{
		"receivertest/fluentd-http":       head,
		"receivertest/fluentd-http-array": head + "  json_array true\n  compress gzip\n",
	})
}

// A body whose declared length is over the limit is refused before any of it has come.
func TestDeclaredTooLarge(t *testing.T) {
	s := Run(t, nil)
	for _, head := range []string{
		"/api/logs HTTP/1.1",
		"/loki/api/v1/push HTTP/1.1\r\nContent-Type: application/json",
		"/loki/api/v1/push HTTP/1.1\r\nContent-Type: application/x-protobuf",
		"/v1/logs HTTP/1.1\r\nContent-Type: application/json",
		"/v1/logs HTTP/1.1\r\nContent-Type: application/x-protobuf\r\nContent-Encoding: gzip",
	} {
		c, err := net.Dial("tcp", s.Addr().String())
		testkit.OK(t, err)
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second)) // sooner than the body is waited for
		fmt.Fprintf(c, "POST %s\r\nHost: collector\r\nContent-Length: %d\r\n\r\n", head, 1<<30)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
			t.Errorf("%s: %v, %v", head, resp, err)
		}
	}
}
