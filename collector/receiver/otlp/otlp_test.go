package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/internal/testkit"
)

// oneRecord is a request in JSON of one record with these members.
func oneRecord(members string) string {
	return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{` + members + `}]}]}]}`
}

const before = `{"time":"2026-05-28T20:26:40.000000005Z",` // as received

func TestJSON(t *testing.T) {
	const trace, span = "0102030405060708090a0b0c0d0e0f10", "0102030405060708"
	inBase64 := func(s string) string {
		b, _ := hex.DecodeString(s)
		return base64.StdEncoding.EncodeToString(b)
	}
	text := func(key, v string) string { return `{"key":"` + key + `","value":{"stringValue":"` + v + `"}}` }
	for _, tt := range []struct{ name, members, want string }{
		{"nothing", ``, before + `"level":"INFO"}`},
		{"time as a string", `"timeUnixNano":"1779972000000000001"`, `{"time":"2026-05-28T12:40:00.000000001Z","level":"INFO"}`},
		{"time as a number", `"timeUnixNano":1779972000000000001`, `{"time":"2026-05-28T12:40:00.000000001Z","level":"INFO"}`},
		{"underscores", `"time_unix_nano":"1779972000000000001","severity_text":"warn","trace_id":"` + trace + `"`, `{"time":"2026-05-28T12:40:00.000000001Z","level":"WARN","trace_id":"` + trace + `"}`},
		{"other spellings are other members", `"timeunixnano":"1","severity_Text":"warn","_flags":1,"severity__text":"warn","severity":"warn"`, before + `"level":"INFO"}`},
		{"counts as strings", `"flags":"1","droppedAttributesCount":"2"`, before + `"level":"INFO","attrs":{"flags":1,"dropped_attributes_count":2}}`},
		{"severity by name", `"severityNumber":"SEVERITY_NUMBER_WARN3"`, before + `"level":"WARN+2"}`},
		{"not a severity", `"severityNumber":77,"severityText":"error"`, before + `"level":"ERROR","attrs":{"severity_number":77}}`},
		{"severity text that says the same", `"severityNumber":9,"severityText":"Information"`, before + `"level":"INFO"}`},
		{"severity text that says something else", `"severityNumber":9,"severityText":"Error"`, before + `"level":"INFO","attrs":{"severity_text":"Error"}}`},
		{"ids in hexadecimal", `"traceId":"` + strings.ToUpper(trace) + `","spanId":"` + span + `"`, before + `"level":"INFO","trace_id":"` + trace + `","span_id":"` + span + `"}`},
		{"ids in base64", `"traceId":"` + inBase64(trace) + `","spanId":"` + inBase64(span) + `"`, before + `"level":"INFO","trace_id":"` + trace + `","span_id":"` + span + `"}`},
		{"ids of another kind", `"traceId":"req-7","spanId":"exactly8"`, before + `"level":"INFO","trace_id":"req-7","span_id":"exactly8"}`},
		{"no ids", `"traceId":"","spanId":"0000000000000000"`, before + `"level":"INFO"}`},
		{"body", `"body":{"stringValue":"a\u0062\n\ud83d\ude00"}`, before + `"level":"INFO","msg":"ab\n😀"}`},
		{"body of a number", `"body":{"intValue":"7"}`, before + `"level":"INFO","msg":"7"}`},
		{"body that is not a number", `"body":{"doubleValue":"NaN"}`, before + `"level":"INFO","msg":"NaN"}`},
		{"body of an object", `"body":{"kvlistValue":{"values":[{"key":"a","value":{"intValue":1}},{"key":"b","value":{"arrayValue":{}}},{"key":"c","value":{"kvlistValue":{"values":[{"key":"level","value":{}}]}}}]}}`,
			before + `"level":"INFO","attrs":{"a":1,"b":[],"c":{"level":null}}}`},
		{"body that is a record", `"body":{"kvlistValue":{"values":[` + text("severity", "error") + `,` + text("log", "it failed") + `,` + text("trace_id", trace) + `,` + text("service", "cart") + `,` + text("time", "2026-05-28T12:40:01Z") + `]}}`,
			`{"time":"2026-05-28T12:40:01.000000000Z","level":"ERROR","msg":"it failed","service":"cart","trace_id":"` + trace + `"}`},
		{"body that is a record, and what the protocol says", `"timeUnixNano":"1779972000000000001","severityNumber":13,"traceId":"` + trace + `","attributes":[` + text("a", "1") + `],` +
			`"body":{"kvlistValue":{"values":[` + text("level", "error") + `,` + text("msg", "it failed") + `,` + text("traceId", "other") + `,` + text("time", "2026-05-28T12:40:01Z") + `,` + text("a", "2") + `]}}`,
			`{"time":"2026-05-28T12:40:00.000000001Z","level":"WARN","msg":"it failed","trace_id":"` + trace + `","attrs":{"a":"1","level":"error","traceId":"other","time":"2026-05-28T12:40:01Z","a_2":"2"}}`},
		{"body that is an empty object", `"body":{"kvlistValue":{}}`, before + `"level":"INFO"}`},
		{"unknown members and null", `"x":[{"y":1}],"body":null,"attributes":null,"flags":1`, before + `"level":"INFO","attrs":{"flags":1}}`},
		{"names that are slots", `"attributes":[{"key":"msg","value":{"stringValue":"x"}},{"key":"level","value":{"boolValue":true}}]`, before + `"level":"INFO","attrs":{"msg":"x","level":true}}`},
		{"equal names", `"attributes":[{"key":"a","value":{"intValue":"1"}},{"key":"a"}]`, before + `"level":"INFO","attrs":{"a":1,"a_2":null}}`},
		{"bytes", `"attributes":[{"key":"a","value":{"bytesValue":"AQI"}},{"key":"b","value":{"bytesValue":"-_8="}}]`, before + `"level":"INFO","attrs":{"a":"AQI=","b":"+/8="}}`},
		{"not UTF-8", "\"body\":{\"stringValue\":\"a\xff\"}", before + `"level":"INFO","msg":"a\ufffd"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines, _ := decode(t, inJSON, oneRecord(tt.members))
			if want := strings.ReplaceAll(tt.want, `\ufffd`, "\uFFFD"); len(lines) != 1 || lines[0] != want {
				t.Errorf("got  %s\nwant %s", lines, want)
			}
		})
	}
	// What is shared may come after what shares it.
	lines, _ := decode(t, inJSON, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}],"scope":{"name":"n","version":"v"}}],"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},{"key":"host.name","value":{"stringValue":"h"}}]}}]}`)
	if want := before + `"level":"INFO","service":"shop","logger":"n","attrs":{"scope.version":"v","host":"h"}}`; lines[0] != want {
		t.Errorf("got  %s\nwant %s", lines[0], want)
	}
}

func TestBadBodies(t *testing.T) {
	logs := plog.NewLogs()
	logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("some text")
	whole, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string][2]string{
		"JSON cut off":          {inJSON, oneRecord("")[:30]},
		"nothing as JSON":       {inJSON, ""},
		"an array":              {inJSON, "[]"},
		"more behind":           {inJSON, "{}{}"},
		"not a list":            {inJSON, `{"resourceLogs":{}}`},
		"a message that is one": {inJSON, `{"resourceLogs":[[]]}`},
		"not a time":            {inJSON, oneRecord(`"timeUnixNano":"soon"`)},
		"a negative time":       {inJSON, oneRecord(`"timeUnixNano":-1`)},
		"not a text":            {inJSON, oneRecord(`"severityText":7`)},
		"an integer too large":  {inJSON, oneRecord(`"body":{"intValue":"9223372036854775808"}`)},
		"not base64":            {inJSON, oneRecord(`"body":{"bytesValue":"!"}`)},
		"text as protobuf":      {inProtobuf, "hello"},
	}
	for cut := 1; cut < len(whole); cut++ {
		bad["protobuf cut at "+string(rune('a'+cut))] = [2]string{inProtobuf, string(whole[:cut])}
	}
	for name, c := range bad {
		s := newServer(t, nil)
		code, header, body := s.post(c[0], c[1])
		if code != 400 || header.Get("Content-Type") != c[0] {
			t.Errorf("%s: %d %s %q", name, code, header.Get("Content-Type"), body)
			continue
		}
		status := readStatus(t, c[0], body)
		if status.Code != codeInvalidArgument || !strings.Contains(status.Message, "not a valid ExportLogsServiceRequest") || !strings.Contains(status.Message, "nothing was stored") {
			t.Errorf("%s: %v", name, status)
		}
		if len(s.Lines) > 0 {
			t.Errorf("%s: stored %q", name, s.Lines)
		}
	}
}

// server has the protocol.
type server struct {
	*decodetest.Server
	handler http.Handler
}

func newServer(t testing.TB, change func(*receiver.Options)) server {
	s := decodetest.NewServer(t, change)
	return server{s, s.Handler(Protocol)}
}

func (s server) post(contentType, body string, header ...string) (int, http.Header, []byte) {
	if contentType != "" {
		header = append(header, "Content-Type", contentType)
	}
	res := decodetest.Send(s.handler, "/v1/logs", body, header...)
	return res.Code, res.Header(), res.Body.Bytes()
}

func readStatus(t testing.TB, contentType string, body []byte) *statuspb.Status {
	t.Helper()
	s := new(statuspb.Status)
	err := proto.Unmarshal(body, s)
	if contentType == inJSON {
		err = protojson.Unmarshal(body, s)
	}
	if err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	return s
}

// bodies returns records in both forms.
func bodies(t testing.TB, texts ...string) map[string]string {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, text := range texts {
		records.AppendEmpty().Body().SetStr(text)
	}
	p, err1 := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
	j, err2 := (&plog.JSONMarshaler{}).MarshalLogs(logs)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return map[string]string{inProtobuf: string(p), inJSON: string(j)}
}

// TestAnswers has the answers read by the OpenTelemetry Collector's library.
func TestAnswers(t *testing.T) {
	for form, body := range bodies(t, "good", strings.Repeat("too long ", 100), "good too") {
		s := newServer(t, func(o *receiver.Options) { o.Limits.MaxEventBytes = 500; o.MaxBody = 10_000 })
		code, header, answer := s.post(form, body)
		res := plogotlp.NewExportResponse()
		unmarshal := res.UnmarshalProto
		if form == inJSON {
			unmarshal = res.UnmarshalJSON
		}
		if err := unmarshal(answer); code != 200 || header.Get("Content-Type") != form || err != nil {
			t.Fatalf("%s: %d %q, %v", form, code, answer, err)
		}
		if p := res.PartialSuccess(); p.RejectedLogRecords() != 1 || p.ErrorMessage() != "event 1 is larger than 500 bytes as a canonical line" || len(s.Lines) != 2 {
			t.Errorf("%s: %d %q, stored %q", form, p.RejectedLogRecords(), p.ErrorMessage(), s.Lines)
		}
		code, _, answer = s.post(form, bodies(t, "good")[form])
		res = plogotlp.NewExportResponse()
		unmarshal = res.UnmarshalProto
		if form == inJSON {
			unmarshal = res.UnmarshalJSON
		}
		if err := unmarshal(answer); code != 200 || err != nil || res.PartialSuccess().RejectedLogRecords() != 0 || res.PartialSuccess().ErrorMessage() != "" {
			t.Errorf("%s: %d %q %v", form, code, answer, err)
		}
		for _, c := range []struct {
			name, body string
			fail       error
			header     []string
			code       int
			status     int32
		}{
			{"all rejected", bodies(t, strings.Repeat("too long ", 100))[form], nil, nil, 400, codeInvalidArgument},
			{"too large", strings.Repeat("x", 10_001), nil, nil, 413, codeResourceExhausted},
			{"unknown coding", body, nil, []string{"Content-Encoding", "compress"}, 415, codeUnimplemented},
			{"full", body, receiver.ErrFull, nil, 503, codeUnavailable},
			{"stopping", body, os.ErrClosed, nil, 503, codeUnavailable},
			{"disk fails", body, io.ErrShortWrite, nil, 503, codeUnavailable},
			{"a page of another origin", body, nil, []string{"Origin", "http://evil.example"}, 403, codePermissionDenied},
		} {
			s.Fail = c.fail
			code, header, answer := s.post(form, c.body, c.header...)
			status := readStatus(t, form, answer)
			if code != c.code || status.Code != c.status || status.Message == "" || (code == 503) != (header.Get("Retry-After") == "1") {
				t.Errorf("%s, %s: %d %v", form, c.name, code, status)
			}
		}
		s.Fail = nil
	}
	// No records are no error.
	s := newServer(t, nil)
	for form, body := range map[string]string{inProtobuf: "", inJSON: "{}"} {
		if code, _, answer := s.post(form, body); code != 200 || strings.Trim(string(answer), "{}") != "" {
			t.Errorf("no records as %s: %d %q", form, code, answer)
		}
	}
}

func TestFormIsSniffed(t *testing.T) {
	both := bodies(t, "hello")
	for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
		for form, body := range both {
			s := newServer(t, nil)
			code, header, answer := s.post(contentType, body)
			if code != 200 || len(s.Lines) != 1 || header.Get("Content-Type") != form {
				t.Errorf("%q with %q: %d %q, %q", body, contentType, code, answer, s.Lines)
			}
		}
	}
	s := newServer(t, nil)
	if code, _, _ := s.post("", "\n\t"+both[inJSON]); code != 200 || len(s.Lines) != 1 {
		t.Error("JSON behind white space is not found out")
	}
	// A request whose first message is 123 bytes long: its second byte is '{'.
	long := bodies(t, strings.Repeat("x", 123-16))[inProtobuf]
	if long[1] != '{' {
		t.Fatalf("the body begins with %q", long[:12])
	}
	if code, _, _ := s.post("", long); code != 200 || len(s.Lines) != 2 {
		t.Error("protocol buffers that look like white space and a brace are taken for JSON")
	}
	if code, _, _ := s.post("application/json; charset=utf-8", both[inJSON]); code != 200 {
		t.Error("a charset confuses it")
	}
}

// TestSharedAttributesAreBounded has one large resource for many small records,
// whose lines would be far larger than the request.
func TestSharedAttributesAreBounded(t *testing.T) {
	s := newServer(t, func(o *receiver.Options) { o.MaxUnpacked = 1 << 20; o.InFlight = 4 << 20 })
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("large", strings.Repeat("x", 100_000))
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for range 10 {
		records.AppendEmpty()
	}
	send := func() (int, string) {
		body, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
		if err != nil {
			t.Fatal(err)
		}
		code, _, answer := s.post(inProtobuf, string(body))
		return code, string(answer)
	}
	if code, answer := send(); code != 200 || len(s.Lines) != 10 {
		t.Fatalf("%d %q", code, answer)
	}
	for range 100 {
		records.AppendEmpty()
	}
	if code, answer := send(); code != 413 || !strings.Contains(answer, "share") {
		t.Fatalf("%d %q", code, answer)
	}
	if len(s.Lines) != 10 {
		t.Errorf("%d lines", len(s.Lines))
	}
}

// TestDepth nests an event deeper than it may be, and far deeper.
func TestDepth(t *testing.T) {
	for _, depth := range []int{5, 100, 3000} {
		open := strings.Repeat(`{"arrayValue":{"values":[`, depth)
		body := strings.Replace(oneRecord(`"body":`+open+strings.Repeat(`]}}`, depth)), `"logRecords":[`, `"logRecords":[{},`, 1)
		lines, b := decode(t, inJSON, body)
		if rejected := b.RejectedFor(normalize.ReasonTooDeep); len(lines) != 2-rejected || (depth > 64) != (rejected == 1) {
			t.Errorf("depth %d: %.200q, %+v", depth, lines, b.Rejected)
		}
	}
}

// TestNoAllocationPerEvent compares requests of few and of many records.
func TestNoAllocationPerEvent(t *testing.T) {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "shop")
	rl.Resource().Attributes().PutStr("host.name", "web-1")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("checkout")
	fill := func(n int) {
		for range n {
			lr := sl.LogRecords().AppendEmpty()
			lr.SetTimestamp(1_780_000_000_000_000_000)
			lr.SetObservedTimestamp(1_780_000_000_000_000_001)
			lr.SetSeverityNumber(9)
			lr.SetSeverityText("Info")
			lr.Body().SetStr("charged a\ncustomer")
			lr.SetTraceID([16]byte{1})
			lr.SetSpanID([8]byte{2})
			lr.Attributes().PutInt("n", 7)
			lr.Attributes().PutDouble("d", 1.5)
			lr.Attributes().PutEmptySlice("list").AppendEmpty().SetBool(true)
			lr.Attributes().PutEmptyMap("map").PutStr("k", "v")
			lr.Attributes().PutEmptyBytes("bytes").FromRaw([]byte{1, 2, 3})
		}
	}
	form := func() map[string]string {
		p, _ := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
		j, _ := (&plog.JSONMarshaler{}).MarshalLogs(logs)
		return map[string]string{inProtobuf: string(p), inJSON: string(j)}
	}
	fill(100)
	few := form()
	fill(900)
	many := form()
	for _, kind := range []string{inProtobuf, inJSON} {
		allocs := map[int]uint64{}
		for want, body := range map[int]string{100: few[kind], 1000: many[kind]} {
			req := httptest.NewRequest("POST", "/v1/logs", nil)
			req.Header.Set("Content-Type", kind)
			b, norm := new(normalize.Batch), normalize.New(normalize.Limits{})
			q := &receiver.Request{HTTP: req, Body: []byte(body), Received: received, Norm: norm, Batch: b, Note: make([]byte, 0, 64)}
			allocs[want] = testkit.Mallocs(func() {
				b.Reset()
				q.Note = q.Note[:0]
				if err := Protocol.Decode(q); err != nil || b.Records != want {
					t.Fatal(err, b.Records)
				}
			})
		}
		if allocs[1000] != allocs[100] && !pool.Poisons { // such a pool allocates
			t.Errorf("%s: %d allocations for 100 events, %d for 1000", kind, allocs[100], allocs[1000])
		}
	}
}

// FuzzDecode takes any body in either form: what comes out are whole lines of
// valid JSON, and where pdata reads the body as well, as many as it has records.
func FuzzDecode(f *testing.F) {
	for form, body := range bodies(f, "a", "b\n", "") {
		f.Add([]byte(body), form == inJSON)
	}
	f.Add([]byte(oneRecord(`"attributes":[{"key":"a","value":{"kvlistValue":{"values":[{"key":"b","value":{"bytesValue":"AQI="}}]}}}],"traceId":"x"`)), true)
	f.Fuzz(func(t *testing.T, body []byte, asJSON bool) {
		form := inProtobuf
		if asJSON {
			form = inJSON
		}
		req := httptest.NewRequest("POST", "/v1/logs", nil)
		req.Header.Set("Content-Type", form)
		b := new(normalize.Batch)
		q := &receiver.Request{HTTP: req, Body: body, Received: received, Norm: normalize.New(normalize.Limits{MaxDepth: 10}), Batch: b}
		if err := Protocol.Decode(q); err != nil {
			return
		}
		decodetest.CheckLines(t, b)
		if asJSON {
			return // pdata takes other liberties with JSON
		}
		if logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(body); err == nil && logs.LogRecordCount() != b.Records+b.RejectedTotal {
			t.Fatalf("%d events of %d records in %q", b.Records+b.RejectedTotal, logs.LogRecordCount(), body)
		}
	})
}

// TestJSONRepeats: of members that occur twice nothing is lost without a word, but of
// those that protocol buffers too would take the last of.
func TestJSONRepeats(t *testing.T) {
	text := `{"stringValue":"x"}`
	for _, pair := range []string{
		`{"key":"a","key":"b","value":` + text + `}`,
		`{"key":"a","value":` + text + `,"value":` + text + `}`,
		`{"value":` + text + `,"key":"a","key":"b"}`,
		`{"value":` + text + `,"value":` + text + `,"key":"a"}`,
	} {
		code, _, body := newServer(t, nil).post(inJSON, oneRecord(`"attributes":[`+pair+`]`))
		if code != 400 || !strings.Contains(string(body), "one key and one value") {
			t.Errorf("%s: %d %s", pair, code, body)
		}
	}
	body := oneRecord(`"body":{"stringValue":"x","intValue":7}`)
	code, _, answer := newServer(t, nil).post(inJSON, body)
	if at := fmt.Sprintf("at offset %d: an AnyValue has one value", strings.IndexByte(body, '7')); code != 400 || !strings.Contains(string(answer), at) {
		t.Errorf("two values: %d %s, want %q", code, answer, at)
	}
	service := func(name string) string {
		return `"attributes":[{"key":"service.name","value":{"stringValue":"` + name + `"}}]`
	}
	s := newServer(t, nil)
	s.post(inJSON, `{"resourceLogs":[{"resource":{`+service("a")+`,`+service("b")+`},"scopeLogs":[{"logRecords":[{}]}]}]}`)
	if len(s.Lines) != 1 || !strings.Contains(s.Lines[0], `"service":"a"`) || !strings.Contains(s.Lines[0], `"service.name":"b"`) {
		t.Errorf("two lists of attributes: %s", s.Lines)
	}
}

// TestReaderKeepsNothing: a reader in the pool does not keep a request in memory.
func TestReaderKeepsNothing(t *testing.T) {
	for form, body := range bodies(t, "a", "b") {
		r := readers.New()
		norm := normalize.New(normalize.Limits{})
		q := &receiver.Request{Body: []byte(body), Received: received, Norm: norm, Batch: new(normalize.Batch)}
		if err := r.read(q, form == inJSON); err != nil {
			t.Fatal(err)
		}
		for _, s := range r.scopes[:cap(r.scopes)] {
			if s.msg.bytes != nil || s.scope.bytes != nil || s.schemaURL != nil {
				t.Errorf("%s: %q is kept", form, s.msg.bytes)
			}
		}
	}
}
