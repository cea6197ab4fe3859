package remote_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rollway/rollway/remote"
)

// What HTTP inputs for logs answer when they have taken a request, by their
// documentation and source. None of them may be taken for a failure.
func TestAnswersThatConfirm(t *testing.T) {
	t.Parallel()
	const plain, html, object = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/json"
	for _, c := range []struct {
		peer string
		code int
		kind string
		body string
	}{
		{"VictoriaLogs, Vector, Fluentd, ClickHouse, Sumo Logic", 200, "", ""},
		{"Fluent Bit", 201, "", ""},
		{"Graylog, Better Stack, Datadog v1", 202, "", ""},
		{"Loki", 204, "", ""},
		{"Logstash", 200, plain, "ok"},
		{"a program with net/http", 200, plain, "OK\n"},
		{"Flask, Express, PHP", 200, html, "ok"},
		{"Express with an object as text", 200, html, `{"ok":true}`},
		{"PHP without a word", 200, html, ""},
		{"Fluentd, respond_with_empty_img", 200, "image/gif", "GIF89a\x01\x00\x01\x00\x80\xff\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"},
		{"Splunk HEC, Cribl", 200, object, `{"text":"Success","code":0}`},
		{"Datadog v2", 202, object, `{}`},
		{"New Relic", 202, object, `{"requestId":"f0e7bfff-001a-b000-0000-01682bcf4565"}`},
		{"Loggly", 200, object, "{\"response\" : \"ok\"}\n"},
		{"Elastic Agent", 200, object, `{"message": "success"}`},
		{"Axiom", 200, object, `{"ingested":4,"failed":0,"failures":[],"processedBytes":1337}`},
		{"OpenObserve", 200, object, `{"code":200,"status":[{"name":"default","successful":4,"failed":0}]}`},
		{"Quickwit", 200, object, "{\n  \"num_docs_for_processing\": 4\n}"},
		{"Tinybird", 202, object, `{"successful_rows":4,"quarantined_rows":0}`},
		{"a count of none refused", 200, object, `{"accepted":4,"rejected":0}`},
		{"a word for it", 200, object, `{"accepted":true}`},
		{"Honeycomb", 200, object, "[" + strings.Repeat(`{"status":202},`, 2000) + `{"status":202}]`},
		{"an echo of the request", 200, object, `{"data":"` + strings.Repeat("x", 100<<10) + `"}`},
		{"one object for each line", 200, "application/x-ndjson", "{\"ok\":true}\n{\"ok\":true}\n"},
		{"a byte order mark", 200, object, "\uFEFF{\"ok\":true}"},
		{"text with a mark in it", 200, plain, "stored 4 lines -> ok"},
	} {
		peer := startHTTPPeer(t)
		peer.answer(status(c.code, c.body, "Content-Type", c.kind))
		w := open(t, peer.URL+"/", remote.Options{})
		if n, err := w.Write([]byte(numbered(0, 4))); err != nil {
			t.Errorf("%s: Write = %d, %v", c.peer, n, err)
		}
		peer.want(t, numbered(0, 4))
		settled(t, w, 4, 4)
	}
}

// A 2xx that does not say that the lines are stored leaves them with the
// caller, and the next request has the same key.
func TestAnswersThatDoNotConfirm(t *testing.T) {
	t.Parallel()
	const page = "\n<!DOCTYPE html><html><title>Please log in</title></html>"
	const list = `{"accepted":3,"rejected":[{"line":2,"reason":"json","detail":"not JSON"}],"rejected_total":1}`
	answers := []struct {
		name   string
		answer http.HandlerFunc
		told   string
	}{
		{"a login page", status(200, page, "Content-Type", "text/html"), "HTML page"},
		{"a login page that says it is text", status(200, page, "Content-Type", "text/plain"), "HTML page"},
		{"a page without its head", status(200, "Log in <a href='/'>here</a>", "Content-Type", "Text/HTML ; charset=utf-8"), "HTML page"},
		{"a long page", status(200, page+strings.Repeat("<p>", 100<<10)), "HTML page"},
		{"a text that is cut", cut(100, "text/plain", "stor"), "cut short"},
		{"a length and no body", cut(100, "text/plain", ""), "cut short"},
		{"chunks without an end", cut(-1, "text/plain", "ok"), "cut short"},
		{"a list that is cut", cut(len(list), "application/json", list[:50]), "cut short"},
		{"a list without its end", status(200, list[:50]), "no whole JSON"},
		{"a list and garbage", status(200, list+"]"), "no whole JSON"},
		{"a list in chunks without an end", cut(-1, "application/json", list), "cut short"},
		{"a list of more than a MiB", status(200, `{"accepted":4,"rejected":[`+strings.Repeat(`{"line":2},`, 100_000)+`{"line":2}]}`), "longer than 1048576 bytes"},
		{"a long list that is cut", cut(1<<20, "application/json", `{"accepted":4,"rejected":[`+strings.Repeat(`{"line":2},`, 1000)), "unexpected EOF"},
		{"a long text", status(200, strings.Repeat("ok ", 2000)), "more than 4096 bytes"},
		{"a number without an end", status(200, `{"accepted":`+strings.Repeat("1", 10_000)+`}`), "number"},
		{"brackets without an end", status(200, strings.Repeat("[", 100_000)), "nested too deep"},
	}
	for _, c := range answers {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			peer := startHTTPPeer(t)
			peer.answer(c.answer)
			w := open(t, peer.URL+"/", remote.Options{})
			n, err := w.Write([]byte(numbered(0, 4)))
			if n != 0 || err == nil || !strings.Contains(err.Error(), c.told) || !strings.Contains(err.Error(), peer.URL) || !strings.Contains(err.Error(), "check the URL") {
				t.Errorf("Write = %d, %.500v, want 0 and %q", n, err, c.told)
			}
			settled(t, w, 0, 0)
			write(t, w, numbered(0, 4))
			settled(t, w, 4, 4)
			seen := peer.seen()
			if a, b := seen[0].header.Get("Idempotency-Key"), seen[1].header.Get("Idempotency-Key"); a == "" || a != b {
				t.Errorf("the keys are %q and %q, want the same", a, b)
			}
		})
		if strings.Contains(c.name, "list") && !strings.Contains(c.name, "cut") || strings.Contains(c.name, "number") {
			continue // it is JSON of nobody's, and not of a Loki's
		}
		t.Run("loki, "+c.name, func(t *testing.T) {
			t.Parallel()
			peer := startLokiPeer(t)
			peer.always = c.answer
			w := open(t, peer.url(), remote.Options{})
			n, err := w.Write([]byte(numbered(0, 4)))
			if n != 0 || err == nil || !strings.Contains(err.Error(), c.told) {
				t.Errorf("Write = %d, %.500v, want 0 and %q", n, err, c.told)
			}
			settled(t, w, 0, 0)
			peer.always = nil
			write(t, w, numbered(0, 4))
			settled(t, w, 4, 4)
		})
	}
}

// cut answers with the beginning of a body of so many bytes, or of one in
// chunks if that is negative, and ends the connection.
func cut(length int, kind, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", kind)
		if length >= 0 {
			rw.Header().Set("Content-Length", fmt.Sprint(length))
		}
		rw.WriteHeader(200)
		io.WriteString(rw, body)
		http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}
}

// An answer without an end costs neither memory nor time.
func TestEndlessAnswers(t *testing.T) {
	const size = 1 << 30
	for _, c := range []struct {
		name   string
		scheme string
		code   int
		head   string
		more   string
	}{
		{"a text", "http", 200, "", "ok "},
		{"white space", "http", 200, "", " "},
		{"one string", "http", 200, `{"text":"`, "text"},
		{"one string of escapes", "http", 200, `{"text":"`, `é\"`},
		{"a list", "http", 200, `{"accepted":4,"rejected":[{}`, `,{"detail":"no"}`},
		{"a refusal", "http", 400, `{"accepted":0,"rejected":[{"detail":"`, "no"},
		{"an error", "http", 503, "", "later "},
		{"one string", "elastic", 200, `{"errors":true,"items":[{"create":{"status":400,"error":{"type":"t","reason":"`, "why"},
		{"a number", "elastic", 200, `{"errors":true,"items":[{"create":{"status":2`, "0"},
		{"white space", "elastic", 200, `{"errors":true,"items":[{"create":`, "\n"},
		{"members", "elastic", 200, `{"errors":true,"items":[{"create":{"a":1`, `,"b":2`},
		{"nesting", "elastic", 200, `{"errors":true,"items":[{"create":{"error":`, "["},
		{"items", "elastic", 200, `{"errors":true,"items":[{"create":{"status":201}}`, `,{"create":{"status":201}}`},
		{"a refusal", "elastic", 400, `{"error":"`, "no"},
		{"one string", "loki", 200, `{"text":"`, "text"},
		{"a refusal", "loki", 400, "", "no such label "},
	} {
		t.Run(c.scheme+", "+c.name, func(t *testing.T) {
			var sent atomic.Int64
			chunk := []byte(strings.Repeat(c.more, 32<<10/len(c.more)))
			answer := func(rw http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				rw.WriteHeader(c.code)
				io.WriteString(rw, c.head)
				for total := 0; total < size; total += len(chunk) {
					n, err := rw.Write(chunk)
					if sent.Add(int64(n)); err != nil {
						return
					}
				}
			}
			peer := newHTTPPeer(t)
			peer.Config.Handler = http.HandlerFunc(answer)
			peer.Start()
			url := peer.URL + "/"
			if c.scheme != "http" {
				url = c.scheme + "+" + url + map[string]string{"elastic": "logs-shop"}[c.scheme]
			}
			w := open(t, url, remote.Options{OnError: func(error) {}})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, err := w.Write([]byte(numbered(0, 1)))
			runtime.ReadMemStats(&after)
			t.Logf("%d KiB", (after.TotalAlloc-before.TotalAlloc)>>10) // the server's are in it
			if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
				t.Errorf("%d KiB were allocated", got>>10)
			}
			// The buffers of the kernel take some of it.
			if got := sent.Load(); got > 32<<20 {
				t.Errorf("%d KiB were read", got>>10)
			}
			if n != 0 || err == nil {
				t.Errorf("Write = %d, %.300v", n, err)
			}
			ledger(w).Check(t)
		})
	}
}

// A peer that speaks only HTTP/2 is told apart from one that speaks garbage.
func TestPeerWithHTTP2Only(t *testing.T) {
	t.Parallel()
	var h2 http.Protocols
	h2.SetHTTP2(true)
	ca := newAuthority(t)
	secure := newHTTPPeer(t)
	secure.TLS = ca.server(t, "127.0.0.1")
	secure.TLS.NextProtos = []string{"h2"}
	secure.Config.Protocols = &h2
	secure.Config.ErrorLog = discardLog
	secure.StartTLS()
	w := open(t, "https://"+secure.Listener.Addr().String()+"/", remote.Options{TLSConfig: &tls.Config{RootCAs: ca.pool}})
	n, err := w.Write([]byte(numbered(0, 1)))
	if n != 0 || err == nil || !strings.Contains(err.Error(), "HTTP/1.1") {
		t.Errorf("by ALPN: Write = %d, %v, want an error that names HTTP/1.1", n, err)
	}
	settled(t, w, 0, 0)

	plain := newHTTPPeer(t)
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	plain.Config.Protocols = &h2c
	plain.Start()
	w = open(t, plain.URL+"/", remote.Options{})
	n, err = w.Write([]byte(numbered(0, 1)))
	if n != 0 || err == nil || !strings.Contains(err.Error(), "HTTP/1.1") && !strings.Contains(err.Error(), "reset") {
		t.Errorf("without TLS: Write = %d, %v, want an error that names HTTP/1.1", n, err)
	}
	settled(t, w, 0, 0)
}
