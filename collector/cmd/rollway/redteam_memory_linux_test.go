package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rollway/rollway/internal/testkit"
)

// memoryGroup makes a cgroup, of version 1 or 2, whose processes may have limit bytes, and
// returns its folder.
func memoryGroup(t *testing.T, limit int64) string {
	t.Helper()
	const none = "a cgroup with the memory controller that this user may make"
	for _, root := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		dir, err := os.MkdirTemp(root, "rollway-memory-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(dir) })
		for _, name := range []string{"memory.limit_in_bytes", "memory.max"} {
			if os.WriteFile(filepath.Join(dir, name), []byte(strconv.FormatInt(limit, 10)), 0) == nil {
				os.WriteFile(filepath.Join(dir, "memory.swap.max"), []byte("0"), 0)
				return dir
			}
		}
	}
	testkit.Missing(t, none)
	return ""
}

// targetIn is newTarget in a cgroup of the size that docs/INGEST.md documents, with queries
// that may hold as many bytes. Only the collector is in it.
func targetIn(t *testing.T, inFlight, queries int64, config string) *target {
	t.Helper()
	planned := plannedMemory(inFlight) + 2*queries
	limits := fmt.Sprintf("in_flight: %dMiB, max_unpacked: %dMiB", inFlight>>20, inFlight>>22)
	if queries > 0 {
		limits += fmt.Sprintf(", max_query: %dMiB, query_memory: %dMiB", queries>>21, queries>>20)
	}
	dir, path, bin := memoryGroup(t, planned), os.Getenv("PATH"), t.TempDir()
	rollway, err := exec.LookPath("rollway")
	testkit.OK(t, err)
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s/cgroup.procs && exec %s \"$@\"\n", dir, rollway)
	testkit.OK(t, os.WriteFile(filepath.Join(bin, "rollway"), []byte(script), 0o755))
	t.Setenv("PATH", bin+":"+path)
	a := newTarget(t, "limits: {"+limits+"}\n"+config)
	t.Setenv("PATH", path)
	a.bound = planned
	return a
}

// A worst is a request, or what a connection sends, that takes as much memory for its size
// as a receiver lets it.
type worst struct {
	path, kind string // of HTTP
	grpc       bool
	row        string // of the banner, for a stream
	body       string
}

func gzipOf(text string) string {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

// field is a field of protocol buffers with a length.
func field(num int, text string) string {
	return string(binary.AppendUvarint([]byte{byte(num<<3 | 2)}, uint64(len(text)))) + text
}

func pack32(kind byte, n int) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(n)))
}

// worsts returns the worst of each receiver, for a body of at most unpacked bytes. Names of
// HTTP are gzip, unless they say otherwise.
func worsts(unpacked int) map[string]worst {
	var labels, text, attributes, jsonAttributes strings.Builder
	for i := range 1000 {
		v := strings.Repeat(strconv.Itoa(i%10), 500)
		fmt.Fprintf(&labels, `"l%d":"%s",`, i, v)
		fmt.Fprintf(&text, `l%d="%s",`, i, v)
		attributes.WriteString(field(1, field(1, fmt.Sprint("a", i))+field(2, field(1, v))))
		fmt.Fprintf(&jsonAttributes, `{"key":"a%d","value":{"stringValue":"%s"}},`, i, v)
	}
	join := func(s string) string { return strings.TrimSuffix(s, ",") }
	otlp := field(1, field(1, attributes.String())+field(2, strings.Repeat(field(2, field(5, field(1, "x"))), 300)))
	random := make([]byte, 400_000) // what cannot be packed
	for i, x := 0, uint32(1); i < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = 'A' + byte(x>>24)%50
	}
	// A part of each text is random: what unpacks to 200 times its size is refused before.
	filler := func(size int) string {
		return string(random[:min(size/25, len(random))]) + strings.Repeat("x", size-size/25)
	}
	one := func(size int) string { return `{"msg":"` + filler(size) + `"}` }
	many := func(s string) string { return strings.Repeat(s, (unpacked-100)/len(s)) }
	short := func(format string) string { // which has room for five random letters
		var b strings.Builder
		for i := 0; b.Len() < unpacked-100; i = (i + 5) % (len(random) - 5) {
			fmt.Fprintf(&b, format, random[i:i+5])
		}
		return b.String()
	}
	entry := "\x92\xce\x65\x00\x00\x00\x80"
	return map[string]worst{
		"loki, 1,000 labels for 300 entries": {path: "/loki/api/v1/push", kind: "application/json",
			body: `{"streams":[{"stream":{` + join(labels.String()) + `},"values":[` + join(strings.Repeat(`["1779972000000000000","x"],`, 300)) + `]}]}`},
		"loki in protocol buffers": {path: "/loki/api/v1/push", kind: "application/x-protobuf",
			body: field(1, field(1, "{"+join(text.String())+"}")+strings.Repeat(field(2, field(2, "x")), 300))},
		"loki, random labels": {path: "/loki/api/v1/push", kind: "application/json",
			body: `{"streams":[{"stream":{"l":"` + string(random) + `"},"values":[` + join(strings.Repeat(`["1779972000000000000","x"],`, 300)) + `]}]}`},
		"loki, a million labels": {path: "/loki/api/v1/push", kind: "application/json",
			body: `{"streams":[{"stream":{` + join(short(`"%s":"",`)) + `}}]}`},
		"otlp in protocol buffers": {path: "/v1/logs", kind: "application/x-protobuf", body: otlp},
		"otlp over gRPC":           {path: "/opentelemetry.proto.collector.logs.v1.LogsService/Export", kind: "application/grpc", grpc: true, body: otlp},
		"otlp in JSON": {path: "/v1/logs", kind: "application/json",
			body: `{"resourceLogs":[{"resource":{"attributes":[` + join(jsonAttributes.String()) + `]},"scopeLogs":[{"logRecords":[` + join(strings.Repeat(`{"body":{"stringValue":"x"}},`, 300)) + `]}]}]}`},
		"otlp, control bytes": {path: "/v1/logs", kind: "application/x-protobuf",
			body: field(1, field(2, many(field(2, field(5, field(1, strings.Repeat("\x01", 160_000)+filler(80_000)))))))},
		"otlp, one value": {path: "/v1/logs", kind: "application/json",
			body: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"\n` + filler(unpacked-1000) + `"}}]}]}]}`},
		"events of 1 MiB":      {path: "/api/logs", body: many(one(1<<20-100) + "\n")},
		"attributes of 1 MiB":  {path: "/api/logs", body: many(`{"a":"` + filler(1<<20-100) + `"}` + "\n")},
		"an array":             {path: "/api/logs", body: "[" + many(one(60<<10)+",") + "{}]"},
		"small events":         {path: "/api/logs", body: strings.Repeat("{}\n", 99_000)},
		"junk":                 {path: "/api/logs", body: short("%s\n")},
		"elastic, an index":    {path: "/" + strings.Repeat("i", 200) + "/_bulk", kind: "application/x-ndjson", body: strings.Repeat("{\"index\":{}}\n{}\n", 99_000)},
		"elastic, documents":   {path: "/_bulk", kind: "application/x-ndjson", body: many("{\"index\":{}}\n" + one(1<<20-200) + "\n")},
		"splunk, a host":       {path: "/services/collector/raw?host=" + strings.Repeat("h", 8000), body: strings.Repeat("x\n", 99_000)},
		"splunk, events":       {path: "/services/collector/event", body: many(`{"event":` + one(1<<20-200) + `}`)},
		"sentry, logs":         {path: "/api/" + strings.Repeat("7", 64) + "/envelope/", body: "{}\n{\"type\":\"log\"}\n{\"items\":[" + strings.Repeat("{},", 99_000) + "{}]}"},
		"sentry, an exception": {path: "/api/7/store/", body: `{"exception":{"values":[{"type":"x","value":"\n` + filler(unpacked-1000) + `"}]}}`},
		"lines over TCP":       {row: "TCP", body: strings.Repeat(one(1<<20-100)+"\n", 4) + strings.Repeat("{}\n", 300_000)},
		"syslog":               {row: "syslog", body: strings.Repeat(fmt.Sprintf("%d <13>1 - h a - - - %s", 24+1<<19, one(1<<19-10)), 4) + strings.Repeat("7 <13>{}x", 100_000)},
		"forward, a tag":       {row: "forward", body: "\x92\xdb" + pack32(0, 100_000)[1:] + strings.Repeat("t", 100_000) + pack32(0xdd, 2000) + strings.Repeat(entry, 2000)},
		"forward, packed": {row: "forward", body: func() string {
			packed := gzipOf(strings.Repeat(entry, 90_000))
			return "\x93\xa1t" + pack32(0xc6, len(packed)) + packed + "\x81\xaacompressed\xa4gzip"
		}()},
	}
}

var dials atomic.Uint32

// dialFrom dials from one of eight addresses in turn, since each has a part of the memory.
func dialFrom(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2+byte(dials.Add(1)%8))}}
	return d.DialContext(ctx, network, addr)
}

// send sends w and returns the status, or 0 without one.
func (w *worst) send(a *target, client *http.Client) (int, error) {
	if w.row != "" {
		c, err := dialFrom(context.Background(), "tcp", a.listensAt(w.row, "tcp"))
		if err != nil {
			return 0, nil
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(15 * time.Second)) // a connection without memory is not read
		if _, err := io.WriteString(c, w.body); err == nil {
			c.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c)
		}
		return 0, nil
	}
	req, err := http.NewRequest("POST", a.addr+w.path, strings.NewReader(w.body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", w.kind)
	if w.grpc {
		req.Header.Set("Grpc-Encoding", "gzip")
		req.Header.Set("Te", "trailers")
	} else {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil // answered before all was sent
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, nil
}

// TestRedteamMemory sends each receiver the request that takes the most memory, 1, 16 and
// 256 at a time, to a collector in a cgroup of the size that docs/INGEST.md documents.
func TestRedteamMemory(t *testing.T) {
	testkit.NoRace(t, "it compares resident memory")
	times := [][]int{{4}, {1, 16, 256}}[testkit.Rounds(t, testkit.Redteam, 0, 1)]
	sizes := []int64{64 << 20, 256 << 20}[:testkit.Rounds(t, testkit.Redteam, 1, 2)]
	for i, inFlight := range sizes {
		if i > 0 {
			times = times[2:]
		}
		a := targetIn(t, inFlight, 0, "listen_tcp: \"127.0.0.1:0\"\nlisten_syslog: \"tcp://127.0.0.1:0\"\nlisten_forward: \"tcp://127.0.0.1:0\"\njournal: {retain_size: 64MiB}\n").ready()
		var answers [600]atomic.Int64
		sent := 0
		for name, w := range worsts(int(inFlight >> 2)) {
			if w.row == "" {
				w.body = gzipOf(w.body)
			}
			if w.grpc {
				w.body = pack32(1, len(w.body)) + w.body
			}
			for _, at := range times {
				transport := &http.Transport{MaxIdleConnsPerHost: at, Protocols: new(http.Protocols), DialContext: dialFrom}
				transport.Protocols.SetHTTP1(!w.grpc)
				transport.Protocols.SetUnencryptedHTTP2(w.grpc)
				client := &http.Client{Timeout: 20 * time.Second, Transport: transport}
				begin := time.Now()
				var sending sync.WaitGroup
				for range at {
					sending.Go(func() {
						code, err := w.send(a, client)
						if err != nil || code >= 500 && code != 503 {
							t.Errorf("%s, %d at a time: %d, %v", name, at, code, err)
						}
						answers[code].Add(1)
					})
				}
				sending.Wait()
				client.CloseIdleConnections()
				sent += at
				peak := residentPeak(t, a.cmd.Process.Pid)
				t.Logf("%-36s %3d at a time: %5.1f s, resident %d MiB at most", name, at, time.Since(begin).Seconds(), peak>>20)
			}
		}
		left := a.unharmed()
		counts := map[int]int64{}
		for code := range answers {
			if n := answers[code].Load(); n > 0 {
				counts[code] = n
			}
		}
		testkit.Attack{
			Attack: fmt.Sprintf("the request of each receiver that takes most memory, up to %d at a time, in a cgroup of %d MiB", times[len(times)-1], plannedMemory(inFlight)>>20), Times: sent,
			Promised: fmt.Sprintf("not killed; at most %d MiB resident", a.bound>>20),
			Measured: fmt.Sprintf("answers %v (0: a stream, or closed early); %s", counts, left),
		}.Report(t)
	}
}
