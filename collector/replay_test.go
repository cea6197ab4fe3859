package collector

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/reread"
)

// longText is more than the strict collector takes.
var longText = strings.Repeat("long ", 100)

// rejectedRequests are requests of one event each that is too long, by each receiver,
// with what receivers take from elsewhere in the request.
var rejectedRequests = []struct{ path, contentType, body string }{
	{"/v1/logs", "application/json", `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},{"key":"host.name","value":{"stringValue":"h1"}}],"droppedAttributesCount":2},"schemaUrl":"r","scopeLogs":[
		{"scope":{"name":"cart","version":"1.2","attributes":[{"key":"s","value":{"boolValue":true}}]},"schemaUrl":"s","logRecords":[{"timeUnixNano":"1779972000000000001","severityNumber":13,"traceId":"no id","spanId":"0102030405060708","body":{"stringValue":"` + longText + `"},"attributes":[{"key":"a","value":{"intValue":"1"}}]}]}]}]}`},
	{"/v1/logs", "application/json", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"` + longText + `"}}]}]}]}`},
	{"/v1/logs", "application/x-protobuf", string(message(1, append(message(1, message(1, append(message(1, []byte("host.name")), message(2, message(1, []byte("h2")))...))),
		message(2, append(message(1, message(1, []byte("cart"))), message(2, message(5, message(1, []byte(longText))))...))...)))},
	{"/services/collector/event", "", `{"time":1779972000,"host":"h","event":{"severity":"warn","message":"` + longText + `"},"fields":{"n":1}}`},
	{"/services/collector/raw", "", longText},
	{"/services/collector/raw?host=a%26b&source=s&token=hidden", "", longText},
	{"/logs-app/_bulk", "", "{\"create\":{}}\n{\"@timestamp\":\"2026-05-28T12:40:00Z\",\"log\":{\"level\":\"warn\"},\"message\":\"" + longText + "\"}\n"},
	{"/_bulk", "", "{\"index\":{\"_index\":\"other\",\"_id\":\"7\",\"routing\":\"r\"}}\n{\"@timestamp\":\"2026-05-28T12:40:00Z\",\"message\":\"" + longText + "\"}\n"},
	{"/api/7/store/", "", `{"timestamp":1779972000,"level":"warning","logentry":{"message":"` + longText + `"}}`},
	{"/api/7/envelope/", "", "{}\n{\"type\":\"event\"}\n{\"timestamp\":1779972000,\"request\":{\"body\":1},\"exception\":{\"values\":[{\"type\":\"T\",\"value\":\"" + longText + "\"}]}}\n"},
	{"/api/7/envelope/", "", "{}\n{\"type\":\"log\"}\n{\"items\":[{\"timestamp\":1779972000,\"body\":\"" + longText + "\",\"attributes\":{\"a\":{\"value\":5,\"type\":\"integer\"}}}]}\n"},
	{"/loki/api/v1/push", "application/json", `{"streams":[{"stream":{"app":"shop","q\"":"a\u0020b","level":"warn"},"values":[["1779972000000000001","` + longText + `",{"m":"v","app":"other"}]]}]}`},
	{"/loki/api/v1/push", "application/json", `{"streams":[{"stream":{},"values":[["1779972000000000000","{\"time\":\"2026-05-28T12:40:01Z\",\"msg\":\"` + longText + `\"}"]]}]}`},
	{"/loki/api/v1/push", "application/json", `{"streams":[{"labels":"{job=\"j\"}","entries":[{"ts":"9999-12-31T23:59:59Z","line":"` + longText + `"}]}]}`},
	{"/api/prom/push", "", string(snappy.Encode(nil, message(1, append(message(1, []byte(`{app="shop"}`)), message(2, append(message(1, []byte("\x08\x01")), message(2, []byte(longText))...))...))))},
	{"/gelf", "", `{"version":"1.1","host":"h","short_message":"` + longText + `","full_message":"f","timestamp":1779972000.5,"level":3,"_service":"shop"}`},
	{"/upload", "application/vnd.fdo.journal", "__REALTIME_TIMESTAMP=1779972000118000\nPRIORITY=4\nMESSAGE=" + longText + "\nA\n\x02\x00\x00\x00\x00\x00\x00\x00\n\xff\n\n"},
	{"/api/logs", "", `{"time":1779972000,"metadata":{"a":1},"msg":"` + longText + `"}`},
	// Line ends that belong to the text, last in what is kept.
	{"/v1/logs", "application/x-protobuf", string(message(1, message(2, message(2, message(5, message(1, []byte(longText+"\r\n")))))))},
	{"/loki/api/v1/push", "application/json", `{"streams":[{"stream":{"a":"b"},"values":[["1779972000000000001","` + longText + `\r\n"]]}]}`},
}

// rejectedMessages are messages of Fluent forward of one event each, likewise.
func rejectedMessages() []string {
	str := func(s string) string { return "\xda" + string([]byte{byte(len(s) >> 8), byte(len(s))}) + s }
	record := "\xce\x6a\x18\x39\xa0\x82" + str("log") + str(longText) + str("n") + "\x05"
	untimed := "\xc0" + record[5:]
	return []string{
		"\x93\xa0" + record, "\x93\xa3app" + record, "\x92\xa5app.x\x91\x92" + record,
		"\x92" + "\xa3\xff\xfe\xfd" + "\xda" + string([]byte{byte((len(record) + 1) >> 8), byte(len(record) + 1)}) + "\x92" + record,
		"\x93\xa3app" + untimed,
		"\x93\xa3app\xce\x6a\x18\x39\xa0" + str(longText),
		`["app",1779972000,{"log":"` + longText + `"}]`, `["a\u0020b",[[1779972000,"` + longText + `"]],{}]`,
		"\x93\xa3app\xce\x6a\x18\x39\xa0\x81" + str("log") + str(longText+"\n"),
	}
}

// What a strict collector rejects, by whatever receiver, becomes by its dead letter, when
// that is sent again, the line that a lenient collector has made of it at once.
func TestDeadLettersOfReceivers(t *testing.T) {
	strict, lenient := sendRejected(t, 400), sendRejected(t, config.MiB)
	want := storedLines(t, lenient)
	if n := len(rejectedRequests) + len(rejectedMessages()) + 2; len(want) != n {
		t.Fatalf("%d lines are stored, want %d:\n%s", len(want), n, strings.Join(want, "\n"))
	}
	cfg := testConfig(t)
	cfg.Limits.MaxPast, cfg.Limits.MaxFuture = 0, 0
	again := run(t, cfg)
	for _, l := range deadLettersOf(t, strict) {
		text, err := l.Text()
		if err != nil || len(text) == 0 || l.Receiver == "" || l.Cut || l.ContextCut || l.Whole {
			t.Errorf("a dead letter is %+v, %v", l, err)
		}
		if around, err := l.ContextBytes(); err != nil || strings.Contains(string(around), "hidden") {
			t.Errorf("the context is %q, %v", around, err)
		}
		body := reread.Lines(&l, reread.NoLimits)
		if l.Receiver == "/api/logs" { // it is sent as it is
			if len(body) > 0 {
				t.Errorf("%s is read as %s", text, body)
			}
			body = text
		}
		if _, _, answer := again.do(t, "POST", "/api/logs", string(body)); !strings.Contains(answer, `"accepted":1`) {
			t.Errorf("%s: %s", l.Receiver, answer)
		}
	}
	got := storedLines(t, again)
	slices.Sort(got)
	slices.Sort(want)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("by dead letters, sorted:\n%s\nat once:\n%s", strings.Join(got[min(i, len(got)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
		}
	}
}

// Letters of collectors that kept no context are read without, and requests in
// which events could not be found are not taken for events.
func TestDeadLettersWithoutContext(t *testing.T) {
	record := "\xce\x6a\x18\x39\xa0\x81\xa3log\xa1x"
	otlpRecord := string(message(5, message(1, []byte("x"))))
	long := strings.Repeat("x", 1000)
	for _, tc := range []struct {
		letter deadletter.Entry
		want   string // in the line; "": none
	}{
		{deadletter.Entry{Receiver: "Fluent forward", Event: record}, `"msg":"x","attrs":{"tag":""}`},
		{deadletter.Entry{Receiver: "Fluent forward", Event: record + "\x01"}, ""},
		{deadletter.Entry{Receiver: "Fluent forward", Event: "\x93\xa1t" + record}, `"attrs":{"tag":"t"}`},
		{deadletter.Entry{Receiver: "Fluent forward", Event: "\x93\xa1t" + record[:8]}, ""},
		{deadletter.Entry{Receiver: "/v1/logs", Event: otlpRecord}, `"msg":"x"`},
		{deadletter.Entry{Receiver: "/v1/logs", Event: `{"body":{"stringValue":"x"}}`}, `"msg":"x"`},
		{deadletter.Entry{Receiver: "/v1/logs", Event: otlpRecord, Whole: true}, ""},
		{deadletter.Entry{Receiver: "/v1/logs", Event: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"y"}}]}]}]}`, Whole: true}, `"msg":"y"`},
		{deadletter.Entry{Receiver: "/v1/logs", Event: `{"resourceLogs":[`, Whole: true}, ""},
		{deadletter.Entry{Receiver: "/loki/api/v1/push", Event: "line"}, ""},
		{deadletter.Entry{Receiver: "/loki/api/v1/push", Event: "line", Context: new(string)}, ""},
		{deadletter.Entry{Receiver: "/loki/api/v1/push", Event: `{"streams":[{"stream":{"a":"b"},"values":[["1","y"]]}]}`, Whole: true}, `"msg":"y","attrs":{"a":"b"}`},
		{deadletter.Entry{Receiver: "/api/7/envelope/", Event: `{"body":"` + long + `"}`}, `"msg":"` + long},
		{deadletter.Entry{Receiver: "/api/7/envelope/", Event: `{"body":"` + long + `"}`, Whole: true}, ""},
		{deadletter.Entry{Receiver: "/api/7/store/", Event: `{"message":"m"}`, Whole: true}, `"msg":"m"`},
		{deadletter.Entry{Receiver: "/_bulk", Event: `{"message":"m"}`}, `"msg":"m"`},
		{deadletter.Entry{Receiver: "/nowhere", Event: "x"}, ""},
		{deadletter.Entry{Receiver: "%zz", Event: "x"}, ""},
		{deadletter.Entry{Receiver: "/v1/logs", Base64: "?"}, ""},
	} {
		got := string(reread.Lines(&tc.letter, reread.NoLimits))
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%+v is %q, want %q in it", tc.letter, got, tc.want)
		}
	}
}

// A body that is refused as a whole is kept as one.
func TestLetterOfBody(t *testing.T) {
	r := run(t, testConfig(t))
	if code, _, answer := r.do(t, "POST", "/v1/logs", `{"resourceLogs":7}`); code != 400 {
		t.Fatal(code, answer)
	}
	letters := deadLettersOf(t, r)
	if len(letters) != 1 || !letters[0].Whole || letters[0].Event != `{"resourceLogs":7}` || reread.Lines(&letters[0], reread.NoLimits) != nil {
		t.Errorf("%+v", letters)
	}
}

// What events share is kept within bounds, and said to be lost beyond.
func TestLetterContextBound(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.MaxEvent = 400
	r := run(t, cfg)
	for _, size := range []int{10, 16 << 10} {
		label := strings.Repeat("l", size)
		body := `{"streams":[{"stream":{"a":"` + label + `"},"values":[["1","` + longText + `"]]}]}`
		resp, err := http.Post(r.url+"/loki/api/v1/push", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	letters := deadLettersOf(t, r)
	if len(letters) != 2 || letters[0].ContextCut || letters[0].Context == nil || !letters[1].ContextCut || letters[1].Context != nil {
		t.Errorf("%+v", letters)
	}
}

// deadLettersOf are those of a collector, in their order.
func deadLettersOf(t *testing.T, r *running) (letters []deadletter.Entry) {
	t.Helper()
	for r.Stats().Rejected.Pending > 0 {
		time.Sleep(time.Millisecond)
	}
	err := r.rejected.Find(t.Context(), deadletter.Filter{}, 10_000, func(e *deadletter.Entry) error {
		letters = append(letters, *e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return letters
}

// masked is a line without what differs from one time to another.
func masked(line string) string {
	var l struct{ Time time.Time }
	if json.Unmarshal([]byte(line), &l) == nil && time.Since(l.Time) < time.Hour && time.Until(l.Time) < time.Minute {
		_, rest, _ := strings.Cut(line, `Z"`)
		line = `{"time":"now"` + rest
	}
	return line
}

func storedLines(t *testing.T, r *running) (lines []string) {
	t.Helper()
	_, _, all := r.do(t, "GET", "/api/query?last=1000", "")
	for line := range strings.Lines(all) {
		lines = append(lines, masked(strings.TrimSuffix(line, "\n")))
	}
	return lines
}

// sendRejected sends all of rejectedRequests and the like to a new collector.
func sendRejected(t *testing.T, maxEvent config.Size) *running {
	t.Helper()
	cfg := testConfig(t)
	cfg.Limits.MaxEvent, cfg.Limits.MaxPast, cfg.Limits.MaxFuture = maxEvent, 0, 0
	cfg.ListenForward, cfg.ListenSyslog, cfg.ListenGELF = "tcp://127.0.0.1:0", "udp://127.0.0.1:0", "udp://127.0.0.1:0"
	r := run(t, cfg)
	for i, req := range rejectedRequests {
		resp, err := http.Post(r.url+req.path, req.contentType, strings.NewReader(req.body))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if s := r.Stats().Receive; s.Received != uint64(i+1) {
			t.Errorf("%s: %d events received, want %d", req.path, s.Received, i+1)
		}
	}
	for _, message := range rejectedMessages() {
		conn := dialListener(t, r.ForwardAddrs()[0])
		if _, err := io.WriteString(conn, message); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fmt.Fprintf(dialListener(t, r.SyslogAddrs()[0]), "<12>1 2026-05-28T12:40:00Z - app 7 - - %s", longText[:380]); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer // what is kept of it is packed, too
	w := zlib.NewWriter(&packed)
	fmt.Fprintf(w, `{"host":"h","short_message":"%s","timestamp":1779972000.25}`, longText)
	w.Close()
	if _, err := dialListener(t, r.GELFAddrs()[0]).Write(packed.Bytes()); err != nil {
		t.Fatal(err)
	}
	want := uint64(len(rejectedRequests) + len(rejectedMessages()) + 2)
	for end := time.Now().Add(time.Minute); r.Stats().Receive.Received < want && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if s := r.Stats(); s.Receive.Received != want || maxEvent < config.MiB && (s.Rejected.Kept+s.Rejected.Pending != want) {
		t.Errorf("%+v", s)
	}
	return r
}

func dialListener(t *testing.T, addr net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// message is the field with the number of protocol buffers, below 16, that holds
// a message.
func message(number byte, b []byte) []byte {
	return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(b))), b...)
}
