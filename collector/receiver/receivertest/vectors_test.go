package receivertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/normalize/vectors"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/datadog"
	"github.com/rollway/rollway/collector/receiver/elastic"
	"github.com/rollway/rollway/collector/receiver/gelf"
	"github.com/rollway/rollway/collector/receiver/loki"
	"github.com/rollway/rollway/collector/receiver/otlp"
	"github.com/rollway/rollway/collector/receiver/sentry"
	"github.com/rollway/rollway/collector/receiver/splunk"
)

var envelopes = []struct {
	path      string
	protocol  receiver.Protocol
	envelopes []Envelope
}{
	{"/_bulk", elastic.Bulk, []Envelope{
		{Before: "{\"index\":{}}\n{\"k\":", Behind: "}\n", Line: true},
		{Before: "{\"create\":{}}\n{\"log\":{\"k\":", Behind: "}}", Line: true},
		{Before: "{\"create\":{}}\n{\"error.k\":", Behind: "}", Line: true},
		{Before: "{\"index\":{\"x\":", Behind: "}}\n{}\n", Line: true, Strict: true},
	}},
	{"/loki/api/v1/push", loki.Protocol, []Envelope{
		{Before: `{"streams":[{"stream":{},"values":[["1",`, Behind: `]]}]}`, Only: `"`},
		{Before: `{"streams":[{"stream":{"a":`, Behind: `},"values":[["1","m"]]}]}`, Flat: true},
		{Before: `{"streams":[{"stream":{},"values":[["1","m",{"k":`, Behind: `}]]}]}`, Flat: true},
		{Before: `{"streams":[{"stream":{},"values":[["1","m"]],"x":`, Behind: `}]}`, Flat: true, Unsized: true},
	}},
	{"/v1/logs", otlp.Protocol, []Envelope{
		{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":`, Behind: `}}]}]}]}`, Only: `"`},
		{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[{"key":"k","value":{"arrayValue":{"values":[{"stringValue":`, Behind: `}]}}}]}]}]}]}`, Only: `"`},
		{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"x":`, Behind: `}]}]}]}`, Flat: true, Unsized: true},
		{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}],"x":`, Behind: `}`, Flat: true, Unsized: true},
	}},
	{"/api/1/store/", sentry.Store, []Envelope{
		{Before: `{"message":"m","x":`, Behind: `}`},
		{Before: `{"logentry":{"message":"m","params":`, Behind: `}}`},
		{Before: `{"contexts":{"trace":{"k":`, Behind: `}}}`},
		{Before: `{"exception":{"values":[{"type":"T","x":`, Behind: `}]}}`},
	}},
	{"/api/1/envelope/", sentry.Envelope, []Envelope{
		{Before: "{}\n{\"type\":\"event\"}\n{\"extra\":{\"k\":", Behind: "}}\n", Line: true},
		{Before: "{}\n{\"type\":\"log\"}\n{\"items\":[{\"body\":\"m\",\"x\":", Behind: "}]}", Line: true},
		{Before: "{}\n{\"type\":\"log\"}\n{\"items\":[{\"attributes\":{\"k\":{\"type\":\"t\",\"value\":", Behind: "}}}]}", Line: true},
		{Before: "{\"x\":", Behind: "}\n{\"type\":\"event\"}\n{}", Line: true, Flat: true, Unsized: true},
		{Before: "{}\n{\"type\":\"event\",\"x\":", Behind: "}\n{}", Line: true, Flat: true, Unsized: true},
	}},
	{"/api/v2/logs", datadog.Protocol, []Envelope{
		{Before: `{"message":"m","k":`, Behind: `}`, Row: true},
		{Before: `{"message":{"k":`, Behind: `}}`, Row: true},
	}},
	{"/gelf", gelf.HTTP, []Envelope{
		{Before: `{"k":`, Behind: `}`, Row: true},
		{Before: `{"_k":`, Behind: `}`, Row: true},
		{Before: `{"short_message":`, Behind: `,"_context":{"k":1}}`, Row: true},
	}},
	{"/services/collector/event", splunk.Event, []Envelope{
		{Before: `{"event":{"k":`, Behind: `}}`, Row: true},
		{Before: `{"event":{"message":{"k":`, Behind: `}}}`, Row: true},
		{Before: `{"event":[1,`, Behind: `]}`, Row: true},
		{Before: `{"event":"m","fields":{"k":`, Behind: `}}`, Row: true},
		{Before: `{"event":"m","x":`, Behind: `}`, Row: true},
	}},
}

// An Envelope is the least that a protocol wants around a JSON value for one
// event, and what it does with the value that leaves RFC 8259's choices open.
type Envelope struct {
	Before, Behind string
	Line           bool   // the value must be in one line
	Row            bool   // the body is values in a row: those before the fault are stored
	Only           string // what values must begin with; "": anything
	Strict         bool   // what is not UTF-8 is rejected
	Flat           bool   // how deep the value nests is of no concern
	Unsized        bool   // nor is its size
}

func (e *Envelope) takes(v *vectors.Vector) bool {
	return strings.HasPrefix(v.Text, e.Only) && (!e.Line || v.OneLine())
}

func (e *Envelope) accepts(v *vectors.Vector) bool {
	switch {
	case !v.UTF8:
		return !e.Strict
	case v.Accept:
		return true
	case v.Choice == "" || v.Group == vectors.TooDeepToRead:
		return false
	case v.Group == "size":
		return e.Unsized
	}
	return e.Flat
}

// TestJSONVectors sends JSON that must, must not or may be accepted, in each of the
// envelopes, and checks what is stored and what is rejected.
func TestJSONVectors(t *testing.T) {
	for _, p := range envelopes {
		t.Run(p.path, func(t *testing.T) { checkVectors(t, p.protocol, p.path, p.envelopes) })
	}
}

func checkVectors(t *testing.T, p receiver.Protocol, path string, envelopes []Envelope) {
	values := vectors.Values()
	for i := range envelopes {
		e := &envelopes[i]
		var lines []byte
		store := func(_ context.Context, b *normalize.Batch, _ receiver.StoreOptions) (receiver.Stored, error) {
			lines = append(lines, b.Lines...)
			return receiver.Stored{}, nil
		}
		r := receiver.New(receiver.StoreFunc(store), receiver.Options{Limits: normalize.Limits{MaxFuture: -1, MaxPast: -1}})
		h := r.Handler(p)
		tried := 0
		for i := range values {
			v := &values[i]
			if !e.takes(v) {
				continue
			}
			tried++
			body := e.Before + v.Text + e.Behind
			before := r.Stats()
			lines = lines[:0]
			rec := httptest.NewRecorder()
			req := httptest.NewRequest("POST", path, strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(rec, req)
			after := r.Stats()
			stored, rejected := after.Stored-before.Stored, after.RejectedTotal()-before.RejectedTotal()
			wantStored, wantRejected := uint64(1), uint64(0)
			if !e.accepts(v) {
				wantStored, wantRejected = 0, 1
				if e.Row {
					wantStored = wholeValues(body)
				}
			}
			if stored != wantStored || rejected != wantRejected {
				t.Errorf("%s…%s, %s: %d stored, %d rejected, want %d and %d; %d %.200s", e.Before, e.Behind, v.Name(), stored, rejected, wantStored, wantRejected, rec.Code, rec.Body)
			}
			for line := range bytes.Lines(lines) {
				if !json.Valid(line) || !utf8.Valid(line) {
					t.Errorf("%s…%s, %s: the line %.300q is not JSON", e.Before, e.Behind, v.Name(), line)
				}
			}
		}
		if tried < 100 {
			t.Errorf("%s…%s: %d vectors were tried", e.Before, e.Behind, tried)
		}
	}
}

// TestLargeAndNotUTF8: a byte that is not UTF-8 changes nothing of how a value that is too
// large is answered and counted.
func TestLargeAndNotUTF8(t *testing.T) {
	for _, p := range envelopes {
		for _, e := range p.envelopes {
			if e.Strict || e.Unsized || e.Only != "" && e.Only != `"` {
				continue
			}
			var want string
			for _, end := range []string{"x", "\xff"} {
				r := receiver.New(receiver.StoreFunc(func(context.Context, *normalize.Batch, receiver.StoreOptions) (receiver.Stored, error) {
					return receiver.Stored{}, nil
				}), receiver.Options{})
				req := httptest.NewRequest("POST", p.path, strings.NewReader(e.Before+`"`+strings.Repeat("x", 3<<20)+end+`"`+e.Behind))
				req.Header.Set("Content-Type", "application/json")
				rec := httptest.NewRecorder()
				r.Handler(p.protocol).ServeHTTP(rec, req)
				got := fmt.Sprint(rec.Code, r.Stats().Stored, r.Stats().Rejected)
				if end == "x" {
					want = got
				}
				if got != want || !strings.Contains(got, "too_l") && !strings.Contains(got, "too_long") {
					t.Errorf("%s %s…%s: %s, want %s", p.path, e.Before, e.Behind, got, want)
				}
			}
		}
	}
}

// wholeValues counts the objects at the beginning of a body.
func wholeValues(body string) (n uint64) {
	for dec := json.NewDecoder(strings.NewReader(body)); ; n++ {
		var v json.RawMessage
		if dec.Decode(&v) != nil || v[0] != '{' || len(v) > 1<<20 || bytes.Count(v, []byte("[")) > 100 || bytes.Count(v, []byte("{")) > 100 {
			return n
		}
	}
}
