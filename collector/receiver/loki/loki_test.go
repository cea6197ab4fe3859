package loki

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/internal/testkit"
)

const (
	ofJSON  = "application/json"
	ofProto = "application/x-protobuf"
)

var received = time.Unix(1_780_000_000, 5).UTC()

const (
	before = `{"time":"2026-05-28T20:26:40.000000005Z",` // as received
	stamp  = "1779972000123456789"
	at     = `{"time":"2026-05-28T12:40:00.123456789Z",`
)

// message is the content of a field that is a message.
func message(num protowire.Number, parts ...[]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), all)
}

func text(num protowire.Number, s string) []byte { return message(num, []byte(s)) }

func number(num protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), n)
}

// entry is one at stamp, with metadata in pairs.
func entryOf(line string, metadata ...string) []byte {
	parts := [][]byte{message(1, number(1, 1779972000), number(2, 123456789)), text(2, line)}
	for i := 0; i < len(metadata); i += 2 {
		parts = append(parts, message(3, text(1, metadata[i]), text(2, metadata[i+1])))
	}
	return message(2, parts...)
}

// push1 is a request of one stream.
func push1(labels string, entries ...[]byte) string {
	return string(message(1, append([][]byte{text(1, labels)}, entries...)...))
}

func decode(t testing.TB, contentType, body string) ([]string, *normalize.Batch) {
	t.Helper()
	return decodetest.Lines(t, Protocol, contentType, body, received)
}

// TestBothForms has each case in both forms make the same line.
func TestBothForms(t *testing.T) {
	canonical := at + `"level":"WARN","msg":"slow","service":"shop","attrs":{"ms":812}}`
	for _, tt := range []struct {
		name     string
		labels   []string
		line     string
		metadata []string
		want     string
	}{
		{"text", nil, "hello\t\"you\"", nil, at + `"level":"INFO","msg":"hello\t\"you\""}`},
		{"empty", nil, "", nil, at + `"level":"INFO","msg":""}`},
		{"labels", []string{"app", "shop", "level", "warn", "host", "w\"1\\"}, "x", nil, at + `"level":"WARN","msg":"x","service":"shop","attrs":{"host":"w\"1\\"}}`},
		{"service_name", []string{"service_name", "shop", "app", "other"}, "x", nil, at + `"level":"INFO","msg":"x","service":"shop","attrs":{"app":"other"}}`},
		{"not a level", []string{"level", "unknown"}, "x", nil, at + `"level":"INFO","msg":"x","attrs":{"level":"unknown"}}`},
		{"a level that the object says", []string{"level", "fatal"}, `{"level":"FATAL+2"}`, nil, at + `"level":"FATAL+2"}`},
		{"error for ERROR+1", []string{"severity", "error"}, `{"level":"ERROR+1"}`, nil, at + `"level":"ERROR+1"}`},
		{"error for PANIC", []string{"lvl", "error"}, `{"level":"PANIC"}`, nil, at + `"level":"PANIC","attrs":{"lvl":"error"}}`},
		{"critical for PANIC", []string{"level", "critical"}, `{"level":"PANIC"}`, nil, at + `"level":"PANIC"}`},
		{"critical for PANIC+1", []string{"level", "critical"}, `{"level":"PANIC+1"}`, nil, at + `"level":"PANIC+1"}`},
		{"critical for FATAL", []string{"level", "critical"}, `{"level":"FATAL"}`, nil, at + `"level":"FATAL"}`},
		{"critical for FATAL+1", []string{"level", "critical"}, `{"level":"FATAL+1"}`, nil, at + `"level":"FATAL+1","attrs":{"level":"critical"}}`},
		{"critical for ERROR", []string{"level", "critical"}, `{"level":"ERROR"}`, nil, at + `"level":"ERROR","attrs":{"level":"critical"}}`},
		{"fatal for PANIC", []string{"level", "fatal"}, `{"level":"PANIC"}`, nil, at + `"level":"PANIC","attrs":{"level":"fatal"}}`},
		{"trace for TRACE+3", []string{"level", "trace"}, `{"level":"TRACE+3"}`, nil, at + `"level":"TRACE+3"}`},
		{"trace for DEBUG", []string{"level", "trace"}, `{"level":"DEBUG"}`, nil, at + `"level":"DEBUG","attrs":{"level":"trace"}}`},
		{"info for INFO+3", []string{"level", "info"}, `{"level":"INFO+3"}`, nil, at + `"level":"INFO+3"}`},
		{"info for WARN", []string{"level", "info"}, `{"level":"WARN"}`, nil, at + `"level":"WARN","attrs":{"level":"info"}}`},
		{"warn for INFO+3", []string{"level", "warn"}, `{"level":"INFO+3"}`, nil, at + `"level":"INFO+3","attrs":{"level":"warn"}}`},
		{"no level for WARN", []string{"level", "loud"}, `{"level":"WARN"}`, nil, at + `"level":"WARN","attrs":{"level":"loud"}}`},
		{"metadata", []string{"app", "shop"}, "x", []string{"trace_id", "abc", "user", "7"}, at + `"level":"INFO","msg":"x","service":"shop","trace_id":"abc","attrs":{"user":"7"}}`},
		{"canonical line", []string{"service_name", "shop2", "level", "warn"}, canonical, nil, at + `"level":"WARN","msg":"slow","service":"shop","attrs":{"ms":812,"service_name":"shop2"}}`},
		{"canonical line of another level", []string{"level", "error"}, canonical, nil, at + `"level":"WARN","msg":"slow","service":"shop","attrs":{"ms":812,"level":"error"}}`},
		{"object with a time of its own", nil, `{"time":1779972000,"message":"m","level":30}`, nil, `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"m","attrs":{"entry_time":"2026-05-28T12:40:00.123456789Z"}}`},
		{"object of no time", nil, ` {"a":{"b":[1, 2]}} `, nil, at + `"level":"INFO","attrs":{"a":{"b":[1,2]}}}`},
		{"object and more", nil, `{"a":1} x`, nil, at + `"level":"INFO","msg":"{\"a\":1} x"}`},
		{"object cut off", nil, `{"a":1`, nil, at + `"level":"INFO","msg":"{\"a\":1"}`},
		{"equal names", []string{"a", "1"}, `{"a":1,"a":2}`, []string{"a", "3"}, at + `"level":"INFO","attrs":{"a":1,"a_2":2,"a_3":"1","a_4":"3"}}`},
		{"not UTF-8", nil, "a\xff", nil, at + `"level":"INFO","msg":"a` + "\uFFFD" + `"}`},
		{"object that is not UTF-8", nil, "{\"a\":\"\xff\"}", nil, at + `"level":"INFO","attrs":{"a":"` + "\uFFFD" + `"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var labels []string
			object := map[string]string{}
			for i := 0; i < len(tt.labels); i += 2 {
				labels = append(labels, fmt.Sprintf("%s=%q", tt.labels[i], tt.labels[i+1]))
				object[tt.labels[i]] = tt.labels[i+1]
			}
			fromProto, _ := decode(t, ofProto, push1("{"+strings.Join(labels, ", ")+"}", entryOf(tt.line, tt.metadata...)))
			if len(fromProto) != 1 || fromProto[0] != tt.want {
				t.Errorf("protobuf\ngot  %s\nwant %s", fromProto, tt.want)
			}
			quote := func(s string) string {
				b, _ := json.Marshal(s)
				return string(b)
			}
			line := quote(tt.line)
			if strings.Contains(tt.line, "\xff") {
				line = strings.ReplaceAll(quote(strings.ReplaceAll(tt.line, "\xff", "@")), "@", "\xff")
			}
			ordered := func(pairs []string) string {
				var b []string
				for i := 0; i < len(pairs); i += 2 {
					b = append(b, quote(pairs[i])+":"+quote(pairs[i+1]))
				}
				return "{" + strings.Join(b, ",") + "}"
			}
			if tt.name == "object that is not UTF-8" {
				return // U+FFFD is in the line before it is looked at
			}
			for _, body := range []string{
				`{"streams":[{"stream":` + ordered(tt.labels) + `,"values":[["` + stamp + `",` + line + `,` + ordered(tt.metadata) + `]]}]}`,
				`{"x":{},"streams":[{"values":[[` + stamp + `,` + line + `,` + ordered(tt.metadata) + `]],"y":[],"stream":` + ordered(tt.labels) + `}]}`,
				`{"streams":[{"labels":` + quote("{"+strings.Join(labels, ",")+"}") + `,"entries":[{"ts":"2026-05-28T14:40:00.123456789+02:00","line":` + line + `,"structuredMetadata":` + ordered(tt.metadata) + `}]}]}`,
			} {
				fromJSON, _ := decode(t, ofJSON, body)
				if len(fromJSON) != 1 || fromJSON[0] != tt.want {
					t.Errorf("JSON %s\ngot  %s\nwant %s", body, fromJSON, tt.want)
				}
			}
		})
	}
}

func TestTimes(t *testing.T) {
	for value, want := range map[string]string{
		`"1"`: "1970-01-01T00:00:00.000000001Z", `"-1"`: "1969-12-31T23:59:59.999999999Z", `"9223372036854775807"`: "2262-04-11T23:47:16.854775807Z",
	} {
		lines, _ := decode(t, ofJSON, `{"streams":[{"values":[[`+value+`,"x"]]}]}`)
		if !strings.HasPrefix(lines[0], `{"time":"`+want) {
			t.Errorf("%s: %s", value, lines[0])
		}
	}
	lines, _ := decode(t, ofProto, push1("", message(2, text(2, "x"))))
	if lines[0] != before+`"level":"INFO","msg":"x"}` {
		t.Errorf("without a timestamp: %s", lines[0])
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

func (s server) post(contentType, body string, header ...string) (int, string) {
	res := decodetest.Send(s.handler, "/loki/api/v1/push", body, append(header, "Content-Type", contentType)...)
	return res.Code, res.Body.String()
}

func TestAnswers(t *testing.T) {
	s := newServer(t, func(o *receiver.Options) { o.Limits.MaxEventBytes = 300; o.MaxBody = 5000 })
	pack := func(s string) string { return string(snappy.Encode(nil, []byte(s))) }
	good := push1(`{app="shop"}`, entryOf("one"), entryOf("two"))
	long := push1("{}", entryOf("one"), entryOf(strings.Repeat("x", 400)))
	for _, c := range []struct {
		name, contentType, body string
		header                  []string
		fail                    error
		code, stored            int
		text                    string
	}{
		{"snappy", ofProto, pack(good), []string{"Content-Encoding", "snappy"}, nil, 204, 2, ""},
		{"snappy that nothing announces", ofProto, pack(good), nil, nil, 204, 2, ""},
		{"no Content-Type either", "", pack(good), nil, nil, 204, 2, ""},
		{"JSON", ofJSON, `{"streams":[{"stream":{},"values":[["1","x"]]}]}`, nil, nil, 204, 1, ""},
		{"JSON with a charset", ofJSON + "; charset=utf-8", `{"streams":[{"stream":{},"values":[["1","x"]]}]}`, nil, nil, 204, 1, ""},
		{"nothing in it", ofJSON, `{"streams":[]}`, nil, nil, 204, 0, ""},
		{"not packed", ofProto, good, nil, nil, 400, 0, "snappy"},
		{"not a request", ofProto, pack("hello"), nil, nil, 400, 0, "not a valid push request"},
		{"cut off in a stream", ofProto, pack(string(text(1, good[:len(good)-1]))), nil, nil, 400, 0, "not a valid push request"},
		{"labels that are none", ofProto, pack(push1("app=shop", entryOf("x"))), nil, nil, 400, 0, `labels "app=shop"`},
		{"labels without an end", ofProto, pack(push1(`{app="shop}`, entryOf("x"))), nil, nil, 400, 0, "are not of the form"},
		{"labels that have no beginning", ofProto, pack(push1(`app="shop"}`, entryOf("x"))), nil, nil, 400, 0, "are not of the form"},
		{"labels that have no brace in the end", ofProto, pack(push1(`{app="shop"`, entryOf("x"))), nil, nil, 400, 0, "are not of the form"},
		{"half a pair of braces", ofProto, pack(push1(`{`, entryOf("x"))), nil, nil, 400, 0, "are not of the form"},
		{"a label without a name", ofProto, pack(push1(`{="shop"}`, entryOf("x"))), nil, nil, 400, 0, "are not of the form"},
		{"a label without a value", ofProto, pack(push1(`{app}`, entryOf("x"))), nil, nil, 400, 0, "are not of the form"},
		{"a label without quotes", ofProto, pack(push1(`{app=shop}`, entryOf("x"))), nil, nil, 400, 0, "are not of the form"},
		{"labels without a comma", ofProto, pack(push1(`{a="b" c="d"}`, entryOf("x"))), nil, nil, 400, 0, "are not of the form"},
		{"labels with spaces and a comma in the end", ofProto, pack(push1(` { a = "b" , c="d", } `, entryOf("x"))), nil, nil, 204, 1, ""},
		{"no message in a time", ofProto, pack(push1("", message(2, text(1, "\xff"), text(2, "x")))), nil, nil, 400, 0, "Timestamp"},
		{"no message in an entry", ofProto, pack(push1("", text(2, "\xff"))), nil, nil, 400, 0, "Entry"},
		{"no message in metadata", ofProto, pack(push1("", message(2, text(2, "x"), text(3, "\xff")))), nil, nil, 400, 0, "LabelPair"},
		{"no message in metadata of a long entry", ofProto, pack(push1("", message(2, text(2, strings.Repeat("x", 400)), text(3, "\xff")))), nil, nil, 400, 0, "LabelPair"},
		{"a label whose text is a number", ofProto, pack(string(message(1, number(1, 7), text(2, "")))), nil, nil, 204, 1, ""},
		{"an array for a request", ofJSON, `[]`, nil, nil, 400, 0, "a push request is an object"},
		{"two requests", ofJSON, `{"streams":[]}{}`, nil, nil, 400, 0, "there is more after its end"},
		{"streams that are none", ofJSON, `{"streams":{}}`, nil, nil, 400, 0, "streams is an array"},
		{"not a stream", ofJSON, `{"streams":[7]}`, nil, nil, 400, 0, "a stream is an object"},
		{"labels that are a number", ofJSON, `{"streams":[{"labels":7}]}`, nil, nil, 400, 0, "labels is a string"},
		{"values that are none", ofJSON, `{"streams":[{"values":[{}]}]}`, nil, nil, 400, 0, "a value is an array"},
		{"a line that is a number", ofJSON, `{"streams":[{"values":[["1",2]]}]}`, nil, nil, 400, 0, "a line is a string"},
		{"four elements", ofJSON, `{"streams":[{"values":[["1","x",{},{}]]}]}`, nil, nil, 400, 0, "at most three elements"},
		{"not metadata", ofJSON, `{"streams":[{"values":[["1","x",[]]]}]}`, nil, nil, 400, 0, "structured metadata is an object"},
		{"not a time, of the older form", ofJSON, `{"streams":[{"entries":[{"ts":"soon","line":"x"}]}]}`, nil, nil, 400, 0, `ts "soon" is not`},
		{"nulls", ofJSON, `{"streams":[{"stream":null,"values":null,"entries":null}]}`, nil, nil, 204, 0, ""},
		{"JSON cut off", ofJSON, `{"streams":[`, nil, nil, 400, 0, "in JSON at offset"},
		{"no line", ofJSON, `{"streams":[{"values":[["1"]]}]}`, nil, nil, 400, 0, "two elements"},
		{"no time", ofJSON, `{"streams":[{"values":[["soon","x"]]}]}`, nil, nil, 400, 0, `time "\"soon\"" is not`},
		{"an entry too long", ofProto, pack(long), nil, nil, 400, 1, "total ignored: 1 out of 2\n"},
		{"all entries too long", ofJSON, `{"streams":[{"values":[["1","` + strings.Repeat("x", 400) + `"]]}]}`, nil, nil, 400, 0, "total ignored: 1 out of 1\n"},
		{"full", ofProto, pack(good), nil, receiver.ErrFull, 503, 0, "send it again"},
		{"stopping", ofProto, pack(good), nil, os.ErrClosed, 503, 0, "send it again"},
		{"too large", ofJSON, strings.Repeat("x", 6000), nil, nil, 413, 0, "smaller requests"},
		{"unknown coding", ofJSON, "{}", []string{"Content-Encoding", "compress"}, nil, 415, 0, "supported are"},
	} {
		s.Fail = c.fail
		count := len(s.Lines)
		code, body := s.post(c.contentType, c.body, c.header...)
		if code != c.code || len(s.Lines)-count != c.stored || !strings.Contains(body, c.text) || (code == 204) != (body == "") {
			t.Errorf("%s: %d %q, %d stored", c.name, code, body, len(s.Lines)-count)
		}
	}
	s.Fail = nil
}

// TestCutAnywhere: a request that is cut is refused, or holds whole entries.
func TestCutAnywhere(t *testing.T) {
	whole := push1(`{app="shop"}`, entryOf("one", "a", "b"), entryOf(`{"x":1}`)) + push1("{}", entryOf("two"))
	for cut := range len(whole) {
		s := newServer(t, nil)
		code, body := s.post(ofProto, string(snappy.Encode(nil, []byte(whole[:cut]))))
		if code != 400 && (code != 204 || len(s.Lines) != 0 && len(s.Lines) != 2) {
			t.Errorf("cut at %d: %d %q, %q", cut, code, body, s.Lines)
		}
	}
}

// TestLabelsAreBounded has large labels for many small entries.
func TestLabelsAreBounded(t *testing.T) {
	s := newServer(t, func(o *receiver.Options) { o.MaxUnpacked = 1 << 20; o.InFlight = 4 << 20 })
	entries := make([][]byte, 200)
	for i := range entries {
		entries[i] = entryOf("x")
	}
	body := string(snappy.Encode(nil, []byte(push1(`{large="`+strings.Repeat("x", 100_000)+`"}`, entries...))))
	if code, answer := s.post(ofProto, body); code != 413 || !strings.Contains(answer, "share") {
		t.Errorf("%d %q", code, answer)
	}
}

func TestNoAllocationPerEvent(t *testing.T) {
	forms := func(n int) map[string]string {
		var entries [][]byte
		var values []string
		for range n {
			entries = append(entries, entryOf("some text"), entryOf(`{"msg":"x\n","level":"warn","a":{"b":1}}`, "user", "7"))
			values = append(values, `["`+stamp+`","some text"]`, `["`+stamp+`","{\"msg\":\"x\\n\",\"a\":{\"b\":1}}",{"user":"7"}]`)
		}
		return map[string]string{
			ofProto: push1(`{app="shop", level="warn"}`, entries...),
			ofJSON:  `{"streams":[{"stream":{"app":"shop","level":"warn"},"values":[` + strings.Join(values, ",") + `]}]}`,
		}
	}
	few, many := forms(50), forms(500)
	for _, kind := range []string{ofProto, ofJSON} {
		allocs := map[int]uint64{}
		for want, body := range map[int]string{100: few[kind], 1000: many[kind]} {
			req := httptest.NewRequest("POST", "/", nil)
			req.Header.Set("Content-Type", kind)
			b, norm := new(normalize.Batch), normalize.New(normalize.Limits{})
			q := &receiver.Request{HTTP: req, Body: []byte(body), Received: received, Norm: norm, Batch: b}
			allocs[want] = testkit.Mallocs(func() {
				b.Reset()
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
// valid JSON.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(push1(`{app="shop", level="warn"}`, entryOf("text"), entryOf(`{"a":1}`, "b", "c"))), false)
	f.Add([]byte(`{"streams":[{"stream":{"a":"b"},"values":[["1","x",{"c":"d"}],["2","{\"e\":1}"]]}]}`), true)
	f.Add([]byte(`{"streams":[{"labels":"{a=\"b\"}","entries":[{"ts":"2026-05-28T14:40:00Z","line":"x"}]}]}`), true)
	f.Fuzz(func(t *testing.T, body []byte, asJSON bool) {
		req := httptest.NewRequest("POST", "/", nil)
		if asJSON {
			req.Header.Set("Content-Type", ofJSON)
		}
		b := new(normalize.Batch)
		q := &receiver.Request{HTTP: req, Body: body, Received: received, Norm: normalize.New(normalize.Limits{MaxDepth: 10}), Batch: b}
		if err := Protocol.Decode(q); err != nil {
			return
		}
		decodetest.CheckLines(t, b)
	})
}
