package collector

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rollway/rollway/collector/config"
)

// series sums up the series of one metric in a page of /metrics.
func series(t *testing.T, page, name string) (sum float64) {
	t.Helper()
	found := regexp.MustCompile(`(?m)^rollway_`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(page, -1)
	for _, m := range found {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// What /metrics says adds up after traffic by all receivers, with events that are
// rejected, dropped by a rule and sent again, whatever the sink does.
func TestEquationsInMetrics(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "logs"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	for name, brokers := range map[string]string{"dead sink": "127.0.0.1:1", "sink that drops": strings.Join(cluster.ListenAddrs(), " ")} {
		t.Run(name, func(t *testing.T) {
			cfg := withEnrichment(t, "rules: [{name: health, drop: {where: 'path=/healthz'}}]")
			cfg.ListenTCP, cfg.ListenSyslog, cfg.ListenForward = "127.0.0.1:0", "udp://127.0.0.1:0 tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
			cfg.ListenGELF, cfg.ListenLumberjack = cfg.ListenSyslog, "tcp://127.0.0.1:0"
			cfg.Kafka.Brokers, cfg.Kafka.MaxRecord = brokers, 1000
			r := run(t, cfg)
			events := mixedTraffic(t, r)
			dead := name == "dead sink"
			var page string
			for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				_, _, page = r.do(t, "GET", "/metrics", "")
				if series(t, page, "events_received_total") == events && (dead || series(t, page, "sink_pending") == 0) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%v of %v events are received, or the sink does not deliver: %+v", series(t, page, "events_received_total"), events, r.Stats())
				}
			}
			received, stored, rejected := series(t, page, "events_received_total"), series(t, page, "events_stored_total"), series(t, page, "events_rejected_total")
			duplicate, dropped, failed := series(t, page, "events_duplicate_total"), series(t, page, "events_dropped_total"), series(t, page, "events_failed_total")
			ignored := series(t, page, "events_ignored_total")
			if received != stored+rejected+duplicate+dropped+failed+ignored || ignored != 1 || rejected < 5 || duplicate != 4 || dropped != 2 || failed != 0 {
				t.Errorf("received %v, stored %v, rejected %v, duplicate %v, dropped %v, failed %v, ignored %v", received, stored, rejected, duplicate, dropped, failed, ignored)
			}
			delivered, pending, lost := series(t, page, "sink_delivered_total"), series(t, page, "sink_pending"), series(t, page, "sink_dropped_total")
			if stored != delivered+pending+lost || stored != series(t, page, "journal_next_offset") {
				t.Errorf("stored %v, delivered %v, pending %v, dropped by the sink %v, the journal ends at %v", stored, delivered, pending, lost, series(t, page, "journal_next_offset"))
			}
			if dead && pending != stored || !dead && (lost != 1 || delivered == 0) {
				t.Errorf("delivered %v, pending %v, dropped %v of %v", delivered, pending, lost, stored)
			}
		})
	}
}

// mixedTraffic sends events by each receiver, and returns how many.
func mixedTraffic(t *testing.T, r *running) (events float64) {
	t.Helper()
	for _, tc := range []struct {
		path, kind, body string
		events           float64
	}{
		{"/api/logs", "", "{\"msg\":\"a\"}\nnot JSON\n7\n{\"path\":\"/healthz\"}\n", 4},
		{"/api/logs", "", `{"msg":"` + strings.Repeat("more than the topic takes ", 100) + `"}`, 1},
		{"/api/logs", "", "[{]", 1},
		{"/v1/logs", "application/json", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"otlp"}},{}]}]}]}`, 2},
		{"/v1/logs", "application/json", "{", 1},
		{"/loki/api/v1/push", "application/json", `{"streams":[{"stream":{"app":"x"},"values":[["1779972000000000001","loki"],["1779972000000000002","two"]]}]}`, 2},
		{"/_bulk", "application/x-ndjson", "{\"create\":{}}\n{\"message\":\"es\"}\n{\"delete\":{\"_id\":\"1\"}}\n{\"index\":{}}\n{\"path\":\"/healthz\"}\n", 3},
		{"/services/collector/event", "application/json", `{"event":"splunk"}{"event":""}`, 2},
		{"/services/collector/raw", "", "one\ntwo\n", 2},
		{"/api/v2/logs?service=x", "application/json", `[{"message":"datadog"},7,{}]`, 2},
		{"/shop/_doc/7", "application/json", `{"message":"one"}`, 1},
		{"/gelf", "", `{"short_message":"gelf"}7{"short_message":"two"}`, 3},
		{"/upload", "application/vnd.fdo.journal", "MESSAGE=one\n\nMESSAGE=two\nA=1\n\n=3\n", 3},
		{"/services/collector/raw", "", "one\n\x1f\x8b\x08\x00binary\n", 2},
		{"/api/7/envelope/", "", "{}\n{\"type\":\"event\"}\n{\"message\":\"sentry\"}\n{\"type\":\"session\"}\n{}\n", 2},
	} {
		before := r.Stats().Receive
		resp, err := http.Post(r.url+tc.path, tc.kind, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if got := float64(r.Stats().Receive.Received - before.Received); got != tc.events {
			t.Errorf("%s %q: %v events, want %v", tc.path, tc.body, got, tc.events)
		}
		events += tc.events
	}
	for range 3 { // once stored, twice a duplicate of two
		if a, err := r.postKeyed("key", `[{"msg":"k1"},{"msg":"k2"}]`); err != nil || a.code != 200 {
			t.Fatal(a, err)
		}
		events += 2
	}
	send := func(addr net.Addr, text string, n float64) {
		t.Helper()
		conn, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		events += n
	}
	send(r.TCPAddr(), "{\"msg\":\"tcp\"}\nbroken\n", 2)
	send(r.SyslogAddrs()[0], "<14>1 2026-05-28T12:40:00Z h app - - - udp", 1)
	send(r.SyslogAddrs()[1], "<14>1 2026-05-28T12:40:00Z h app - - - one\n<14>1 2026-05-28T12:40:00Z h app - - - two\n", 2)
	send(r.GELFAddrs()[0], "\x1e\x0f12345678\x00\x01{\"short_message\":\"one chunk\"}", 1)
	send(r.GELFAddrs()[0], "\x1e\x0f12345678\x02\x02{", 1)
	send(r.GELFAddrs()[1], "{\"short_message\":\"one\"}\x00{\"short_message\":\"two\"}\x00{\"torn", 3)
	send(r.LumberjackAddrs()[0], "2W\x00\x00\x00\x032J\x00\x00\x00\x01\x00\x00\x00\x02{}2J\x00\x00\x00\x02\x00\x00\x00\x01{2J\x00", 3)
	send(r.ForwardAddrs()[0], `["tag",1779972000,{"msg":"JSON"}]["tag",1,"text"]["tag",1`, 3)
	send(r.ForwardAddrs()[0], "\x93\xa3tag\xce\x6a\x18\x39\xa0\x81\xa3msg\xa7forward", 1)
	return events
}

// Small requests that find the budget spent are answered 503 with Retry-After, in
// front of net/http or in it, and stored when they come again; all
// that was acknowledged is there, once.
func TestBudgetSpentBySlowBodies(t *testing.T) {
	cfg := testConfig(t)
	cfg.Journal.Durability = config.Synced
	cfg.Limits.MaxEvent, cfg.Limits.MaxBody, cfg.Limits.MaxUnpacked, cfg.Limits.InFlight = 64*config.KiB, config.MiB, config.MiB, 3*config.MiB
	r := run(t, cfg)
	text := strings.Repeat("x", 45_000)
	post := func(n int) (int, http.Header, error) {
		req, err := http.NewRequest("POST", r.url+"/api/logs", strings.NewReader(fmt.Sprintf(`{"msg":%q,"n":%d}`, text, n)))
		if err != nil {
			return 0, nil, err
		}
		req.Header.Set("Idempotency-Key", strconv.Itoa(n))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, nil, err
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode, resp.Header, nil
	}
	// Bodies that stop before their end hold what they have taken: five of them, of
	// 205,000 bytes that count twice, leave less than a small request needs.
	var slow []net.Conn
	probes := 0
	for {
		code, header, err := post(-1 - probes)
		if err != nil {
			t.Fatal(err)
		}
		if probes++; code == 503 {
			if header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			break
		}
		if code != 200 || len(slow) > 50 {
			t.Fatalf("%d with %d slow requests", code, len(slow))
		}
		held := r.Stats().Receive.InFlight
		conn := dialListener(t, r.Addr())
		fmt.Fprintf(conn, "POST /api/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 205000\r\n\r\n%s", strings.Repeat(" ", 204_000))
		slow = append(slow, conn)
		for end := time.Now().Add(5 * time.Second); r.Stats().Receive.InFlight <= held; time.Sleep(time.Millisecond) {
			if time.Now().After(end) { // the small request still had its memory, so this one found none
				break
			}
		}
	}
	const senders, each = 4, 20
	var refused atomic.Int64
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for n := s * each; n < (s+1)*each; n++ {
				for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
					code, header, err := post(n)
					if err != nil || code != 200 && (code != 503 || header.Get("Retry-After") == "") || time.Since(begin) > time.Minute {
						t.Errorf("event %d: %d, %v", n, code, err)
						return
					}
					if code == 200 {
						break
					}
					refused.Add(1)
				}
			}
		})
	}
	for end := time.Now().Add(time.Minute); refused.Load() < senders && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	for _, conn := range slow { // the memory comes back
		conn.Close()
	}
	sending.Wait()
	if refused.Load() < senders {
		t.Errorf("%d requests were refused: this is no overload", refused.Load())
	}
	_, _, lines := r.do(t, "GET", "/api/query?limit=100000", "")
	for n := range senders * each {
		if times := bytes.Count([]byte(lines), []byte(fmt.Sprintf(`"n":%d}`, n))); times != 1 {
			t.Errorf("event %d is stored %d times", n, times)
		}
	}
	if s := r.Stats(); s.Journal.Synced != s.Journal.Next || s.Receive.Stored != uint64(strings.Count(lines, "\n")) {
		t.Errorf("stored %d, %d lines found, synced to %d of %d", s.Receive.Stored, strings.Count(lines, "\n"), s.Journal.Synced, s.Journal.Next)
	}
}
