package remote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// An elasticPeer answers _bulk as Elasticsearch 8 does: an item for each
// action, in order, 409 for an id that is there, 400 for what is no document.
type elasticPeer struct {
	*httptest.Server
	always http.HandlerFunc // answers instead, if it writes a status

	mu       sync.Mutex
	item     func(doc string) (status int, kind, reason string) // 0: as it should be
	ids      map[string]bool
	docs     []string
	requests []int // documents in each
}

func startElasticPeer(t testing.TB) *elasticPeer {
	p := &elasticPeer{ids: map[string]bool{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { p.serve(t, rw, r) }))
	t.Cleanup(p.Close)
	return p
}

func (p *elasticPeer) serve(t testing.TB, rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if p.always != nil {
		status := &statusRecorder{ResponseWriter: rw}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if p.always(status, r); status.code != 0 {
			return
		}
	}
	if r.URL.Path != "/logs-shop/_bulk" || r.Header.Get("Content-Type") != "application/x-ndjson" || r.URL.Query().Get("filter_path") == "" {
		t.Errorf("%s %s with %s", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	if len(lines)%2 != 0 || !strings.HasSuffix(string(body), "\n") {
		t.Errorf("%d lines in a bulk, or no last line end", len(lines))
		rw.WriteHeader(400)
		return
	}
	var items []string
	failed := false
	for i := 0; i < len(lines); i += 2 {
		var action struct {
			Create struct {
				ID string `json:"_id"`
			}
		}
		d := json.NewDecoder(strings.NewReader(lines[i]))
		d.DisallowUnknownFields()
		if err := d.Decode(&action); err != nil || action.Create.ID == "" {
			t.Errorf("action %q: %v", lines[i], err)
		}
		status, kind, reason := 201, "", ""
		var doc map[string]any
		switch {
		case json.Unmarshal([]byte(lines[i+1]), &doc) != nil || doc["@timestamp"] == nil:
			status, kind, reason = 400, "document_parsing_exception", "not a document with @timestamp"
		case p.ids[action.Create.ID]:
			status, kind, reason = 409, "version_conflict_engine_exception", "document already exists"
		}
		if p.item != nil && status == 201 {
			if s, k, r := p.item(lines[i+1]); s != 0 {
				status, kind, reason = s, k, r
			}
		}
		if status == 201 {
			p.ids[action.Create.ID] = true
			p.docs = append(p.docs, lines[i+1])
			items = append(items, `{"create":{"status":201}}`)
			continue
		}
		failed = true
		items = append(items, fmt.Sprintf(`{"create":{"status":%d,"error":{"type":%q,"reason":%q}}}`, status, kind, reason))
	}
	p.requests = append(p.requests, len(items))
	rw.Header().Set("Content-Type", "application/vnd.elasticsearch+json;compatible-with=8")
	fmt.Fprintf(rw, `{"errors":%v,"took":3,"items":[%s]}`, failed, strings.Join(items, ","))
}

// url is that of the data stream logs-shop.
func (p *elasticPeer) url() string { return "elastic+" + p.URL + "/logs-shop" }

// bytes returns the lines that became the documents.
func (p *elasticPeer) bytes() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []byte
	for _, d := range p.docs {
		all = append(all, stamp.ReplaceAllString(d, "{")...)
		all = append(all, '\n')
	}
	return all
}

var stamp = regexp.MustCompile(`^\{"@timestamp":"[-0-9T:.]+Z",?`)

func (p *elasticPeer) want(t testing.TB, lines string) {
	t.Helper()
	if got := string(p.bytes()); got != lines {
		t.Errorf("the peer has %.500q, want %.500q", got, lines)
	}
}

func (p *elasticPeer) decide(item func(doc string) (int, string, string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.item = item
}
