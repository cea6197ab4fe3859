package remote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// An otlpPeer takes ExportLogsServiceRequests in JSON.
type otlpPeer struct {
	*httptest.Server
	answer func(record map[string]any) (refused string) // nil: all are taken

	mu      sync.Mutex
	records []map[string]any // with service and scope
	status  int              // 0: 200
	body    string
	digits  string // around the number of refused records
}

func startOTLPPeer(t testing.TB) *otlpPeer {
	p := &otlpPeer{digits: `"`}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { p.serve(t, rw, r) }))
	t.Cleanup(p.Close)
	return p
}

func (p *otlpPeer) url() string { return "otlp+" + p.URL }

func (p *otlpPeer) serve(t testing.TB, rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.URL.Path != "/v1/logs" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s with %s", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	var request struct {
		ResourceLogs []struct {
			Resource  struct{ Attributes []any }
			ScopeLogs []struct {
				Scope      struct{ Name string }
				LogRecords []map[string]any
			}
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Errorf("request %.300q: %v", body, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var taken []map[string]any
	refused, reason := 0, ""
	for _, resource := range request.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			for _, record := range scope.LogRecords {
				record["resource"], record["scope"] = plainValues(resource.Resource.Attributes), scope.Scope.Name
				record["line"] = lineOf(record)
				record["attributes"] = plainValues(record["attributes"].([]any))
				if text, ok := record["body"].(map[string]any); ok {
					record["body"] = plainValue(text)
				}
				if p.answer != nil {
					if why := p.answer(record); why != "" {
						refused, reason = refused+1, why
						continue
					}
				}
				taken = append(taken, record)
			}
		}
	}
	switch {
	case p.status != 0:
		rw.Header().Set("Retry-After", "7")
		rw.WriteHeader(p.status)
		io.WriteString(rw, p.body)
		return
	case refused > 0 && p.body != "": // the whole request
		rw.WriteHeader(400)
		io.WriteString(rw, p.body)
		return
	case refused > 0:
		fmt.Fprintf(rw, `{"partialSuccess":{"rejectedLogRecords":%s%d%s,"errorMessage":%q}}`, p.digits, refused, p.digits, reason)
	default:
		io.WriteString(rw, `{"partialSuccess":{}}`)
	}
	p.records = append(p.records, taken...)
}

// plainValues returns KeyValues as a map.
func plainValues(list []any) map[string]any {
	out := make(map[string]any)
	for _, kv := range list {
		kv := kv.(map[string]any)
		out[kv["key"].(string)] = plainValue(kv["value"].(map[string]any))
	}
	return out
}

// plainValue returns what encoding/json would make of the value.
func plainValue(v map[string]any) any {
	for kind, value := range v {
		switch kind {
		case "intValue":
			n, err := strconv.ParseInt(value.(string), 10, 64)
			if err != nil {
				panic(err)
			}
			return float64(n)
		case "kvlistValue":
			return plainValues(value.(map[string]any)["values"].([]any))
		case "arrayValue":
			list := []any{}
			for _, e := range value.(map[string]any)["values"].([]any) {
				list = append(list, plainValue(e.(map[string]any)))
			}
			return list
		default:
			return value
		}
	}
	return nil
}

// bytes returns the lines of the records.
func (p *otlpPeer) bytes() (all []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.records {
		all = fmt.Appendf(all, "%s\n", r["line"])
	}
	return all
}

// lineOf returns the line of a record. Others than those of tests would have lost more.
func lineOf(r map[string]any) string {
	text, _ := r["body"].(map[string]any)
	body := text["stringValue"]
	members := ""
	for _, kv := range r["attributes"].([]any) {
		kv := kv.(map[string]any)
		v, err := json.Marshal(plainValue(kv["value"].(map[string]any)))
		if err != nil {
			panic(err)
		}
		members += fmt.Sprintf(",%q:%s", kv["key"], v)
	}
	if members == "" {
		return fmt.Sprint(body)
	}
	front := ""
	if ns, ok := r["timeUnixNano"].(string); ok {
		n, err := strconv.ParseInt(ns, 10, 64)
		if err != nil {
			panic(err)
		}
		front = time.Unix(0, n).UTC().Format(`"time":"2006-01-02T15:04:05.000000000Z",`) + fmt.Sprintf(`"level":%q,`, r["severityText"])
	}
	return fmt.Sprintf(`{%s"msg":%q,"attrs":{%s}}`, front, body, members[1:])
}

func anyOTLP(t *testing.T) *anyPeer {
	p := &otlpPeer{digits: `"`}
	var mu sync.Mutex
	stored := map[string]bool{} // by key: what is answered too late comes again
	h := newHome(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		defer mu.Unlock()
		if key := r.Header.Get("Idempotency-Key"); stored[key] {
			io.WriteString(rw, `{}`)
		} else {
			stored[key] = key != ""
			p.serve(t, rw, r)
		}
	}))
	return &anyPeer{url: "otlp+http://" + h.addr, up: h.heal, down: h.down, stall: h.stall, lines: p.bytes}
}

func TestOTLPRecords(t *testing.T) {
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
	}))
	defer server.Close()
	w := open(t, "otlp+"+server.URL, remote.Options{DisableCompression: true, OTLP: remote.OTLP{Resource: map[string]string{"service.name": "shop", "deployment.environment.name": "te\"st"}}})
	write(t, w, `{"time":"2026-05-28T12:40:00.123456789Z","level":"WARN+1","msg":"sl\"ow","service":"pay","logger":"db","source":"db/pool.go:12","trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7ec3c1b174","error":"EOF","attrs":{"ms":812,"ratio":0.5,"ok":true,"none":null,"big":18446744073709551615,"list":["a",-2,[]],"map":{"k":{}}}}
{"time":"2026-05-28T12:40:01Z","level":"FATAL+9","msg":"same","service":"pay","logger":"db","trace_id":"5B8E","attrs":{"service":"inner"}}
{"time":"2026-05-28T12:40:02Z","level":"TRACE-9","service":7}
`)
	const head = `{"resource":{"attributes":[{"key":"deployment.environment.name","value":{"stringValue":"te\"st"}},{"key":"service.name","value":{"stringValue":"`
	want := `{"resourceLogs":[` + head + `pay"}}]},"scopeLogs":[{"scope":{"name":"db"},"logRecords":[` +
		`{"timeUnixNano":"1779972000123456789","severityNumber":14,"severityText":"WARN+1","body":{"stringValue":"sl\"ow"},"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","attributes":[` +
		`{"key":"source","value":{"stringValue":"db/pool.go:12"}},{"key":"exception.message","value":{"stringValue":"EOF"}},` +
		`{"key":"ms","value":{"intValue":"812"}},{"key":"ratio","value":{"doubleValue":0.5}},{"key":"ok","value":{"boolValue":true}},{"key":"none","value":{}},` +
		`{"key":"big","value":{"stringValue":"18446744073709551615"}},` +
		`{"key":"list","value":{"arrayValue":{"values":[{"stringValue":"a"},{"intValue":"-2"},{"arrayValue":{"values":[]}}]}}},` +
		`{"key":"map","value":{"kvlistValue":{"values":[{"key":"k","value":{"kvlistValue":{"values":[]}}}]}}}]},` +
		`{"timeUnixNano":"1779972001000000000","severityNumber":24,"severityText":"FATAL+9","body":{"stringValue":"same"},"attributes":[{"key":"trace_id","value":{"stringValue":"5B8E"}},{"key":"service","value":{"stringValue":"inner"}}]}]}]},` +
		head + `shop"}}]},"scopeLogs":[{"scope":{"name":""},"logRecords":[` +
		`{"timeUnixNano":"1779972002000000000","severityNumber":1,"severityText":"TRACE-9","attributes":[{"key":"service","value":{"intValue":"7"}}]}]}]}]}`
	if body != want {
		t.Errorf("the request is\n%s\nwant\n%s", body, want)
	}
	settled(t, w, 3, 3)
	begin := time.Now()
	write(t, w, "panic: \"oh\"\n")
	var text struct {
		ResourceLogs [1]struct {
			ScopeLogs [1]struct {
				LogRecords [1]struct {
					ObservedTimeUnixNano string
					Body                 struct{ StringValue string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &text); err != nil {
		t.Fatal(err)
	}
	r := text.ResourceLogs[0].ScopeLogs[0].LogRecords[0]
	at, _ := strconv.ParseInt(r.ObservedTimeUnixNano, 10, 64)
	if r.Body.StringValue != `panic: "oh"` || at < begin.UnixNano() || at > time.Now().UnixNano() {
		t.Errorf("the record of a text is %+v", r)
	}
}

// TestOTLPValues compares random attributes with what encoding/json makes of them.
func TestOTLPValues(t *testing.T) {
	peer := startOTLPPeer(t)
	w := open(t, peer.url(), remote.Options{})
	random := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) any
	value = func(depth int) any {
		switch n := random.IntN(9); {
		case n == 0 && depth < 30:
			list := []any{}
			for range random.IntN(4) {
				list = append(list, value(depth+1))
			}
			return list
		case n < 3 && depth < 30:
			m := map[string]any{}
			for range random.IntN(4) {
				m[string(rune(random.IntN(0x3000)))+"\\\""] = value(depth + 1)
			}
			return m
		case n == 3:
			return nil
		case n == 4:
			return random.IntN(2) == 0
		case n == 5:
			return float64(random.IntN(1 << 40))
		case n == 6:
			return random.NormFloat64() * 1e300
		}
		return string(rune(random.IntN(0x3000))) + "\n\u2028é"
	}
	for range 300 {
		want := map[string]any{"a": value(0), "é\"": value(0), "service": value(0)}
		line, err := json.Marshal(map[string]any{"msg": "m", "attrs": want})
		if err != nil {
			t.Fatal(err)
		}
		write(t, w, string(line)+"\n")
		got := peer.records[len(peer.records)-1]
		if !reflect.DeepEqual(got["attributes"], want) || got["body"] != "m" {
			t.Fatalf("%s\nbecame %v\nwant   %v", line, got["attributes"], want)
		}
	}
	deep := strings.Repeat(`{"k":[`, 40) + "1" + strings.Repeat("]}", 40)
	write(t, w, `{"attrs":{"v":`+deep+`}}`+"\n")
	got := peer.records[len(peer.records)-1]["attributes"].(map[string]any)["v"]
	for range 10 {
		got = got.(map[string]any)["k"].([]any)[0]
	}
	if got != strings.Repeat(`{"k":[`, 30)+"1"+strings.Repeat("]}", 30) {
		t.Errorf("a value at depth 20 is %v", got)
	}
}

func TestOTLPPartialSuccess(t *testing.T) {
	for _, digits := range []string{`"`, ""} {
		peer := startOTLPPeer(t)
		peer.digits = digits
		peer.answer = func(r map[string]any) string {
			if r["attributes"].(map[string]any)["seq"] == 1.0 {
				return "too old"
			}
			return ""
		}
		var told []error
		w := open(t, peer.url(), remote.Options{OnError: func(err error) { told = append(told, err) }})
		write(t, w, numbered(0, 3))
		settled(t, w, 3, 2)
		if d := w.Stats().Dropped; d != (line.Drops{Refused: 1}) {
			t.Errorf("Dropped = %+v", d)
		}
		w.Close()
		w.Told()
		if len(told) != 1 || !strings.Contains(told[0].Error(), "too old") {
			t.Errorf("OnError was told %v", told)
		}
		if got := string(peer.bytes()); got != numbered(0, 1)+numbered(2, 3) {
			t.Errorf("the peer has %s", got)
		}
	}
}

// TestOTLPStatuses: a peer that is away or set up wrongly keeps all lines, one that refuses
// a request for a line loses only that.
func TestOTLPStatuses(t *testing.T) {
	for _, code := range []int{401, 404, 415, 429, 500, 502, 503, 504} {
		peer := startOTLPPeer(t)
		peer.status, peer.body = code, `{"code":14,"message":"because"}`
		w := open(t, peer.url(), remote.Options{})
		wantWait(t, w, 0)
		settled(t, w, 0, 0)
		_, err := w.Write([]byte(numbered(0, 3)))
		if want := map[int]string{404: "/v1/logs", 415: "JSON"}[code]; !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "because") {
			t.Errorf("%d: the error is %v", code, err)
		}
		peer.status = 0
		write(t, w, numbered(0, 3))
		settled(t, w, 3, 3)
	}
	peer := startOTLPPeer(t)
	peer.body = `{"code":3,"message":"no such value"}`
	w := open(t, peer.url(), remote.Options{OnError: func(error) {}})
	write(t, w, numbered(0, 1))
	peer.answer = func(r map[string]any) string {
		if r["attributes"].(map[string]any)["seq"] == 4.0 {
			return "poison"
		}
		return ""
	}
	write(t, w, numbered(1, 9))
	if d := w.Stats().Dropped; d != (line.Drops{Refused: 1}) {
		t.Errorf("Dropped = %+v", d)
	}
	if got := string(peer.bytes()); got != numbered(0, 4)+numbered(5, 9) {
		t.Errorf("the peer has %s", got)
	}
}
