package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Killed under load and started again, the collector has every line that it
// answered 2xx for, once, whole, and in the order of its client; what it did not
// answer for is there whole or not at all. No client sends anything twice.
func TestKilledUnderLoad(t *testing.T) {
	const rounds, clients = 6, 4
	data := filepath.Join(t.TempDir(), "data")
	acked := make(map[string]bool) // by id; false: sent, not answered
	var mu sync.Mutex
	for round := range rounds {
		d := serveDaemon(t, "-data", data)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for id := range clients {
			wg.Go(func() { postUntil(stop, d, fmt.Sprintf("r%d-c%d", round, id), &mu, acked) })
		}
		waitFor(t, "load", func() bool { mu.Lock(); defer mu.Unlock(); return len(acked) > 2000*(round+1) })
		time.Sleep(time.Duration(round) * 7 * time.Millisecond)
		d.kill()
		close(stop)
		wg.Wait()
	}
	d := serveDaemon(t, "-data", data)
	found := make(map[string]int)
	lastSeq := make(map[string]int)
	for _, line := range d.query(t) {
		var e struct {
			Msg   string `json:"msg"`
			Attrs struct {
				Client string `json:"client"`
				Seq    int    `json:"seq"`
			} `json:"attrs"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("a torn line: %q: %v", line, err)
		}
		id := fmt.Sprintf("%s-%d", e.Attrs.Client, e.Attrs.Seq)
		if _, sent := acked[id]; !sent || e.Msg != message(id) {
			t.Fatalf("a line that nobody sent: %q", line)
		}
		if found[id]++; found[id] > 1 {
			t.Errorf("%s is there %d times", id, found[id])
		}
		if last, ok := lastSeq[e.Attrs.Client]; ok && e.Attrs.Seq <= last {
			t.Errorf("%s comes after %d", id, last)
		}
		lastSeq[e.Attrs.Client] = e.Attrs.Seq
	}
	answered, lost := 0, 0
	for id, ok := range acked {
		if !ok {
			continue
		}
		answered++
		if found[id] == 0 {
			lost++
		}
	}
	t.Logf("%d lines sent, %d answered, %d found", len(acked), answered, len(found))
	if lost > 0 || answered == 0 {
		t.Errorf("%d of %d lines that were answered are gone", lost, answered)
	}
	d.end(t)
}

// message is the text of a line, long enough to cross pages and sectors.
func message(id string) string { return id + string(bytes.Repeat([]byte(" "+id), 20)) }

// postUntil posts batches of ten lines until the collector is gone or stop is
// closed, and notes each line as sent and, once answered, as acked.
func postUntil(stop <-chan struct{}, d *daemon, client string, mu *sync.Mutex, acked map[string]bool) {
	httpClient := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer httpClient.CloseIdleConnections()
	for seq := 0; ; seq += 10 {
		select {
		case <-stop:
			return
		default:
		}
		var body []byte
		var ids []string
		for n := seq; n < seq+10; n++ {
			id := fmt.Sprintf("%s-%d", client, n)
			ids = append(ids, id)
			body = fmt.Appendf(body, "{\"msg\":%q,\"client\":%q,\"seq\":%d}\n", message(id), client, n)
		}
		mu.Lock()
		for _, id := range ids {
			acked[id] = false
		}
		mu.Unlock()
		// A request with a body that may have arrived is not sent again by
		// net/http, as POST is not idempotent.
		resp, err := httpClient.Post(d.addr+"/api/logs", "application/x-ndjson", bytes.NewReader(body))
		if err != nil {
			return
		}
		resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			return
		}
		mu.Lock()
		for _, id := range ids {
			acked[id] = true
		}
		mu.Unlock()
	}
}
