package elastic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/internal/testkit"
)

// newServer returns a server, and its routes of this protocol.
func newServer(t testing.TB, limits normalize.Limits) (*decodetest.Server, http.Handler) {
	limits.MaxPast, limits.MaxFuture = -1, -1 // the tests' times grow old
	limits.NoFingerprint = true
	s := decodetest.NewServer(t, func(o *receiver.Options) { o.Limits = limits })
	mux := http.NewServeMux()
	mux.Handle("/_bulk", s.Handler(Bulk))
	mux.Handle("/{index}/_bulk", s.Handler(Bulk, http.MethodPost, http.MethodPut))
	for _, path := range []string{"/{index}/_doc", Prefix + "/{index}/_doc/{id}", Prefix + "/{index}/_create/{id}"} {
		mux.Handle(path, s.Handler(Document, http.MethodPost, http.MethodPut))
	}
	return s, Documents(mux)
}

const stamp = `{"time":"2026-05-28T12:40:00.000000000Z","level":`

func TestDocuments(t *testing.T) {
	for _, tt := range []struct{ action, doc, want string }{
		{`{"create":{}}`, `{"message":"hi"}`, `"INFO","msg":"hi"}`},
		{`{"index":{"_index":"logs-app-default","_id":"a1"}}`, `{"message":"hi","n":1}`,
			`"INFO","msg":"hi","attrs":{"n":1,"_index":"logs-app-default","_id":"a1"}}`},
		{`{"create":{"_id":7,"pipeline":"p","require_alias":true}}`, `{}`, `"INFO","attrs":{"_id":7,"pipeline":"p","require_alias":true}}`},
		{`{"index":{"op_type":"create","_type":"log"}}`, `{}`, `"INFO","attrs":{"_type":"log"}}`},
		{`{"create":{}}`, "{\"message\":\"caf\xe9\"}", `"INFO","msg":"caf` + "\uFFFD\"}"},
		{"\ufeff" + `{"create":{}}`, `{"message":"hi"}`, `"INFO","msg":"hi"}`},
		{`{"create":{"_id":null,"_index":null}}`, `{}`, `"INFO"}`},
		{`{"index":{"_index":"i"},"attempts":3}`, `{}`, `"INFO","attrs":{"_index":"i"}}`}, // winston-elasticsearch
		{`{"create":{}}`, `{"log.level":"warn","log.logger":"db","service.name":"shop","trace.id":"t","span.id":"s"}`,
			`"WARN","service":"shop","logger":"db","trace_id":"t","span_id":"s"}`},
		{`{"create":{}}`, `{"log":{"level":"error","logger":"db"},"service":{"name":"shop"},"trace":{"id":"t"},"span":{"id":"s"}}`,
			`"ERROR","service":"shop","logger":"db","trace_id":"t","span_id":"s"}`},
		{`{"create":{}}`, ` { "log" : { "level" : "error" , "origin" : { "file.line" : 7 } } , "service" : { "version" : "1" , "name" : "shop" } } `,
			`"ERROR","service":"shop","attrs":{"log":{"origin":{"file.line":7}},"service":{"version":"1"}}}`},
		{`{"create":{}}`, `{"log":{"level":"loud"},"log.level":"info","service":{"name":5},"trace":"t"}`,
			`"INFO","attrs":{"trace":"t","log":{"level":"loud"},"service":{"name":5}}}`},
		{`{"create":{}}`, `{"log":"from docker","message":"second"}`, `"INFO","msg":"from docker","attrs":{"message":"second"}}`},
		{`{"create":{}}`, `{"error":{"type":"E","message":"m"},"error.code":5}`, `"ERROR","error":{"type":"E","message":"m"},"attrs":{"error.code":5}}`},
		{`{"create":{}}`, `{"error.type":"E","a":1,"error.message":"m","error":"late"}`,
			`"ERROR","error":{"type":"E","message":"m"},"attrs":{"a":1,"error":"late"}}`},
		{`{"create":{}}`, `{"fields":{"a":1},"labels":{"b":2},"\u0062":3}`, `"INFO","attrs":{"a":1,"labels":{"b":2},"b":3}}`},
		{`{"create":{}}`, `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"m","attrs":{"k":[1, 2]}}`, `"INFO","msg":"m","attrs":{"k":[1,2]}}`},
		{`{"create":{}}`, `{"time":"2026-05-28T12:40:01Z"}`, `"INFO","attrs":{"time":"2026-05-28T12:40:01Z"}}`},
	} {
		s, h := newServer(t, normalize.Limits{})
		doc := strings.Replace(tt.doc, "{", `{"@timestamp":"2026-05-28T12:40:00Z",`, 1)
		doc = strings.Replace(doc, ",}", "}", 1)
		rec := decodetest.Send(h, "/_bulk", tt.action+"\n"+doc)
		if rec.Code != 200 || len(s.Lines) != 1 || s.Lines[0] != stamp+tt.want {
			t.Errorf("%s\n%s\n got %q\nwant %s\n%s", tt.action, doc, s.Lines, stamp+tt.want, rec.Body)
		}
	}
}

func TestItems(t *testing.T) {
	s, h := newServer(t, normalize.Limits{MaxEventBytes: 200, MaxRejections: 3})
	body := `{"index":{"_id":"a"}}` + "\n" + `{"message":"one"}` + "\n" +
		`{"delete":{"_id":"b"}}` + "\n" +
		`{"update":{"_id":"c","_index":"other"}}` + "\n" + `{"doc":{}}` + "\n\n" +
		`{"create":{}}` + "\r\n" + `{"message":` + "\r\n" +
		`{"create":{}}` + "\n" + `[]` + "\n" +
		`{"create":{"_id":5}}` + "\n" + `{"message":"` + strings.Repeat("x", 300) + `"}` + "\n" +
		`{"create":{}}` + "\n" + "5\n" +
		`{"create":{}}` + "\n" + `{"message":"two"}` + "\n" +
		`{"create":{}}`
	rec := decodetest.Send(h, "/logs-\"x\"/_bulk", body)
	var got struct {
		Took   *int
		Errors bool
		Items  []map[string]struct {
			Index  string `json:"_index"`
			ID     string `json:"_id"`
			SeqNo  int    `json:"_seq_no"`
			Result string
			Status int
			Error  struct{ Type, Reason string }
		}
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != 200 {
		t.Fatal(rec.Code, err, rec.Body)
	}
	var b strings.Builder
	for _, item := range got.Items {
		for op, it := range item {
			fmt.Fprintf(&b, "%s %s %q %d %d %s %s: %s\n", op, it.Index, it.ID, it.Status, it.SeqNo, it.Result, it.Error.Type, it.Error.Reason)
		}
	}
	want := `index logs-"x" "a" 201 0 created : 
delete logs-"x" "b" 400 0  document_parsing_exception: lines are only added: a deletion is not possible
update other "c" 400 0  document_parsing_exception: lines are only added: an update is not possible
create logs-"x" "" 400 0  document_parsing_exception: failed to parse line 8: the text ends inside a value
create logs-"x" "" 400 0  document_parsing_exception: the item cannot be stored as it is
create logs-"x" "5" 400 0  document_parsing_exception: the item cannot be stored as it is
create logs-"x" "" 400 0  document_parsing_exception: the item cannot be stored as it is
create logs-"x" "1" 201 1 created : 
create logs-"x" "" 400 0  document_parsing_exception: the item cannot be stored as it is
`
	if b.String() != want || !got.Errors || got.Took == nil || len(s.Lines) != 2 {
		t.Errorf("errors %v, %q\n got %s\nwant %s", got.Errors, s.Lines, b.String(), want)
	}
	if !strings.Contains(s.Lines[0], `"attrs":{"_index":"logs-\"x\"","_id":"a"}`) {
		t.Error(s.Lines[0])
	}
	// Offsets go on with the next request.
	if rec := decodetest.Send(h, "/_bulk", `{"create":{"_id":-7}}`+"\n{}\n"+`{"create":{}}`+"\n{}\n"); rec.Code != 200 ||
		!strings.Contains(rec.Body.String(), `"_id":"-7","_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":2,`) ||
		!strings.Contains(rec.Body.String(), `"_id":"3",`) {
		t.Error(rec.Code, rec.Body)
	}
	// All rejected is no reason for another status.
	if rec := decodetest.Send(h, "/_bulk", "{\"delete\":{}}"); rec.Code != 200 || !strings.Contains(rec.Body.String(), `"errors":true,"items":[{"delete":{"_index":"","status":400,`) {
		t.Error(rec.Code, rec.Body)
	}
}

func TestRefusals(t *testing.T) {
	good := "{\"create\":{}}\n{}\n"
	long := strings.Repeat("i", 256)
	for _, tt := range []struct {
		path, body string
		code       int
		want       string
	}{
		{"/_bulk", "", 400, "request body is required"},
		{"/_bulk", "\n \n", 400, "request body is required"},
		{"/_bulk", good + "nonsense\n{}\n", 400, "malformed action/metadata line [3]"},
		{"/_bulk", good + "[]\n", 400, "expected an object"},
		{"/_bulk", "{}\n{}\n", 400, "expected one of create and index"},
		{"/_bulk", `{"upsert":{}}`, 400, `found \"upsert\"`},
		{"/_bulk", `{"create":5}`, 400, "expected an object after"},
		{"/_bulk", `{"create":{"_index":5}}`, 400, "_index is not a string"},
		{"/_bulk", `{"create":{"_index":"` + long + `"}}`, 400, "_index is not a string"},
		{"/_bulk", `{"create":{"_id":[]}}`, 400, "_id is neither"},
		{"/_bulk", "{\"create\":{\"_id\":\"\xff\"}}", 400, "UTF-8"},
		{"/" + long + "/_bulk", good, 400, "longer than 255"},
		{"/_bulk", strings.Repeat(good, 21), 413, "too many items"},
	} {
		s, h := newServer(t, normalize.Limits{MaxEvents: 10})
		rec := decodetest.Send(h, tt.path, tt.body)
		var answer struct {
			Status int
			Error  struct {
				Type, Reason string
				RootCause    []struct{ Type, Reason string } `json:"root_cause"`
			}
		}
		err := json.Unmarshal(rec.Body.Bytes(), &answer)
		if err != nil || rec.Code != tt.code || answer.Status != tt.code || len(s.Lines) > 0 || len(answer.Error.RootCause) != 1 ||
			!strings.Contains(rec.Body.String(), tt.want) || rec.Header().Get("X-Elastic-Product") != "Elasticsearch" {
			t.Errorf("%.60q: %d %s, %v, %q", tt.body, rec.Code, rec.Body, err, s.Lines)
		}
	}
}

func TestTooMany(t *testing.T) {
	s, h := newServer(t, normalize.Limits{MaxEvents: 2})
	rec := decodetest.Send(h, "/_bulk", strings.Repeat("{\"create\":{}}\n{}\n", 3))
	if rec.Code != 200 || len(s.Lines) != 2 || strings.Count(rec.Body.String(), `"status":201`) != 2 || strings.Count(rec.Body.String(), `"status":429`) != 1 {
		t.Error(rec.Code, rec.Body, s.Lines)
	}
}

// Fluent Bit has room for 512,000 bytes of an answer, its header included, and would
// send all again. A success among what it reads tells it not to.
func TestAnswersToFluentBitAreShort(t *testing.T) {
	for agent, most := range map[string]int{"Fluent-Bit": 300_000, "aws-fluent-bit-plugin": 300_000, "Go-http-client/1.1": 2_000_000} {
		for _, last := range []string{"{}", "[]"} {
			_, h := newServer(t, normalize.Limits{})
			rec := decodetest.Send(h, "/_bulk", strings.Repeat("{\"create\":{}}\n{}\n", 3000)+"{\"create\":{}}\n"+last+"\n", "User-Agent", agent)
			var answer struct {
				Errors bool
				Items  []map[string]struct{ Status int }
			}
			err := json.Unmarshal(rec.Body.Bytes(), &answer)
			if err != nil || rec.Body.Len() > most || answer.Errors != (last == "[]") || answer.Items[0]["create"].Status != 201 || agent[0] == 'G' && len(answer.Items) != 3001 {
				t.Errorf("%s: %v, %d bytes, errors %v, %d items", agent, err, rec.Body.Len(), answer.Errors, len(answer.Items))
			}
		}
	}
}

func TestFull(t *testing.T) {
	for err, code := range map[error]int{receiver.ErrFull: 503, os.ErrClosed: 503, errors.New("broken"): 500} {
		s, h := newServer(t, normalize.Limits{})
		s.Fail = err
		rec := decodetest.Send(h, "/_bulk", "{\"create\":{}}\n{}\n")
		if rec.Code != code || (rec.Header().Get("Retry-After") != "") != (code == 503) || !strings.Contains(rec.Body.String(), fmt.Sprintf(`"status":%d`, code)) {
			t.Errorf("%v: %d %v %s", err, rec.Code, rec.Header(), rec.Body)
		}
	}
}

func TestVendorTypes(t *testing.T) {
	_, h := newServer(t, normalize.Limits{})
	for accept, want := range map[string]string{
		"application/vnd.elasticsearch+json; compatible-with=9":            "application/vnd.elasticsearch+json;compatible-with=9",
		"application/vnd.elasticsearch+json;compatible-with=8":             "application/vnd.elasticsearch+json;compatible-with=8",
		"application/vnd.elasticsearch+json; compatible-with=8,text/plain": "application/vnd.elasticsearch+json;compatible-with=8",
		"application/json": "application/json",
	} {
		if got := decodetest.Send(h, "/_bulk", "{\"create\":{}}\n{}", "Accept", accept).Header().Get("Content-Type"); got != want {
			t.Errorf("%s: %s", accept, got)
		}
	}
}

func TestHandshake(t *testing.T) {
	h := Handshake(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "unknown", 404) }))
	for _, tt := range []struct {
		method, path, agent, want string // want "": not answered here
	}{
		{"GET", "/", "elasticsearch-py/9", `"number":"8.17.0"`},
		{"GET", "/", "Mozilla", ""},
		{"GET", "/elastic/", "Mozilla", `"tagline":"You Know, for Search"`},
		{"GET", "/elastic", "", `"tagline"`},
		{"GET", "/elasticity", "", ""},
		{"GET", "/_license", "", `"type":"basic"`},
		{"GET", "/elastic/_xpack", "", `"ilm":{"available":false`},
		{"GET", "/_cluster/health/logs", "", `"status":"green"`},
		{"GET", "/_cluster/settings", "", ""},
		{"GET", "/_nodes/http", "", `"publish_address":"example.com"`},
		{"PUT", "/_index_template/logs", "", `{"acknowledged":true}`},
		{"GET", "/_ilm/policy/logs", "", `{}`},
		{"POST", "/logs/_refresh", "", `"failed":0`},
		{"GET", "/_refresh", "", `"failed":0`},
		{"PUT", "/logs", "go-elasticsearch/8", `"index":"logs"`},
		{"PUT", "/logs", "curl", ""},
		{"GET", "/logs/_search", "elastic", ""},
		{"DELETE", "/_ilm/policy/logs", "", ""},
		{"GET", "/_cat", "elastic", ""},
	} {
		req := httptest.NewRequest(tt.method, tt.path, nil)
		req.Header.Set("User-Agent", tt.agent)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if tt.want == "" {
			if rec.Code != 404 {
				t.Errorf("%s %s: %s", tt.method, tt.path, rec.Body)
			}
		} else if rec.Code != 200 || !strings.Contains(rec.Body.String(), tt.want) || rec.Header().Get("X-Elastic-Product") == "" {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, rec.Code, rec.Body)
		}
	}
	req := httptest.NewRequest("HEAD", "/logs", nil)
	req.Header.Set("Accept", "application/vnd.elasticsearch+json; compatible-with=8")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	if rec.Code != 200 || rec.Body.Len() > 0 || rec.Header().Get("Content-Type") != vendorTypes[8][0] {
		t.Error(rec.Code, rec.Header(), rec.Body)
	}
}

const everyCase = `{"index":{"_index":"logs","_id":"a"}}
{"@timestamp":"2026-05-28T12:40:00Z","log":{"level":"info","origin":1},"service.name":"x","error.type":"E","error.message":"m","a\u0062":{"c":[1]},"fields":{"d":1}}
{"create":{}}
{"message":"plain","time":"2026-05-28T12:40:00.000000000Z"}
`

func TestNoAllocationPerItem(t *testing.T) {
	norm, batch := normalize.New(normalize.Limits{}), new(normalize.Batch)
	req := httptest.NewRequest("POST", "/_bulk", nil)
	var note []byte
	cost := func(items int) uint64 {
		body := []byte(strings.Repeat(everyCase, items/2))
		return testkit.Mallocs(func() {
			batch.Reset()
			var err error
			if note, err = decodetest.Decode(Bulk, norm, batch, req, body, note[:0]); err != nil || batch.Records != items {
				t.Fatal(err, batch.Records, batch.Rejected)
			}
		})
	}
	cost(2000)
	if few, many := cost(2), cost(2000); many > few+10 && !pool.Poisons { // such a pool allocates
		t.Errorf("2 items: %d allocations, 2000 items: %d", few, many)
	}
}

func BenchmarkDecode(b *testing.B) {
	body := strings.Repeat(`{"create":{}}`+"\n"+`{"@timestamp":"2026-05-28T12:40:00.000Z","log.level":"info","message":"payment taken","service.name":"payment-api","trace.id":"4bf92f3577b34da6a3ce929d0e0e4736","customer_id":"cus_123","amount":1299}`+"\n", 100)
	decodetest.Benchmark(b, Bulk, "application/json", body, 100)
}

// Items over the limit are answered as long as they are no more than those taken,
// and each keeps its action for when it is read again.
func TestItemsOverTheLimit(t *testing.T) {
	const item = "{\"create\":{\"_index\":\"i\"}}\n{\"message\":\"x\"}\n"
	for over, ok := range map[int]bool{3: true, 4: false} {
		batch := new(normalize.Batch)
		batch.KeepDeadLetters(1 << 20)
		_, err := decodetest.Decode(Bulk, normalize.New(normalize.Limits{MaxEvents: 3}), batch, httptest.NewRequest("POST", "/_bulk", nil), []byte(strings.Repeat(item, 3+over)), nil)
		if (err == nil) != ok {
			t.Errorf("%d items over a limit of 3: %v", over, err)
		}
		if list := batch.DeadLetters(); len(list) != 1 || list[0].Count != over {
			t.Errorf("dead letters of %d items: %+v", over, list)
		}
		if l := &batch.DeadLetters()[0]; string(batch.Text(l)) != `{"message":"x"}` || string(batch.Context(l)) != `{"_index":"i"}` {
			t.Errorf("the dead letter is %q with %q", batch.Text(l), batch.Context(l))
		}
	}
}

// FuzzDecode checks that all that was read is stored or rejected, that lines are
// JSON, and that the answer is and has an item for each.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(everyCase))
	f.Add([]byte("{\"delete\":{}}\n\n{\"index\":{\"_id\":-1}}"))
	decodetest.AddRecorded(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, limits := range decodetest.FuzzLimits() {
			norm, batch := normalize.New(limits), new(normalize.Batch)
			req := httptest.NewRequest("POST", "/x/_bulk", nil)
			req.SetPathValue("index", "x")
			note, err := decodetest.Decode(Bulk, norm, batch, req, bytes.Clone(body), nil)
			decodetest.CheckLines(t, batch)
			if err != nil {
				if len(note) > 0 {
					t.Fatalf("%v, and a note %q", err, note)
				}
				continue
			}
			a := receiver.Answer{HTTP: req, Code: 200, Batch: batch, Stored: batch.Records, Note: note, Header: http.Header{}}
			Bulk.Answer(&a)
			var answer struct {
				Errors bool
				Items  []map[string]struct{ Status int }
			}
			if err := json.Unmarshal(a.Body, &answer); err != nil {
				t.Fatalf("%v: %s", err, a.Body)
			}
			if len(answer.Items) != batch.Records+batch.RejectedTotal || answer.Errors != (batch.RejectedTotal > 0) {
				t.Fatalf("%d stored, %d rejected: %s", batch.Records, batch.RejectedTotal, a.Body)
			}
		}
	})
}
