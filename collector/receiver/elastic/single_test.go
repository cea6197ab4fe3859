package elastic

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// TestDocument sends one document a request, as clients do that do not send in bulk.
func TestDocument(t *testing.T) {
	const answer = `{"_index":"shop","_id":%s,"_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":%d,"_primary_term":1,"status":201}` + "\n"
	s, h := newServer(t, normalize.Limits{MaxEventBytes: 300})
	for i, tt := range []struct{ method, path, id, attrs string }{
		{"POST", "/shop/_doc", `"0"`, `{"_index":"shop"}`},
		{"PUT", "/shop/_doc/a%20b", `"a b"`, `{"_index":"shop","_id":"a b"}`},
		{"PUT", "/shop/_create/7", `"7"`, `{"_index":"shop","_id":"7"}`},
		{"POST", "/elastic/shop/_doc/c", `"c"`, `{"_index":"shop","_id":"c"}`},
	} {
		req := httptest.NewRequest(tt.method, tt.path, strings.NewReader(`{"@timestamp":"2026-05-28T12:40:00Z","message":"hi"}`))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if rec.Code != http.StatusCreated || rec.Body.String() != fmt.Sprintf(answer, tt.id, i) {
			t.Errorf("%s: %d %s", tt.path, rec.Code, rec.Body)
		}
		if want := stamp + `"INFO","msg":"hi","attrs":` + tt.attrs + "}"; len(s.Lines) != i+1 || s.Lines[i] != want {
			t.Errorf("%s: %q, want %s", tt.path, s.Lines, want)
		}
	}
	for _, tt := range []struct {
		path, body string
		code       int
		want       string
	}{
		{"/shop/_doc", " \n", 400, "request body is required"},
		{"/shop/_doc", "[]", 400, `"_index":"shop","status":400,"error":{"type":"document_parsing_exception","reason":"failed to parse line 1: the document is not an object"}`},
		{"/shop/_doc", `{"message":"` + strings.Repeat("x", 300) + `"}`, 400, "document_parsing_exception"},
		{"/shop/_doc/" + strings.Repeat("x", 513), "{}", 400, "the id of 513 bytes is longer than 512"},
	} {
		rec := decodetest.Send(h, tt.path, tt.body)
		if rec.Code != tt.code || !strings.Contains(rec.Body.String(), tt.want) || len(s.Lines) != 4 {
			t.Errorf("%.40s, %.20q: %d %s", tt.path, tt.body, rec.Code, rec.Body)
		}
	}
}
