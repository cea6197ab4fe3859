package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// Beside four scans of all lines, which take all processors, 99 of 100 requests of 100 lines are
// answered within 10 ms, at 100 requests a second.
func TestIngestBesideScans(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it is about time, which a busy machine does not have")
	dir := t.TempDir()
	config := filepath.Join(dir, "rollway.yaml")
	writeFile(t, config, "journal:\n  segment_size: 16MiB\n")
	d := serveDaemon(t, "-config", config, "-data", filepath.Join(dir, "data"))
	r := rand.New(rand.NewPCG(1, 2))
	lines := func(n int) []byte {
		var b bytes.Buffer
		for range n {
			fmt.Fprintf(&b, `{"level":"info","msg":"request %x served","service":"payment-api","trace_id":"%016x","attrs":{"customer_id":"cus_%d","region":"eu-west","status":%d,"path":"/v1/charge","ms":%d}}`+"\n", r.Uint32(), r.Uint64(), r.IntN(1e6), 200+r.IntN(300), r.IntN(5000))
		}
		return b.Bytes()
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	post := func(body []byte) {
		resp, err := client.Post(d.addr+"/api/logs", "", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Errorf("%s, %v", resp.Status, err)
		}
	}
	const stored = 200
	for range stored {
		post(lines(5000))
	}
	waitFor(t, "packing of 200 MB", func() bool {
		_, text := d.get(t, "/metrics")
		return metric(t, text, "rollway_journal_packed_segments_total") >= 10
	})
	batch := lines(100)
	measure := func(requests int) (p50, p99 time.Duration) {
		took := make([]time.Duration, requests)
		var sending sync.WaitGroup
		every := time.NewTicker(10 * time.Millisecond)
		defer every.Stop()
		for i := range took {
			due := <-every.C
			sending.Go(func() {
				post(batch)
				took[i] = time.Since(due)
			})
		}
		sending.Wait()
		slices.Sort(took)
		return took[requests/2], took[requests*99/100]
	}
	alone50, alone99 := measure(500)
	done, scans := make(chan struct{}), 0
	var scanning sync.WaitGroup
	var mu sync.Mutex
	for range 4 {
		scanning.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				resp, err := client.Get(d.addr + "/api/query?q=" + url.QueryEscape(`re"served [a-z]+$" | stats count()`))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
					t.Errorf("%s, %v", resp.Status, err)
				}
				resp.Body.Close()
				mu.Lock()
				scans++
				mu.Unlock()
			}
		})
	}
	p50, p99 := measure(2000)
	close(done)
	scanning.Wait()
	t.Logf("requests of 100 lines took %v, 99 %% %v; beside scans %v, 99 %% %v, %d scans of %d lines", alone50, alone99, p50, p99, scans, stored*5000)
	if p99 > 10*time.Millisecond {
		t.Errorf("99 %% of requests took %v beside four scans", p99)
	}
	if scans < 4 {
		t.Errorf("%d scans ended", scans)
	}
}
