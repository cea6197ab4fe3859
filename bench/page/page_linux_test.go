// Package page measures the collector's page in Chromium, over as many lines as a collector has after
// a while: how soon there are results, whether ten million hits can be handled, and what ten pages do
// to those who send.
package page

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/query"
	"github.com/rollway/rollway/collector/ui/uitest"
	"github.com/rollway/rollway/internal/testkit"
)

var (
	folder = flag.String("lines", "", "keep the collector's data in `DIR`, and use what is there")
	size   = flag.Int64("size", 3<<30, "bytes of lines")
	rounds = flag.Int("rounds", 6, "how often each query is asked")
)

func TestMain(m *testing.M) {
	child.Main()
	os.Exit(m.Run())
}

// TestManyLines measures the page over 10 million lines.
func TestManyLines(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it stores 3 GB of lines and measures times")
	if child.Missing != "" {
		testkit.Missing(t, child.Missing)
	}
	dir := *folder
	if dir == "" {
		dir = t.TempDir()
	}
	c := serve(t, dir)
	corpus := c.fill(t, dir)
	t.Logf("%d lines, %d MB", corpus.Lines, corpus.Bytes>>20)
	browser := uitest.Start(t)
	t.Run("FirstResults", func(t *testing.T) { firstResults(t, browser, c, corpus) })
	t.Run("Hits", func(t *testing.T) { manyHits(t, browser, c, corpus) })
	t.Run("TenPages", func(t *testing.T) { tenPages(t, browser, c) })
}

// collector is a running one.
type collector struct{ url string }

func serve(t *testing.T, dir string) *collector {
	t.Helper()
	program, err := child.BuildRollway(t.TempDir())
	testkit.OK(t, err)
	addr, err := testkit.FreeAddr()
	testkit.OK(t, err)
	config := filepath.Join(t.TempDir(), "rollway.yaml")
	testkit.OK(t, os.WriteFile(config, fmt.Appendf(nil, "listen: %s\nlisten_grpc: \"\"\ndata: %s\n", addr, filepath.Join(dir, "data")), 0o600))
	p, err := child.Program(exec.Command(program, "serve", "-config", config), addr)
	testkit.OK(t, err)
	t.Cleanup(func() { testkit.OK(t, p.Stop()) })
	return &collector{"http://" + addr}
}

// client keeps a connection for each request that waits.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: patience}

// post sends lines.
func (c *collector) post(body []byte) error {
	r, err := client.Post(c.url+"/api/logs", "application/x-ndjson", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s %w", r.Status, text, err)
	}
	return nil
}

// A poster sends the lines that are written to it, a megabyte at a time.
type poster struct {
	c    *collector
	rest []byte
}

func (p *poster) Write(text []byte) (int, error) {
	p.rest = append(p.rest, text...)
	end := bytes.LastIndexByte(p.rest, '\n') + 1
	err := p.c.post(p.rest[:end])
	p.rest = p.rest[:copy(p.rest, p.rest[end:])]
	return len(text), err
}

// fill stores the corpus, unless the folder has it, and waits until its segments are packed.
func (c *collector) fill(t *testing.T, dir string) (corpus query.Corpus) {
	t.Helper()
	known := filepath.Join(dir, "corpus.json")
	if text, err := os.ReadFile(known); err == nil {
		testkit.OK(t, json.Unmarshal(text, &corpus))
		return corpus
	}
	corpus, err := query.Write(&poster{c: c}, *size, 1)
	testkit.OK(t, err)
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > 10*patience {
			t.Fatalf("after %v the segments are not packed", time.Since(begun))
		}
		if segments, packed := c.metric(t, "rollway_journal_segments"), c.metric(t, "rollway_journal_packed_segments_total"); segments > 0 && packed >= segments-1 {
			break
		}
	}
	text, err := json.Marshal(corpus)
	testkit.OK(t, err)
	testkit.OK(t, os.WriteFile(known, text, 0o600))
	return corpus
}

// metric is the value of a metric without labels.
func (c *collector) metric(t *testing.T, name string) float64 {
	t.Helper()
	r, err := http.Get(c.url + "/metrics")
	testkit.OK(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	testkit.OK(t, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return v
		}
	}
	return -1
}

// watchRows has the page note when Enter is pressed, and when the rows of the answer are painted.
const watchRows = `void (() => {
	window.asked = 0; window.painted = 0; window.old = document.querySelector('.vlist')
	addEventListener('keydown', (e) => { if (e.key === 'Enter') { asked = performance.now(); painted = 0; old = document.querySelector('.vlist') } }, true)
	const channel = new MessageChannel()
	channel.port1.onmessage = () => { painted ||= performance.now() }
	const look = () => {
		const list = document.querySelector('.vlist')
		if (asked && !painted && list !== old && list?.querySelector('.row')) channel.port2.postMessage(0)
		requestAnimationFrame(look)
	}
	look()
})()`

// patience is how long figures may take on a machine that has other things to do.
const patience = 2 * time.Minute

// firstResults types ten queries over the first 2 GB, each some times, once all that the page asked before
// is there: the time is from Enter until the first rows are painted.
func firstResults(t *testing.T, browser *uitest.Browser, c *collector, corpus query.Corpus) {
	queries := []string{"msg~" + corpus.Needle, "trace_id=" + corpus.Trace, `service=payment-api msg~"deadline exceeded"`, `msg=~"declined \(code 4[0-9]7\)"`,
		`msg~quota msg~"v137"`, "level>=error", "", "customer_id=cus_000001", "status=402 region=eu-west-1", "restored archive"}
	const asked = 2 << 30 // bytes; all days have as many
	until := query.Begin.Add(time.Duration(float64(query.Days*24*time.Hour) * min(1, float64(asked)/float64(corpus.Bytes))))
	tab := browser.Open(t, c.url+"/ui/#/search?until="+until.Format(time.RFC3339))
	tab.Until(`document.querySelector('.row')`)
	tab.Within(patience, `!document.querySelector('.facets.loading, .histogram.loading')`)
	t.Logf("of %s lines:", tab.Text(".toolbar [role=status] b"))
	tab.Eval(watchRows, nil)
	took := make(map[string][]float64)
	var all [3][]float64
	for range *rounds {
		for _, q := range queries {
			tab.Within(patience, `!document.querySelector('.facets.loading, .histogram.loading, .toolbar .late')`)
			tab.Search(q)
			tab.Until(`painted`)
			var ms [3]float64 // until the request, the end of its answer, and the rows
			tab.Eval(`(() => { const r = performance.getEntriesByType('resource').find((r) => r.startTime >= asked && r.name.includes('/api/query')); performance.clearResourceTimings(); return [r.startTime - asked, r.responseEnd - asked, painted - asked] })()`, &ms)
			took[q] = append(took[q], ms[2])
			for i := range ms {
				all[i] = append(all[i], ms[i])
			}
			tab.Key("Escape", "Escape")
			tab.Eval(`document.activeElement.blur()`, nil)
		}
	}
	for _, q := range queries {
		t.Logf("%-50q median %4.0f ms, longest %4.0f ms", q, at(took[q], 50), at(took[q], 100))
	}
	p95 := at(all[2], 95)
	t.Logf("first rows of %d queries: median %.0f ms, p95 %.0f ms, longest %.0f ms; of that until the request %.0f and %.0f ms, until its answer %.0f and %.0f ms", len(all[2]), at(all[2], 50), p95, at(all[2], 100), at(all[0], 50), at(all[0], 95), at(all[1], 50), at(all[1], 95))
	if p95 > 300 {
		t.Errorf("95 of 100 queries have rows within %.0f ms, want 300", p95)
	}
}

// at is the value that p percent of list do not exceed.
func at(list []float64, p int) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[(len(sorted)-1)*p/100]
}

// manyHits goes through a result of all lines.
func manyHits(t *testing.T, browser *uitest.Browser, c *collector, corpus query.Corpus) {
	tab := browser.Open(t, c.url+"/ui/#/search?since=all")
	began := time.Now()
	tab.Until(`document.querySelectorAll('.row').length > 20`)
	rows := time.Since(began)
	tab.Within(patience, fmt.Sprintf(`Number(document.querySelector('.toolbar [role=status] b')?.innerText.replace(/,/g, '')) >= %d && !document.querySelector('.histogram.loading')`, corpus.Lines))
	t.Logf("rows after %v, the histogram of %s after %v", rows, tab.Text(".toolbar [role=status] b"), time.Since(began))
	smooth := tab.Smooth(browser)
	const end = `document.querySelector('.list-end button')`
	for deadline := time.Now().Add(patience); ; {
		var there bool
		tab.Eval(`(async () => { document.querySelector('.vlist').scrollBy(0, 4000); await new Promise(requestAnimationFrame); return Boolean(`+end+`) })()`, &there)
		if there {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the list has no end")
		}
	}
	t.Logf("20,000 lines scrolled through after %v", time.Since(began))
	smooth()
	var last, first string
	tab.Eval(`document.querySelector('.row:last-child .row-time').innerText`, &last)
	tab.Click(`.list-end button`)
	tab.Until(`location.hash.includes('until=') && document.querySelector('#row-0')`)
	tab.Until(`document.querySelector('#row-0 .row-time').innerText <= ` + strconv.Quote(last))
	// The end of all is one click away.
	began = time.Now()
	tab.Eval("history.back()", nil)
	tab.Click(".toolbar label text=Oldest first")
	tab.Until(`document.querySelector('#row-0 .row-time')?.innerText.includes('05-04 ')`)
	tab.Eval(`document.querySelector('#row-0 .row-time').innerText`, &first)
	t.Logf("the oldest line, of %s, after %v", first, time.Since(began))
	tab.Within(patience, `!document.querySelector('.facets.loading, .histogram.loading')`)
	t.Logf("all figures after %v", time.Since(began))
}

// Of tenPages: how many POSTs a round has, how often one is sent, and its lines.
const (
	posts = 400
	every = 20 * time.Millisecond
	lines = 20
)

// An ask is a request of the page.
type ask struct{ URL, Accept string }

// watchAsks has the page note what it asks.
const watchAsks = `window.asks = []; window.fetch = ((real) => (url, init) => {
	if (url.includes('/api/')) asks.push({ URL: url, Accept: init.headers.Accept ?? '' })
	return real(url, init)
})(window.fetch)`

// asked returns what a page asks until it is drawn.
func (c *collector) asked(t *testing.T, browser *uitest.Browser, hash, drawn string) (list []ask) {
	t.Helper()
	tab := browser.Open(t, "about:blank")
	tab.Call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": watchAsks}, nil)
	tab.Go(c.url + "/ui/" + hash)
	tab.Within(patience, drawn)
	tab.Eval("asks", &list)
	tab.Go("about:blank")
	return list
}

// open asks what a page did, without drawing it: another person's computer does that. The first answer comes first, then
// all others together, and all of it again after 3 s or once it is there, until ctx ends. Each page has an address of its
// own. It calls lines when the first answer is there.
func open(ctx context.Context, address byte, asks []ask, refused *atomic.Int64, lines func()) error {
	defer lines() // if it fails
	// A browser has six connections, and the address pays for what is asked.
	person := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, 0, address)}}
	client := &http.Client{Transport: &http.Transport{DialContext: person.DialContext, MaxConnsPerHost: 6}, Timeout: patience}
	defer client.CloseIdleConnections()
	var get func(a ask, tries int) error
	get = func(a ask, tries int) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Accept", a.Accept)
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		switch answer.StatusCode {
		case http.StatusTooManyRequests: // the page waits for its turn
			refused.Add(1)
			answer.Body.Close()
			if tries == 1 {
				return nil
			}
			select {
			case <-time.After(time.Duration(1000+rand.IntN(500)) * time.Millisecond << (5 - tries)):
				return get(a, tries-1)
			case <-ctx.Done():
				return nil
			}
		case http.StatusOK:
		default:
			return fmt.Errorf("GET %s: %s", a.URL, answer.Status)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	for ctx.Err() == nil {
		again := time.After(3 * time.Second)
		if err := get(asks[0], 5); err != nil {
			return err
		}
		lines()
		failed := make(chan error, len(asks))
		for _, a := range asks[1:] {
			go func() { failed <- get(a, 5) }()
		}
		for range asks[1:] {
			if err := <-failed; err != nil {
				return err
			}
		}
		select {
		case <-again:
		case <-ctx.Done():
		}
	}
	return nil
}

// tenPages measures how long a POST takes, with and without ten pages: five live, and five that search
// all lines anew every 3 s, or once they have all that they asked for.
func tenPages(t *testing.T, browser *uitest.Browser, c *collector) {
	var pages [][]ask
	for _, q := range []string{"level>=error", "service=ledger", "msg~quota", "status=402", "order"} {
		live := c.asked(t, browser, "#/live", `document.querySelector('.dot.live')`)
		live[1].URL, _, _ = strings.Cut(live[1].URL, "&from=") // it begins with what is new
		pages = append(pages, live, c.asked(t, browser, "#/search?since=all&q="+url.QueryEscape(q), `asks.length >= 4`))
	}
	t.Logf("a page that searches asks %v, one that is live %v", pages[1], pages[0])
	var refused atomic.Int64 // the collector runs some queries at a time
	var mu sync.Mutex
	measure := func() (list []float64) {
		began := time.Now()
		var waiting sync.WaitGroup
		for n := range posts {
			due := began.Add(time.Duration(n) * every)
			time.Sleep(time.Until(due))
			var body []byte
			for i := range lines {
				body = fmt.Appendf(body, "{\"level\":\"INFO\",\"service\":\"shop\",\"msg\":\"order %d of page is paid\",\"customer\":%d}\n", n*lines+i, n)
			}
			waiting.Go(func() {
				if err := c.post(body); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				list = append(list, time.Since(due).Seconds()*1000)
			})
		}
		waiting.Wait()
		return list
	}
	var with, without []float64
	for range 4 {
		without = append(without, measure()...)
		ctx, stop := context.WithCancel(t.Context())
		var opened, drawn sync.WaitGroup
		drawn.Add(len(pages))
		for i, asks := range pages {
			opened.Go(func() {
				if err := open(ctx, byte(i+1), asks, &refused, sync.OnceFunc(drawn.Done)); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			})
		}
		drawn.Wait()
		with = append(with, measure()...)
		stop()
		opened.Wait()
	}
	a, b := at(without, 99), at(with, 99)
	t.Logf("a POST of %d lines every %v: p50 %.1f ms, p99 %.1f ms; beside ten pages p50 %.1f ms, p99 %.1f ms, %.2f times as long; %d requests of pages are refused", lines, every, at(without, 50), a, at(with, 50), b, b/a, refused.Load())
	if b > 1.5*a {
		t.Errorf("beside ten pages a POST takes %.2f times as long, want 1.5 at most", b/a)
	}
}
