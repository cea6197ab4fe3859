package gelf

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/internal/testkit"
)

var (
	received = time.Unix(1779972000, 0)
	peer     = netip.MustParseAddrPort("192.0.2.7:514")
)

func newChunk(data string) *receiver.Chunk {
	return &receiver.Chunk{Data: []byte(data), Received: received, Peer: peer, Norm: normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1}), Batch: keeping()}
}

func keeping() *normalize.Batch {
	b := new(normalize.Batch)
	b.KeepDeadLetters(1 << 20)
	return b
}

const now = `{"time":"2026-05-28T12:40:00.000000000Z",`

// messages are messages with the lines that they become.
var messages = []struct{ name, message, want string }{
	{"the example of the specification", `{"version":"1.1","host":"example.org","short_message":"A short message","full_message":"Backtrace here\n\nmore","timestamp":1385053862.3072,"level":1,"_user_id":9001,"_some_info":"foo","_some_env_var":"bar"}`,
		`{"time":"2013-11-21T17:11:02.307200000Z","level":"FATAL+1","msg":"A short message","attrs":{"host":"example.org","user_id":9001,"some_info":"foo","some_env_var":"bar","full_message":"Backtrace here\n\nmore"}}`},
	{"nothing", `{}`, now + `"level":"INFO"}`},
	{"no version, no host", `{"short_message":"a"}`, now + `"level":"INFO","msg":"a"}`},
	{"message in place of short_message", `{"version":"1.1","message":"a"}`, now + `"level":"INFO","msg":"a"}`},
	{"message beside short_message", `{"message":"b","short_message":"a"}`, now + `"level":"INFO","msg":"a","attrs":{"message":"b"}}`},
	{"bytes that are not UTF-8", "{\"short_message\":\"caf\xe9\",\"_a\":\"\xff\"}", now + `"level":"INFO","msg":"caf` + "\uFFFD" + `","attrs":{"a":"` + "\uFFFD\"}}"},
	{"no short_message", `{"host":"h","level":3}`, now + `"level":"ERROR","attrs":{"host":"h"}}`},
	{"equal messages", `{"full_message":"a b","short_message":"a b"}`, now + `"level":"INFO","msg":"a b"}`},
	{"a time as a string", `{"short_message":"a","timestamp":"1779972000.123456789"}`, `{"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"a"}`},
	{"a time that no float has", `{"short_message":"a","timestamp":1779972000.000000001}`, `{"time":"2026-05-28T12:40:00.000000001Z","level":"INFO","msg":"a"}`},
	{"no time", `{"short_message":"a","timestamp":"soon"}`, now + `"level":"INFO","msg":"a","attrs":{"timestamp":"soon"}}`},
	{"levels", `{"short_message":"a","level":"4"}`, now + `"level":"WARN","msg":"a"}`},
	{"a level that is a float", `{"short_message":"a","level":7.0}`, now + `"level":"DEBUG","msg":"a"}`},
	{"a level by name", `{"short_message":"a","level":"error"}`, now + `"level":"ERROR","msg":"a"}`},
	{"no level", `{"short_message":"a","level":[3]}`, now + `"level":"INFO","msg":"a","attrs":{"level":[3]}}`},
	{"deprecated members", `{"short_message":"a","facility":"f","file":"x.go","line":7}`, now + `"level":"INFO","msg":"a","attrs":{"facility":"f","file":"x.go","line":7}}`},
	{"members without underscore", `{"short_message":"a","service":"s","n":null}`, now + `"level":"INFO","msg":"a","attrs":{"service":"s","n":null}}`},
	{"known names", `{"_service":"shop","_logger_name":"a.b","_trace_id":"5b8efff798038103d269b633813fc60c","_span_id":"eee19b7ec3c1b174","short_message":"a"}`,
		now + `"level":"INFO","msg":"a","service":"shop","logger":"a.b","trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7ec3c1b174"}`},
	{"names that are taken", `{"_msg":"c","_host":"x","_level":3,"_timestamp":1,"short_message":"a","host":"h","level":6,"timestamp":1779972000}`,
		now + `"level":"INFO","msg":"a","attrs":{"host":"h","msg":"c","host_2":"x","level":3,"timestamp":1}}`},
	{"underscores", `{"_":1,"__x":2,"_a":{"b":[1, 2]},"_attributes":{"c":3}}`, now + `"level":"INFO","attrs":{"_":1,"_x":2,"a":{"b":[1,2]},"c":3}}`},
	{"escaped names", `{"\u0073hort_message":"a","\u005fn":1}`, now + `"level":"INFO","msg":"a","attrs":{"n":1}}`},
	{"equal names", `{"short_message":"a","short_message":"b"}`, now + `"level":"INFO","msg":"a","attrs":{"short_message":"b"}}`},
}

func packed(t testing.TB, how, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = zlib.NewWriter(&b)
	if how == "gzip" {
		w = gzip.NewWriter(&b)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return b.String()
}

// Each message becomes its line, in a datagram, packed or not, on a stream and by HTTP.
func TestMessages(t *testing.T) {
	for _, m := range messages {
		t.Run(m.name, func(t *testing.T) {
			check := func(how string, b *normalize.Batch) {
				t.Helper()
				if got := string(b.AppendTo(nil)); got != m.want+"\n" || b.Records != 1 || b.RejectedTotal != 0 {
					t.Errorf("%s: %+v\ngot  %swant %s", how, b.Rejected, got, m.want)
				}
			}
			for how, data := range map[string]string{"plain": m.message, "NUL": m.message + "\n\x00", "zlib": packed(t, "zlib", m.message), "gzip": packed(t, "gzip", m.message)} {
				c := newChunk(data)
				Protocol{}.DecodePacket(c)
				check(how, c.Batch)
			}
			for how, data := range map[string]string{"NUL": m.message + "\x00", "LF": m.message + "\n", "LF and NUL": m.message + "\n\x00", "no end": m.message} {
				check("stream, "+how, stream(t, Protocol{}, normalize.Text{}, data))
			}
			for _, body := range []string{m.message, m.message + "\n\x00", "[" + m.message + "]"} {
				q := &receiver.Request{HTTP: httptest.NewRequest("POST", "/gelf", nil), Body: []byte(body), Received: received, Norm: normalize.New(normalize.Limits{MaxPast: -1}), Batch: keeping()}
				if err := HTTP.Decode(q); err != nil {
					t.Error(err)
				}
				check("HTTP", q.Batch)
			}
		})
	}
}

// stream sends data, cut into pieces at each of cuts.
func stream(t testing.TB, p Protocol, how normalize.Text, data string, cuts ...int) *normalize.Batch {
	t.Helper()
	c, s := newChunk(""), p.Open()
	c.Holds, c.Norm = true, normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1, Text: how})
	var left []byte
	at := 0
	for i := range len(cuts) + 2 {
		if c.End = i > len(cuts); !c.End {
			next := len(data)
			if i < len(cuts) {
				next = min(max(cuts[i], at), len(data))
			}
			left = append(left, data[at:next]...)
			at = next
		}
		c.Data = bytes.Clone(left)
		n, err := s.Decode(c)
		if err != nil || n < 0 || n > len(left) || c.End && n < len(left) {
			t.Fatalf("%d of %d bytes taken at %d of %q, %v", n, len(left), at, data, err)
		}
		if left = left[n:]; how.Apart && len(left) > p.MaxFrame(p.withDefaults().MaxMessage, 0) {
			t.Fatalf("%d bytes are left, which no frame has", len(left))
		}
	}
	return c.Batch
}

// What cannot be stored is rejected, with its reason and its text.
func TestRejected(t *testing.T) {
	large := `{"short_message":"` + strings.Repeat("x", 300) + `"}`
	for _, c := range []struct{ name, data, reason, text string }{
		{"no JSON", "hello", normalize.ReasonSyntax, "hello"},
		{"half an object", `{"a":1`, normalize.ReasonSyntax, `{"a":1`},
		{"two objects", "{}{}", normalize.ReasonSyntax, "{}{}"},
		{"an array", "[{}]", normalize.ReasonNotObject, "[{}]"},
		{"a number", "7", normalize.ReasonNotObject, "7"},
		{"too large", large, normalize.ReasonTooLarge, large},
		{"too large once unpacked", packed(t, "gzip", large), normalize.ReasonTooLarge, packed(t, "gzip", large)},
		{"a bomb", packed(t, "zlib", strings.Repeat("x", 5<<20)), normalize.ReasonTooLarge, packed(t, "zlib", strings.Repeat("x", 5<<20))},
		{"broken zlib", "\x78\x9chello", normalize.ReasonSyntax, "\x78\x9chello"},
		{"gzip cut off", packed(t, "gzip", "{}")[:15], normalize.ReasonSyntax, packed(t, "gzip", "{}")[:15]},
		{"gzip with a tail", packed(t, "gzip", "{}") + "x", normalize.ReasonSyntax, packed(t, "gzip", "{}") + "x"},
		{"zlib with a tail", packed(t, "zlib", "{}") + "x", normalize.ReasonSyntax, packed(t, "zlib", "{}") + "x"},
		{"a broken text, packed", packed(t, "zlib", "{"), normalize.ReasonSyntax, "{"},
	} {
		chunk := newChunk(c.data)
		Protocol{MaxMessage: 200}.DecodePacket(chunk)
		checkRejected(t, c.name, chunk.Batch, c.reason, c.text)
	}
	for _, empty := range []string{"", "\x00", "\n\x00", packed(t, "zlib", "")} {
		chunk := newChunk(empty)
		if (Protocol{}).DecodePacket(chunk); chunk.Batch.Events() != 0 {
			t.Errorf("%q is an event", empty)
		}
	}
}

// room is a normalize.Room of so many bytes.
type room int

func (r room) Grow(memory, _ int) bool { return memory <= int(r) }

// A bad byte changes neither why a message is rejected nor that one without room is refused.
func TestBadBytesOfLargeMessages(t *testing.T) {
	for _, end := range []string{"x", "\xff"} {
		message := func(size int) string { return `{"short_message":"` + strings.Repeat("x", size) + end + `"}` }
		c := newChunk(message(500))
		c.Norm = normalize.New(normalize.Limits{MaxEventBytes: 200})
		Protocol{}.DecodePacket(c)
		checkRejected(t, "bad bytes", c.Batch, normalize.ReasonTooLarge, message(500))
		c = newChunk(message(300 << 10))
		c.Batch.Within(room(100<<10), 0)
		if (Protocol{}).DecodePacket(c); !c.Batch.Overflowed() || c.Batch.Records != 1 || c.Batch.RejectedTotal != 0 {
			t.Errorf("%q: overflowed %v, %d lines, %+v", end, c.Batch.Overflowed(), c.Batch.Records, c.Batch.Rejected)
		}
	}
}

// Whether there is a short_message is looked for once, however many names want to know.
func TestMessagesCostByLength(t *testing.T) {
	testkit.NoRace(t, "it measures time")
	cost := func(n int) time.Duration {
		least := time.Hour
		for range 5 {
			c := newChunk("{" + strings.Repeat(`"message":1,`, n) + `"x":[1` + strings.Repeat(",1", 300<<10) + "]}")
			begin := time.Now()
			Protocol{}.DecodePacket(c)
			least = min(least, time.Since(begin))
		}
		return least
	}
	if one, many := cost(1), cost(500); many > 20*one {
		t.Errorf("a message with 500 members takes %v, with one %v", many, one)
	}
}

func checkRejected(t *testing.T, name string, b *normalize.Batch, reason, text string) {
	t.Helper()
	letters := b.DeadLetters()
	if b.RejectedTotal != 1 || b.Records != 0 || b.RejectedFor(reason) != 1 || len(letters) != 1 || len(b.Rejected) != 1 || b.Rejected[0].Detail == "" {
		t.Errorf("%s: %d lines, %+v", name, b.Records, b.Rejected)
		return
	}
	if got := string(b.Text(&letters[0])); got != text {
		t.Errorf("%s: %q is kept, want %q", name, got, text)
	}
}

// Frames end as the first one of the connection did.
func TestFrames(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, c := range []struct {
		name, data, want string // the messages of its events, with what was rejected
	}{
		{"NUL", `{"short_message":"a"}` + "\x00" + `{"short_message":"b"}` + "\x00", "a b"},
		{"NUL, objects of several lines", "{\n\"short_message\":\"a\"}\x00{\"short_message\"\n:\"b\"}\x00", "a b"},
		{"NUL, then an LF", "{}\x00{\"short_message\"\n:\"b\"}\n\x00\x00", " b"},
		{"LF", "{\"short_message\":\"a\"}\n{\"short_message\":\"b\"}\r\n\n{\"short_message\":\"c\"}", "a b c"},
		{"LF, then half a line", "{\"short_message\":\"a\"}\n{\"short_\nmessage\":\"b\"}\n", "a syntax syntax"},
		{"LF after NUL", "{\"short_message\":\"a\"}\n\x00{\"short_message\":\"b\"}\n\x00", "a b"},
		{"no object", "x\n{}\x00{}\x00", "syntax "},
		{"torn", "{\"short_message\":\"a\"}\x00{\"short", "a torn"},
		{"text without end", "hello", "torn"},
		{"too long", long + "\x00{\"short_message\":\"b\"}\x00", "too_large b"},
		{"too long, LF", "{}\n" + long + "\n{\"short_message\":\"b\"}\n", " too_large b"},
		{"too long at first, LF", long + "\n{\"short_message\":\"b\"}\n{}\n", "too_large b "},
		{"too long at the end", "{}\x00" + long, " too_large"},
		{"nothing", "\x00\n\x00", "-"},
	} {
		for cut := range len(c.data) + 1 {
			for _, how := range []normalize.Text{{}, {Apart: true}} {
				b := stream(t, Protocol{MaxMessage: 40}, how, c.data, cut)
				if got := outcome(b); got != c.want {
					t.Errorf("%s, cut at %d, %+v: %q, want %q", c.name, cut, how, got, c.want)
				}
			}
		}
	}
}

// outcome lists the messages of lines and the reasons of rejected events in order.
func outcome(b *normalize.Batch) string {
	var list []string
	lines := strings.SplitAfter(string(b.AppendTo(nil)), "\n")
	rejected := b.Rejected
	for i := range b.Events() {
		if len(rejected) > 0 && rejected[0].Index == i {
			list = append(list, rejected[0].Reason)
			rejected = rejected[1:]
			continue
		}
		_, msg, _ := strings.Cut(lines[0], `"msg":"`)
		msg, _, _ = strings.Cut(msg, `"`)
		list, lines = append(list, msg), lines[1:]
	}
	if list == nil {
		return "-"
	}
	return strings.Join(list, " ")
}

// HTTP is answered as Graylog answers, and as /api/logs where something is wrong.
func TestHTTP(t *testing.T) {
	s := decodetest.NewServer(t, nil)
	for _, c := range []struct {
		body, header string
		code         int
		want         string
	}{
		{`{"short_message":"a"}`, "", 202, ""},
		{"{}\n{}\n", "", 202, ""},
		{packed(t, "gzip", "{}"), "gzip", 202, ""},
		{packed(t, "zlib", "{}"), "deflate", 202, ""},
		{"{}7{}", "", 202, `{"accepted":2,"first_offset":5,"rejected":[{"index":1,"offset":0,"reason":"not_object","detail":"a message is not an object"}],"rejected_total":1}` + "\n"},
		{"{}x{}", "", 202, `{"accepted":1,"first_offset":7,"rejected":[{"index":1,"offset":0,"reason":"syntax","detail":"not valid JSON at offset 0: invalid character 'x' at start of value"}],"rejected_total":1}` + "\n"},
		{"", "", 400, `{"error":"the body is empty; expected a GELF message, such as {\"short_message\":\"hello\"}","accepted":0}` + "\n"},
		{"7", "", 400, `{"error":"nothing was stored: a message is not an object","accepted":0,"rejected":[{"index":0,"offset":0,"reason":"not_object","detail":"a message is not an object"}],"rejected_total":1}` + "\n"},
	} {
		var header []string
		if c.header != "" {
			header = []string{"Content-Encoding", c.header}
		}
		rec := decodetest.Send(s.Handler(HTTP), "/gelf", c.body, header...)
		if rec.Code != c.code || rec.Body.String() != c.want || c.want == "" && rec.Header().Get("Content-Type") != "" {
			t.Errorf("%q: %d %v %s", c.body, rec.Code, rec.Header(), rec.Body)
		}
	}
	s.Fail = receiver.ErrFull
	if rec := decodetest.Send(s.Handler(HTTP), "/gelf", "{}"); rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	s.Fail = nil
	for method, code := range map[string]int{"GET": 405, "HEAD": 405, "PUT": 405} {
		rec := httptest.NewRecorder()
		s.Handler(HTTP).ServeHTTP(rec, httptest.NewRequest(method, "/gelf", nil))
		if rec.Code != code || rec.Header().Get("Allow") != http.MethodPost {
			t.Errorf("%s: %d %v", method, rec.Code, rec.Header())
		}
	}
}

// TestJoins sends what Docker's driver does, over a connection and in a body.
func TestJoins(t *testing.T) {
	message := func(text, level, time string) string {
		return `{"version":"1.1","host":"h","short_message":"` + text + `","timestamp":` + time + `,"level":` + level + `,"_container_name":"shop","_tag":"a"}`
	}
	const head, tail = `{"time":"2026-05-28T12:40:00.500000000Z","level":"ERROR","msg":"`, `","service":"shop","attrs":{"host":"h","container_name":"shop","tag":"a"}}`
	list := []string{message("it failed", "3", "1779972000.5"), message(`\tat a.B(C.java:7)`, "3", "1779972000.6"), message("Caused by: x", "3", "1779972000.7"), message("  of stdout", "6", "1779972000.5")}
	want := head + `it failed\n\tat a.B(C.java:7)\nCaused by: x` + tail + "\n" + strings.Replace(head, "ERROR", "INFO", 1) + `  of stdout` + strings.Replace(tail, "ERROR", "INFO", 1) + "\n"
	for _, end := range []string{"\x00", "\n"} {
		c := newChunk(strings.Join(list, end) + end)
		if n, err := (Protocol{}).Open().Decode(c); n != len(c.Data) || err != nil || string(c.Batch.AppendTo(nil)) != want {
			t.Errorf("%q: %d of %d, %v\n got %swant %s", end, n, len(c.Data), err, c.Batch.AppendTo(nil), want)
		}
	}
	q := &receiver.Request{HTTP: httptest.NewRequest("POST", "/gelf", nil), Body: []byte(strings.Join(list, "\n")), Received: received, Norm: normalize.New(normalize.Limits{MaxPast: -1}), Batch: keeping()}
	if err := HTTP.Decode(q); err != nil || string(q.Batch.AppendTo(nil)) != want {
		t.Errorf("%v\n got %swant %s", err, q.Batch.AppendTo(nil), want)
	}
}
