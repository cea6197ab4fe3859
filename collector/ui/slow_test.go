package ui_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/ui/uitest"
	"github.com/rollway/rollway/internal/testkit"
)

// slow gives a tab a network of 400 kbit/s where each answer takes 400 ms more.
func slow(tab *uitest.Tab) {
	tab.Call("Network.enable", map[string]any{}, nil)
	tab.Call("Network.emulateNetworkConditions", map[string]any{"offline": false, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}, nil)
}

// between is a proxy in front of a collector. What does not pass, other has answered.
func between(t *testing.T, at string, other func(w http.ResponseWriter, r *http.Request) (passes bool)) *httptest.Server {
	to, err := url.Parse(at)
	testkit.OK(t, err)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if other(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// walkSlow uses the page over a slow network, which breaks off while lines are followed.
func walkSlow(t *testing.T, browser *uitest.Browser) {
	at := started(t)
	send(t, at, story(time.Now())...)
	var away atomic.Bool
	server := between(t, at, func(w http.ResponseWriter, r *http.Request) bool {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		return true
	})
	cut := func() {
		away.Store(true)
		server.CloseClientConnections()
	}
	tab := open(t, browser, "about:blank")
	slow(tab)
	began := time.Now()
	tab.Call("Page.navigate", map[string]any{"url": server.URL + "/ui/"}, nil)
	tab.Until(`document.querySelector('#app .empty')?.innerText.includes('loading') || document.querySelector('.row')`)
	said := time.Since(began)
	tab.Until(`document.querySelectorAll('.row').length > 10`)
	rows := time.Since(began)
	tab.Until(`document.querySelector('.plot canvas') && document.querySelectorAll('.facet').length > 2`)
	t.Logf("at 400 kbit/s and 400 ms: it says that it loads after %v, lines are there after %v, all is after %v", said, rows, time.Since(began))
	tab.Key("l")
	tab.Until(`document.querySelector('.dot.live')`)
	send(t, at, numbered(0, 5)...)
	const last = `[...document.querySelectorAll('.row-msg')].pop()?.innerText`
	tab.Until(last + ` === 'order 4'`)
	cut()
	tab.Until(`document.querySelector('.dot.away')`)
	send(t, at, numbered(5, 200)...)
	away.Store(false)
	tab.Until(last + ` === 'order 204' && document.querySelector('.dot.live')`)
	var lost []string
	tab.Eval(`(() => { const n = [...document.querySelectorAll('.row-msg')].map((e) => Number(e.innerText.slice(6))).filter((x) => x >= 0); return n.filter((x, i) => i && x !== n[i - 1] + 1).map(String) })()`, &lost)
	if len(lost) > 0 || tab.Text(".live .notice") != "" {
		t.Errorf("after the break: %q, lines out of order at %q", tab.Text(".live .notice"), lost)
	}
	// What is too much to catch up with is told.
	cut()
	tab.Until(`document.querySelector('.dot.away')`)
	send(t, at, numbered(205, 25_000)...)
	away.Store(false)
	tab.Until(last + ` === 'order 25204'`)
	if text := tab.Text(".live .notice"); !strings.HasPrefix(text, "25,000 lines were stored while this page was away") {
		t.Errorf("it says %q", text)
	}
}

// walkStop has searches that take for ever: their reader can stop them, and ask again. A part without
// progress, which tenants get, is one. Searches that the collector refuses wait for their turn, and say so.
func walkStop(t *testing.T, browser *uitest.Browser) {
	at := started(t)
	send(t, at, story(time.Now())...)
	ended := make(chan string, 10)
	refused := make(chan string, 100)
	var room atomic.Bool
	server := between(t, at, func(w http.ResponseWriter, r *http.Request) bool {
		v := r.URL.Query()
		q := v.Get("q")
		if q == "forever" || q == "half" && r.URL.Path != "/api/query" {
			if r.URL.Path == "/api/hits" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "event: partial\ndata: {\"from\":\"2026-05-28T12:00:00Z\",\"until\":\"2026-05-28T13:00:00Z\",\"step_seconds\":60,\"values\":[\"INFO\"],\"buckets\":[{\"time\":\"2026-05-28T12:00:00Z\",\"count\":7,\"counts\":[7]}],\"matched\":7}\n\n")
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
			ended <- r.URL.Path
			return false
		}
		if q == "full" || q == "busy" && !room.Load() {
			w.Header().Set("Retry-After", map[string]string{"full": "10", "busy": "1"}[q])
			w.WriteHeader(http.StatusTooManyRequests)
			refused <- q
			return false
		}
		if q == "half" || q == "busy" {
			v.Set("q", "")
			r.URL.RawQuery = v.Encode()
		}
		return true
	})
	tab := open(t, browser, server.URL+"/ui/")
	tab.Until(`document.querySelectorAll('.row').length > 20`)
	tab.Search("forever")
	tab.Until(`document.querySelector('.histogram .partial')?.innerText === 'partial' && document.querySelector('.toolbar [role=status]').innerText.includes('7 lines so far')`)
	tab.Click(".toolbar button text=Stop")
	tab.Until(`document.querySelector('.notice.bad')?.innerText.includes('stopped') && !document.querySelector('.row') && document.querySelector('.histogram .partial').innerText === 'partial, stopped'`)
	for range 2 {
		if path := <-ended; path != "/api/query" && path != "/api/hits" {
			t.Errorf("%s has ended", path)
		}
	}
	tab.Search("forever") // and a new question ends them
	tab.Until(`document.querySelector('.histogram .partial')?.innerText === 'partial'`)
	tab.Search("half")
	for range 2 {
		<-ended
	}
	tab.Until(`document.querySelectorAll('.row').length > 20 && document.querySelector('.facets.loading')`)
	tab.Click(".toolbar button text=Stop")
	tab.Until(`!document.querySelector('.facets.loading') && !document.querySelector('.toolbar .late') && document.querySelectorAll('.row').length > 20`)
	const waits = `document.querySelector('.toolbar [role=status]').innerText.includes('waiting for a turn')`
	tab.Search("full")
	tab.Until(waits)
	tab.Search("busy") // which does not wait for what is not asked any more
	for q := ""; q != "busy"; q = <-refused {
	}
	tab.Until(waits)
	room.Store(true)
	tab.Until(`document.querySelectorAll('.row').length > 20 && !document.querySelector('.facets.loading, .histogram.loading, .notice') && !(` + waits + `)`)
	tab.Search("full")
	tab.Until(waits)
	tab.Click(".toolbar button text=Stop")
	tab.Until(`document.querySelector('.notice.bad')?.innerText.includes('stopped') && !(` + waits + `)`)
	tab.Eval(`location.hash = '#/search'`, nil)
	tab.Reload()
	tab.Until(`document.querySelectorAll('.row').length > 20 && !document.querySelector('.notice')`)
}
