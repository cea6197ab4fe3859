package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/ui/uitest"
	"github.com/rollway/rollway/internal/testkit"
)

// started runs a collector for the length of a test, and returns its URL.
func started(t testing.TB, change ...func(*config.Config)) string {
	t.Helper()
	at, _ := run(t, filepath.Join(t.TempDir(), "data"), change...)
	return at
}

// run runs a collector with a data folder until stop is called or the test ends.
func run(t testing.TB, data string, change ...func(*config.Config)) (at string, stop func()) {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.Data = "127.0.0.1:0", data
	cfg.Timeouts.Linger = 0
	for _, f := range change {
		f(&cfg)
	}
	c, err := collector.New(cfg, nil)
	testkit.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return "http://" + c.Addr().String(), stop
}

// open opens a page, whose scripts must not fail until the end of the test.
func open(t testing.TB, browser *uitest.Browser, url string) *uitest.Tab {
	t.Helper()
	tab := browser.Open(t, url)
	t.Cleanup(func() {
		if list := tab.Failures(); len(list) > 0 {
			t.Errorf("the page says %q", list)
		}
	})
	return tab
}

// send sends lines to a collector.
func send(t testing.TB, url string, lines ...string) {
	t.Helper()
	resp, err := http.Post(url+"/api/logs", "application/x-ndjson", strings.NewReader(strings.Join(lines, "\n")))
	testkit.OK(t, err)
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("the collector answers %s %s", resp.Status, body)
	}
}

const stack = `Traceback (most recent call last):
  File "/app/payment/charge.py", line 88, in charge
    answer = self.ledger.post(entry, timeout=2)
  File "/app/payment/ledger.py", line 41, in post
    return self.session.post(self.url, json=entry, timeout=timeout)
  File "/usr/lib/python3/site-packages/requests/sessions.py", line 635, in post
    return self.request("POST", url, data=data, json=json, **kwargs)
  File "/usr/lib/python3/site-packages/requests/adapters.py", line 532, in send
    raise ReadTimeout(e, request=request)
requests.exceptions.ReadTimeout: HTTPConnectionPool(host='ledger', port=80): Read timed out. (read timeout=2)`

// story is what three services logged in the last hour: twenty minutes ago a bad release
// of one of them went live.
func story(now time.Time) []string {
	random := rand.New(rand.NewPCG(1, 2))
	var lines []string
	add := func(at time.Time, level, service, msg string, more map[string]any) {
		line := map[string]any{"time": at.UTC().Format(time.RFC3339Nano), "level": level, "service": service, "msg": msg}
		for k, v := range more {
			line[k] = v
		}
		text, _ := json.Marshal(line) // maps of texts and numbers
		lines = append(lines, string(text))
	}
	paths := []string{"/v1/charge", "/v1/refund", "/v1/customers", "/healthz"}
	bad := now.Add(-20 * time.Minute)
	for at := now.Add(-59 * time.Minute); at.Before(now.Add(-2 * time.Second)); at = at.Add(time.Duration(random.IntN(9000)) * time.Millisecond) {
		release, trace := "2.4.0", fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64())
		if at.After(bad) {
			release = "2.4.1"
		}
		path, customer, took := paths[random.IntN(3)], fmt.Sprintf("cus_%04d", random.IntN(400)), 20+random.IntN(180)
		add(at, "DEBUG", "gateway", "request received", map[string]any{"trace_id": trace, "path": path, "client_ip": fmt.Sprintf("10.2.%d.%d", random.IntN(8), random.IntN(250))})
		failed := release == "2.4.1" && path == "/v1/charge" && random.IntN(3) == 0
		status := 200
		if failed {
			status, took = 503, 2000+random.IntN(40)
			add(at.Add(2*time.Second), "ERROR", "payment-api", "failed to charge customer "+customer, map[string]any{"trace_id": trace, "release": release, "customer_id": customer,
				"error": map[string]any{"type": "ReadTimeout", "message": "HTTPConnectionPool(host='ledger', port=80): Read timed out. (read timeout=2)", "stack": stack}})
		} else {
			add(at.Add(5*time.Millisecond), "INFO", "payment-api", "charged "+customer, map[string]any{"trace_id": trace, "release": release, "customer_id": customer, "amount": random.IntN(90000)})
			add(at.Add(8*time.Millisecond), "INFO", "ledger", fmt.Sprintf("entry %d written in %d ms", 7000000+len(lines), 1+random.IntN(9)), map[string]any{"trace_id": trace, "shard": random.IntN(4)})
		}
		if took > 180 {
			add(at.Add(time.Duration(took)*time.Millisecond), "WARN", "gateway", "slow answer", map[string]any{"trace_id": trace, "path": path, "took_ms": took})
		}
		add(at.Add(time.Duration(took)*time.Millisecond), "INFO", "gateway", fmt.Sprintf("POST %s %d", path, status), map[string]any{"trace_id": trace, "http": map[string]any{"status": status, "method": "POST"}, "path": path, "took_ms": took})
	}
	add(bad, "INFO", "payment-api", "release 2.4.1 starts", map[string]any{"release": "2.4.1", "pool": 2})
	add(bad.Add(time.Second), "WARN", "payment-api", "pool is smaller than its workers", map[string]any{"release": "2.4.1", "pool": 2, "workers": 16})
	return lines
}

// percentile is the duration below which p percent of list are.
func percentile(list []time.Duration, p int) time.Duration {
	slices.Sort(list)
	return list[(len(list)-1)*p/100]
}
