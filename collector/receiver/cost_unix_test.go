//go:build unix

package receiver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/endpoints"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/forward"
	"github.com/rollway/rollway/collector/receiver/gelf"
	"github.com/rollway/rollway/collector/receiver/lumberjack"
	"github.com/rollway/rollway/collector/receiver/syslog"
	"github.com/rollway/rollway/internal/testkit"
)

// costBody is how long the bodies are that are compared.
const costBody = 40_000

// perRound is how many requests are measured together.
const perRound = 2

// A costDoor is a receiver and what it takes: events in a frame.
type costDoor struct {
	name, path, header string // without a slash in its path: a stream
	frame              func(events ...[]byte) []byte
	valid              []byte // an event
	bad                []badEvent
}

// A badEvent is rejected by itself.
type badEvent struct {
	what string
	text []byte
	like []byte // a valid event that is as much like it as can be
}

// body is one of about size bytes. Its events differ in numbers, so that rejected ones are not
// counted as one.
func (d *costDoor) body(event []byte, size int) []byte {
	events := make([][]byte, max(1, size/len(event)))
	for i := range events {
		events[i] = bytes.Replace(event, []byte("_123"), fmt.Appendf(nil, "_%03d", i%1000), 1)
	}
	return d.frame(events...)
}

// bodyFaults are what is done to a body of valid events.
var bodyFaults = []struct {
	what   string
	broken func(body []byte) []byte
}{
	{"broken at the start", func(b []byte) []byte { b[0] = 0xc1; return b }},
	{"broken in the middle", func(b []byte) []byte { b[len(b)/2], b[len(b)/2+1] = 0xc1, 0x01; return b }},
	{"broken at the end", func(b []byte) []byte { return b[:len(b)-2] }},
	{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }},
	{"opening brackets", func(b []byte) []byte { return bytes.Repeat([]byte("["), len(b)) }},
}

// tooDeep and deepest are values of 80 levels of arrays, and twice of 40.
var tooDeep, deepest = nested(80), "[" + nested(39) + "," + nested(39) + "]"

func nested(n int) string { return strings.Repeat("[", n) + "1" + strings.Repeat("]", n) }

func between(begin, separator, end string) func(events ...[]byte) []byte {
	return func(events ...[]byte) []byte {
		return slices.Concat([]byte(begin), bytes.Join(events, []byte(separator)), []byte(end))
	}
}

// badTexts are events made of a valid one, in which costText is a string. wrap puts them
// where events are. The first is stored, at the cost of its mending.
func badTexts(valid, least string, wrap func(event string) []byte) []badEvent {
	text := func(more string) []byte { return wrap(strings.Replace(valid, costText, costText+more, 1)) }
	return []badEvent{
		{"stored events that are not UTF-8", text("\xff"), text("x")},
		{"events with a raw control character", text("\x01"), text("x")},
		{"events cut off", wrap(valid[:len(valid)-1]), wrap(valid)},
		{"events that are numbers", wrap("1"), wrap(least)},
		{"events that are null", wrap("null"), wrap(least)},
		{"events that are strings", wrap(`"` + costText + `"`), wrap(valid)},
	}
}

// badValues is badTexts where any value may be a text.
func badValues(valid, least string, wrap func(event string) []byte) []badEvent {
	with := func(value string) []byte { return wrap(strings.Replace(valid, `"`+costText+`"`, value, 1)) }
	return append(badTexts(valid, least, wrap),
		badEvent{"events with a wrong number", with("01"), with("10")},
		badEvent{"events too deep", with(tooDeep), with(deepest)},
		badEvent{"events with a long key", with(`{"` + strings.Repeat("k", 1100) + `":1}`), with(`{"` + strings.Repeat("k", 1000) + `":1}`)},
	)
}

func asIs(event string) []byte { return []byte(event) }

const costText = "failed to charge customer cus_123 in eu-west, attempt 2 of 3"

func costDoors() []costDoor {
	const (
		gelfMessage = `{"version":"1.1","host":"web-1","short_message":"` + costText + `","timestamp":1779972000.5,"level":3,"_service":"payment-api","_customer_id":"cus_123"}`

		plain  = `{"service":"payment-api","level":"error","message":"` + costText + `","timestamp":"2026-05-28T12:40:00Z","trace_id":"6f9c9b9d7a1a","metadata":{"customer_id":"cus_123","retry_count":2}}`
		record = `{"timeUnixNano":"1779972000000000000","severityNumber":17,"body":{"stringValue":"failed to charge customer"},"attributes":[` +
			`{"key":"text","value":{"stringValue":"` + costText + `"}},{"key":"customer_id","value":{"stringValue":"cus_123"}},{"key":"retry_count","value":{"intValue":"2"}}]}`
		entry  = `["1779972000000000000","` + costText + `",{"trace_id":"00000000002a"}]`
		doc    = `{"@timestamp":"2026-05-28T12:40:00Z","log.level":"error","message":"` + costText + `","customer_id":"cus_123","retry_count":2}`
		hec    = `{"time":1779972000.5,"host":"web-1","sourcetype":"_json","event":{"level":"error","message":"` + costText + `","customer_id":"cus_123","retry_count":2}}`
		log    = `{"timestamp":1779972000.5,"level":"error","body":"` + costText + `","trace_id":"5b8efff798038103d269b633813fc60c","attributes":{"customer_id":{"value":"cus_123","type":"string"}}}`
		sentry = `{"event_id":"9ec79c33ec9942ab8353589fcb2e04dc","timestamp":1779972000.5,"level":"error","message":"` + costText + `","exception":{"values":[{"type":"E","value":"x"}]}}`
		inJSON = "Content-Type: application/json\r\n"
	)
	create := func(doc string) []byte { return []byte(`{"create":{"_index":"logs"}}` + "\n" + doc + "\n") }
	item := func(event string) []byte {
		return fmt.Appendf(nil, "{\"type\":\"event\",\"length\":%d}\n%s\n", len(event), event)
	}
	pair := func(record string) []byte { return []byte("[1779972000," + record + "]") }
	frame := func(event string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte("2J\x00\x00\x00\x01"), uint32(len(event))), event...)
	}
	entryOf := func(message string) []byte {
		return []byte("__REALTIME_TIMESTAMP=1779972000500000\nPRIORITY=3\nSYSLOG_IDENTIFIER=payment-api\n_HOSTNAME=web-1\nMESSAGE=" + message + "\n\n")
	}
	frameLog := between(`{"items":[`, ",", "]}")
	lines, rows := between("", "\n", "\n"), between("", "", "")
	word := badEvent{"lines of a word", []byte("j_123"), []byte("{}")}
	doors := []costDoor{
		{"api/logs", "/api/logs", "", lines, []byte(plain), append(badValues(plain, "{}", asIs), word)},
		{"api/logs, an array", "/api/logs", "", between("[", ",", "]"), []byte(plain), badValues(plain, "{}", asIs)},
		{"lines over TCP", "tcp", "", lines, []byte(plain), append(badValues(plain, "{}", asIs), word)},
		{"OTLP in JSON", "/v1/logs", inJSON, between(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"payment-api"}}]},"scopeLogs":[{"logRecords":[`, ",", `]}]}]}`), []byte(record), badTexts(record, "{}", asIs)},
		{"Loki in JSON", "/loki/api/v1/push", inJSON, between(`{"streams":[{"stream":{"service_name":"payment-api","env":"prod"},"values":[`, ",", `]}]}`), []byte(entry), append(badTexts(entry, `["1",""]`, asIs),
			badEvent{"entries without a time", []byte(`["x","` + costText + `"]`), []byte(`["1","` + costText + `"]`)},
			badEvent{"lines too deep", []byte(`["1","{\"a\":` + tooDeep + `}"]`), []byte(`["1","{\"a\":` + deepest + `}"]`)},
		)},
		{"Elasticsearch", "/_bulk", "", rows, create(doc), append(badValues(doc, "{}", create),
			badEvent{"deletions", []byte(`{"delete":{"_index":"logs","_id":"1234567890"}}` + "\n"), create("{}")},
			badEvent{"updates", []byte(`{"update":{"_index":"logs"}}` + "\n" + doc + "\n"), create(doc)},
			badEvent{"unknown actions", []byte(`{"invent":{"_index":"logs"}}` + "\n" + doc + "\n"), create(doc)},
		)},
		{"Splunk", "/services/collector/event", "", rows, []byte(hec), append(badValues(hec, `{"event":1}`, asIs),
			badEvent{"events of nothing", []byte(`{}`), []byte(`{"event":1}`)},
			badEvent{"events without an event", []byte(`{"time":1779972000.5,"host":"web-1"}`), []byte(`{"time":1779972000.5,"event":"x"}`)},
			badEvent{"fields that are none", []byte(`{"event":"x","fields":1}`), []byte(`{"event":"x","fields":{}}`)},
		)},
		{"Splunk, an array", "/services/collector/event", "", between("[", ",", "]"), []byte(hec), badValues(hec, `{"event":1}`, asIs)},
		{"Sentry, logs", "/api/42/envelope/", "", func(events ...[]byte) []byte {
			list := frameLog(events...)
			return fmt.Appendf(nil, "{}\n{\"type\":\"log\",\"length\":%d}\n%s\n", len(list), list)
		}, []byte(log), badValues(log, "{}", asIs)},
		{"Sentry, events", "/api/42/envelope/", "", between("{}\n", "", ""), item(sentry), badValues(sentry, "{}", item)},
		{"GELF", "gelf", "", between("", "\x00", "\x00"), []byte(gelfMessage), append(badValues(gelfMessage, "{}", asIs),
			badEvent{"messages that are numbers", []byte("1"), []byte("{}")},
		)},
		{"forward in JSON", "forward", "", between(`["app.web",[`, ",", "]]"), pair(plain), badValues(plain, "{}", pair)},
		{"Lumberjack", "lumberjack", "", rows, frame(plain), append(badValues(plain, "{}", frame), badEvent{"lines of a word", frame("j_123"), frame("{}")})},
		{"Lumberjack, packed", "lumberjack", "", func(events ...[]byte) []byte {
			all := packed("deflate", rows(events...))
			return append(binary.BigEndian.AppendUint32([]byte("2C"), uint32(len(all))), all...)
		}, frame(plain), badValues(plain, "{}", frame)},
		{"syslog", "syslog", "", lines, []byte("<11>1 2026-05-28T12:40:00.5Z web-1 payment-api 812 charge - " + costText), []badEvent{
			{"messages too deep", []byte(`<11>{"a":` + tooDeep + `}`), []byte(`<11>{"a":` + deepest + `}`)},
			{"messages with a long key", []byte(`<11>{"` + strings.Repeat("k", 1100) + `":1}`), []byte(`<11>{"` + strings.Repeat("k", 1000) + `":1}`)},
			{"binary messages", []byte("<11>" + costText + "\x01\x02\xff"), []byte("<11>" + costText + "\x01\xff\xff")},
		}},
		{"systemd's journal", "/upload", "Content-Type: application/vnd.fdo.journal\r\n", rows, entryOf(costText), []badEvent{
			{"binary messages", entryOf(costText + "\x01\x02\xff"), entryOf(costText + "\x01\xff\xff")},
			{"short binary messages", []byte("MESSAGE=\x00\xff_123\n\n"), []byte("MESSAGE=\xff\xff_123\n\n")},
		}},
	}
	for _, coding := range []string{"gzip", "deflate", "zstd", "snappy", "br"} {
		pack := func(events ...[]byte) []byte { return packed(coding, lines(events...)) }
		doors = append(doors, costDoor{"api/logs, " + coding, "/api/logs", "Content-Encoding: " + coding + "\r\n", pack, []byte(plain), []badEvent{{"small bombs", []byte("1"), []byte("{}")}}})
	}
	return append(doors, binaryDoors()...)
}

// packed is a body by a Content-Encoding.
func packed(coding string, body []byte) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b) // without options it does not fail
	case "snappy":
		return snappy.Encode(nil, body)
	case "br":
		w = brotli.NewWriter(&b)
	}
	w.Write(body) // to memory
	w.Close()
	return b.Bytes()
}

// binaryDoors are those of protocol buffers and MessagePack.
func binaryDoors() []costDoor {
	field := func(num protowire.Number, parts ...[]byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), slices.Concat(parts...))
	}
	text := func(s string) []byte { return field(1, []byte(s)) }
	record := func(key string, value []byte) []byte {
		return field(2, field(5, text(costText)), field(6, text(key), field(2, value)))
	}
	arrays := func(n int) []byte {
		v := text("x")
		for range n {
			v = field(5, field(1, v))
		}
		return v
	}
	deep := field(5, field(1, arrays(39)), field(1, arrays(39)))
	var many [2][]byte
	for i := range 1100 {
		pair := field(6, text(strconv.Itoa(i)), field(2, text("v")))
		if many[0] = append(many[0], pair...); i < 1000 {
			many[1] = append(many[1], pair...)
		}
	}
	entry := func(line string) []byte { return field(2, field(2, []byte(line))) }
	str := func(s string) []byte {
		if len(s) < 32 {
			return append([]byte{0xa0 | byte(len(s))}, s...)
		}
		return append(binary.BigEndian.AppendUint16([]byte{0xda}, uint16(len(s))), s...)
	}
	pack := func(key string, value []byte) []byte {
		return slices.Concat([]byte{0x92, 0xce, 0x6a, 0x18, 0x37, 0x20, 0x82}, str("message"), str(costText), str(key), value)
	}
	nest := func(n int) []byte { return append(bytes.Repeat([]byte{0x91}, n), 1) }
	list := func(kind byte, n int, all []byte) []byte { // of n events, or of their bytes
		head := append([]byte{0x92}, str("app.web")...)
		return append(binary.BigEndian.AppendUint32(append(head, kind), uint32(n)), all...)
	}
	leastPack := []byte{0x92, 0, 0x80}
	badPacks := []badEvent{
		{"events too deep", pack("k", nest(80)), pack("k", slices.Concat([]byte{0x92}, nest(39), nest(39)))},
		{"events with a long key", pack(strings.Repeat("k", 1100), str("")), pack(strings.Repeat("k", 1000), str(""))},
		{"events that are numbers", []byte{1}, leastPack},
		{"events that are nil", []byte{0xc0}, leastPack},
		{"records that are numbers", []byte{0x92, 0, 1}, leastPack},
	}
	return []costDoor{
		{"OTLP in protobuf", "/v1/logs", "Content-Type: application/x-protobuf\r\n", func(events ...[]byte) []byte {
			return field(1, field(1, field(1, text("service.name"), field(2, text("payment-api")))), field(2, events...))
		}, record("customer_id", text("cus_123")), []badEvent{
			{"events too deep", record("k", arrays(80)), record("k", deep)},
			{"events with a long key", record(strings.Repeat("k", 1100), text("")), record(strings.Repeat("k", 1000), text(""))},
			{"events with too many fields", field(2, many[0]), field(2, many[1])},
		}},
		{"Loki in protobuf", "/loki/api/v1/push", "", func(events ...[]byte) []byte {
			return snappy.Encode(nil, field(1, text(`{service_name="payment-api", env="prod"}`), slices.Concat(events...)))
		}, entry(costText), []badEvent{
			{"lines too deep", entry(`{"a":` + tooDeep + `}`), entry(`{"a":` + deepest + `}`)},
			{"lines with a long key", entry(`{"` + strings.Repeat("k", 1100) + `":1}`), entry(`{"` + strings.Repeat("k", 1000) + `":1}`)},
		}},
		{"forward", "forward", "", func(events ...[]byte) []byte {
			return list(0xdd, len(events), slices.Concat(events...))
		}, pack("customer_id", str("cus_123")), badPacks},
		{"forward, packed", "forward", "", func(events ...[]byte) []byte {
			all := slices.Concat(events...)
			return list(0xc6, len(all), all)
		}, pack("customer_id", str("cus_123")), badPacks},
	}
}

// cpuTime is what this process has used of processors.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	testkit.OK(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A costClient sends bodies over one connection after the other.
type costClient struct {
	addr    string
	stream  bool
	conn    net.Conn
	answers *bufio.Reader
}

func (c *costClient) dial(t testing.TB) {
	var err error
	if c.conn == nil {
		c.conn, err = net.Dial("tcp", c.addr)
		testkit.OK(t, err)
		c.answers = bufio.NewReader(c.conn)
	}
}

func (c *costClient) hangUp() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// send sends a request, or what is all of a connection, and returns the status of the answer.
func (c *costClient) send(t testing.TB, request []byte) int {
	c.dial(t)
	if c.stream {
		c.conn.Write(request) // fails if the connection is closed before all is read
		c.conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c.conn)
		c.hangUp()
		return 0
	}
	c.conn.Write(request)
	resp, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.Close {
		c.hangUp()
	}
	return resp.StatusCode
}

// costBackend stores nothing, so that valid bytes cost what reading them does, and keeps dead
// letters.
type costBackend struct{ rejected *deadletter.Store }

func (costBackend) Store(context.Context, *normalize.Batch, receiver.StoreOptions) (receiver.Stored, error) {
	return receiver.Stored{}, nil
}

func (costBackend) Policy() *receiver.Policy { return new(receiver.Policy) }

func (b costBackend) Reject(o receiver.Origin, batch *normalize.Batch) {
	b.rejected.Add(deadletter.Origin(o), batch)
}

// costServer serves all receivers, and returns where: HTTP at "", streams by their names.
func costServer(t *testing.T) map[string]string {
	rejected, err := deadletter.Open(t.TempDir(), deadletter.Options{MaxBytes: 64 << 20})
	testkit.OK(t, err)
	t.Cleanup(func() { rejected.Close() })
	r := receiver.New(costBackend{rejected}, receiver.Options{KeepRejected: 1 << 20})
	mux := http.NewServeMux()
	mux.Handle("/api/logs", r)
	for _, e := range endpoints.All {
		if e.Protocol != nil && !e.GRPC {
			mux.Handle(e.Path, r.Handler(e.Protocol))
		}
	}
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	addrs := map[string]string{"": web.Listener.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(cancel)
	for name, p := range map[string]receiver.StreamProtocol{"tcp": receiver.NDJSON{MaxLine: 1 << 20}, "syslog": syslog.Protocol{}, "forward": forward.Protocol{}, "gelf": gelf.Protocol{}, "lumberjack": lumberjack.Protocol{}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.OK(t, err)
		addrs[name] = l.Addr().String()
		serving.Go(func() { r.ServeStream(ctx, l, p, nil) })
	}
	return addrs
}

// A byte that is rejected costs at most twice what a valid one costs, at every receiver: in
// time on processors, the client's with it, that a body takes whose events are bad, by what
// one takes that is as much like it as can be. What is refused before it is read costs nothing
// but its header: TestDeclaredTooLarge.
func TestRedteamRejectedBytes(t *testing.T) {
	testkit.NoRace(t, "it measures time")
	const few = 3 // by so few, beside other tests, what is right below 2 is above it now and then
	rounds, bar := testkit.Rounds(t, testkit.Redteam, few, 31), 2.0
	if rounds == few {
		bar = 3
	}
	addrs := costServer(t)
	for _, d := range costDoors() {
		c := &costClient{addr: addrs[d.path], stream: addrs[d.path] != ""}
		if !c.stream {
			c.addr = addrs[""]
		}
		worst, what, valid := 0.0, "", 0.0
		compare := func(name string, bad, like []byte) {
			ratio, cost := 0.0, 0.0
			// What is above the bar is measured again, for longer: others use the machine.
			for n := rounds; n < 100*rounds; n *= 5 {
				if ratio, cost = c.compare(t, n, d.request(bad), d.request(like)); ratio <= bar {
					break
				}
			}
			if ratio > bar {
				t.Errorf("%s: a byte of %s costs %.2f times a valid one", d.name, name, ratio)
			}
			if ratio > worst {
				worst, what, valid = ratio, name, cost
			}
			t.Logf("%-20s %-36s %5.2f × %.1f ns", d.name, name, ratio, cost)
		}
		body := d.body(d.valid, costBody)
		for _, f := range bodyFaults {
			compare("bodies: "+f.what, f.broken(bytes.Clone(body)), body)
		}
		for _, e := range d.bad {
			compare(e.what, d.body(e.text, costBody), d.body(e.like, costBody))
		}
		testkit.Attack{
			Attack: "rejected bytes at " + d.name, Times: perRound * rounds * (len(bodyFaults) + len(d.bad)), Promised: "≤ 2 × the time of valid ones",
			Measured: fmt.Sprintf("≤ %.2f × %.1f ns, %s", worst, valid, what),
		}.Report(t)
	}
}

// request is what is sent with a body.
func (d *costDoor) request(body []byte) []byte {
	if !strings.HasPrefix(d.path, "/") {
		return body
	}
	return slices.Concat(fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: collector\r\n%sContent-Length: %d\r\n\r\n", d.path, d.header, len(body)), body)
}

// compare returns what a byte of bad costs in those of like, and what such a one costs in
// nanoseconds: medians of so many rounds, in turns.
func (c *costClient) compare(t *testing.T, rounds int, bad, like []byte) (ratio, nanoseconds float64) {
	defer c.hangUp()
	var costs [2][]float64
	for range rounds {
		for i, request := range [...][]byte{bad, like} {
			begin := cpuTime(t)
			for range perRound {
				if code := c.send(t, request); i == 1 && code >= 300 {
					t.Fatalf("%.300q is answered %d", request, code)
				}
			}
			costs[i] = append(costs[i], float64(cpuTime(t)-begin)/perRound/float64(len(request)))
		}
	}
	for i := range costs {
		slices.Sort(costs[i])
	}
	return costs[0][rounds/2] / costs[1][rounds/2], costs[1][rounds/2]
}
