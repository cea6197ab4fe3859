package splunk

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
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
	s := decodetest.NewServer(t, func(o *receiver.Options) { o.Limits = limits })
	mux := http.NewServeMux()
	mux.Handle("/event", s.Handler(Event))
	mux.Handle("/raw", s.Handler(Raw))
	return s, mux
}

const stamp = `{"time":"2026-05-28T12:40:00.500000000Z","level":`

func TestEvents(t *testing.T) {
	for _, tt := range []struct{ event, want string }{ // the time is put first
		{`"event":"hi"`, `"INFO","msg":"hi"}`},
		{`"event":5`, `"INFO","msg":"5"}`},
		{`"event":false`, `"INFO","msg":"false"}`},
		{`"event":["a"]`, `"INFO","attrs":{"event":["a"]}}`},
		{`"host":"h","source":"s","sourcetype":"t","index":"main","event":"hi"`,
			`"INFO","msg":"hi","attrs":{"host":"h","source":"s","sourcetype":"t","index":"main"}}`},
		{`"event":{"message":"hi","severity":"warn","time":1,"user":{"id":1}},"fields":{"level":"x","n":[1, 2]}`,
			`"WARN","msg":"hi","attrs":{"time":1,"user":{"id":1},"level":"x","n":[1,2]}}`},
		{`"event":{"fields":{"\u0061":1}},"extra":{"b":2},"event":"second"`, `"INFO","attrs":{"a":1,"extra":{"b":2},"event":"second"}}`},
		{`"event":"hi","fields":null`, `"INFO","msg":"hi","attrs":{"fields":null}}`},
		{`"event":{"severity":"info","message":{"msg":"hi","message":{"a":1}}}`, `"INFO","msg":"hi","attrs":{"message":{"a":1}}}`},
		{`"event":{}`, `"INFO"}`},
	} {
		for _, time := range []string{`1779972000.5`, `"1779972000.500"`, `1779972000500`, `"2026-05-28T12:40:00.5Z"`} {
			s, h := newServer(t, normalize.Limits{})
			body := `{"time":` + time + `,` + tt.event + `}`
			rec := decodetest.Send(h, "/event", body)
			if rec.Code != 200 || rec.Body.String() != `{"text":"Success","code":0}`+"\n" || len(s.Lines) != 1 || s.Lines[0] != stamp+tt.want {
				t.Errorf("%s\n got %q\nwant %s\n%d %s", body, s.Lines, stamp+tt.want, rec.Code, rec.Body)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	good := `{"event":"x"}`
	for _, tt := range []struct {
		path, body string
		lines      int
		code       int
		want       string
	}{
		{"/event", good + good + "\n\n" + good, 3, 200, `{"text":"Success","code":0}`},
		{"/event", "[" + good + "," + good + "] " + good, 3, 200, `{"text":"Success","code":0}`},
		{"/event", "", 0, 400, `{"text":"No data","code":5}`},
		{"/event", " \n", 0, 400, `{"text":"No data","code":5}`},
		{"/event", "[]", 0, 400, `{"text":"No data","code":5}`},
		{"/event", "nonsense", 0, 400, `{"text":"Invalid data format","code":6,"invalid-event-number":0,"stored":0}`},
		{"/event", good + `{"event":`, 1, 400, `{"text":"Invalid data format","code":6,"invalid-event-number":1,"stored":1}`},
		{"/event", good + `{"event":"x"}}` + good, 2, 400, `{"text":"Invalid data format","code":6,"invalid-event-number":2,"stored":2}`},
		{"/event", good + `5` + good, 2, 400, `{"text":"Invalid data format","code":6,"invalid-event-number":1,"stored":2}`},
		{"/event", good + `{"time":1}{"event":""}` + good, 2, 400, `{"text":"Event field is required","code":12,"invalid-event-number":1,"stored":2}`},
		{"/event", `{"event":null}`, 0, 400, `{"text":"Event field is required","code":12,"invalid-event-number":0,"stored":0}`},
		{"/event", `{"event":""}`, 0, 400, `{"text":"Event field cannot be blank","code":13,"invalid-event-number":0,"stored":0}`},
		{"/event", `{"event":"x","fields":[1]}`, 0, 400, `{"text":"Error in handling indexed fields","code":15,"invalid-event-number":0,"stored":0}`},
		{"/event", good + "{\"event\":\"caf\xe9\"}" + good, 3, 200, `{"text":"Success","code":0}`},
		{"/event", good + `{"event":"` + strings.Repeat("x", 300) + `"}`, 1, 400, `{"text":"Invalid data format","code":6,"invalid-event-number":1,"stored":1}`},
		{"/event", good + `{"event":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, 1, 400, `{"text":"Invalid data format","code":6,"invalid-event-number":1,"stored":1}`},
		{"/event", strings.Repeat(good, 11), 10, 400, `{"text":"Invalid data format","code":6,"invalid-event-number":10,"stored":10}`},
		{"/raw", "one\n\n two \r\nthree", 3, 200, `{"text":"Success","code":0}`},
		{"/raw", "\n\r\n", 0, 400, `{"text":"No data","code":5}`},
		{"/raw", "one\n" + strings.Repeat("x", 300), 1, 400, `{"text":"Invalid data format","code":6,"invalid-event-number":1,"stored":1}`},
	} {
		s, h := newServer(t, normalize.Limits{MaxEventBytes: 200, MaxEvents: 10})
		rec := decodetest.Send(h, tt.path, tt.body)
		if rec.Code != tt.code || rec.Body.String() != tt.want+"\n" || len(s.Lines) != tt.lines {
			t.Errorf("%.80q: %d %s, %q\nwant %d %s", tt.body, rec.Code, rec.Body, s.Lines, tt.code, tt.want)
		}
	}
}

func TestRaw(t *testing.T) {
	s, h := newServer(t, normalize.Limits{})
	decodetest.Send(h, "/raw?host=h&sourcetype=t%22&channel=c&unknown=x", "one {\"a\":1}\n\n\ttwo\xff\n")
	if len(s.Lines) != 2 || !strings.HasSuffix(s.Lines[0], `"level":"INFO","msg":"one {\"a\":1}","attrs":{"host":"h","sourcetype":"t\""}}`) ||
		!strings.Contains(s.Lines[1], `"msg":"\ttwo`+"\uFFFD"+`"`) {
		t.Errorf("%q", s.Lines)
	}
}

func TestAcks(t *testing.T) {
	_, h := newServer(t, normalize.Limits{})
	for i, want := range []string{`"ackId":0}`, `"ackId":2}`} {
		rec := decodetest.Send(h, "/event", `{"event":1}{"event":2}`, "X-Splunk-Request-Channel", "0aeeac95-ac74-4aa9-b30d-6c4c0ac581ba")
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%d: %s", i, rec.Body)
		}
	}
	if rec := decodetest.Send(h, "/event?channel=x", `{"event":1}`); !strings.Contains(rec.Body.String(), `"ackId":4}`) {
		t.Error(rec.Body)
	}
	if rec := decodetest.Send(h, "/event?channel=x", `{}`); rec.Code != 400 || strings.Contains(rec.Body.String(), "ackId") {
		t.Error(rec.Body)
	}
	if rec := decodetest.Send(Acks, "/ack", `{"acks":[0,2]}`); rec.Code != 200 || rec.Body.String() != `{"acks":{"0":true,"2":true}}` {
		t.Error(rec.Code, rec.Body)
	}
	if rec := decodetest.Send(Acks, "/ack", `{"acks":["x"]}`); rec.Code != 400 || !json.Valid(rec.Body.Bytes()) {
		t.Error(rec.Code, rec.Body)
	}
}

func TestFull(t *testing.T) {
	for err, want := range map[error]struct {
		code int
		text string
	}{
		receiver.ErrFull:     {503, `{"text":"Server is busy","code":9,"detail":`},
		os.ErrClosed:         {503, `{"text":"Server is busy","code":9,"detail":`},
		errors.New("broken"): {500, `{"text":"Internal server error","code":8,"detail":`},
	} {
		s, h := newServer(t, normalize.Limits{})
		s.Fail = err
		rec := decodetest.Send(h, "/event", `{"event":1}`)
		if rec.Code != want.code || !strings.HasPrefix(rec.Body.String(), want.text) || (rec.Header().Get("Retry-After") != "") != (want.code == 503) {
			t.Errorf("%v: %d %v %s", err, rec.Code, rec.Header(), rec.Body)
		}
	}
}

const everyCase = `{"time":1779972000.5,"host":"h","event":{"message":"x","a\u0062":{"c":[1]},"fields":{"d":1}},"fields":{"e":"f"}} {"event":"text","source":"s"}`

func TestNoAllocationPerEvent(t *testing.T) {
	norm, batch := normalize.New(normalize.Limits{}), new(normalize.Batch)
	req := httptest.NewRequest("POST", "/event", nil)
	for name, p := range map[string]receiver.Protocol{everyCase: Event, "one\ntwo\n": Raw} {
		var note []byte
		cost := func(events int) uint64 {
			body := []byte(strings.Repeat(name, events/2))
			return testkit.Mallocs(func() {
				batch.Reset()
				var err error
				if note, err = decodetest.Decode(p, norm, batch, req, body, note[:0]); err != nil || batch.Records != events {
					t.Fatal(err, batch.Records, batch.Rejected)
				}
			})
		}
		cost(2000)
		if few, many := cost(2), cost(2000); many > few+10 && !pool.Poisons { // such a pool allocates
			t.Errorf("%.20s: 2 events: %d allocations, 2000 events: %d", name, few, many)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	body := strings.Repeat(`{"time":1779972000.123,"host":"web-1","sourcetype":"app","event":{"level":"info","message":"payment taken","service":"payment-api","customer_id":"cus_123","amount":1299}}`, 100)
	decodetest.Benchmark(b, Event, "application/json", body, 100)
}

// FuzzDecode checks that lines and answers are JSON, and that an answer of 200
// means that nothing was left out.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(everyCase))
	f.Add([]byte(`{"event":null}[{"event":""},5]{"event":"x","fields":[]}`))
	decodetest.AddRecorded(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, limits := range decodetest.FuzzLimits() {
			for _, p := range []receiver.Protocol{Event, Raw} {
				norm, batch := normalize.New(limits), new(normalize.Batch)
				req := httptest.NewRequest("POST", "/?channel=1&host=h", nil)
				note, err := decodetest.Decode(p, norm, batch, req, bytes.Clone(body), nil)
				decodetest.CheckLines(t, batch)
				if (err != nil) != (batch.Records+batch.RejectedTotal == 0) {
					t.Fatalf("%v: %d stored, %d rejected", err, batch.Records, batch.RejectedTotal)
				}
				if err != nil {
					continue
				}
				a := receiver.Answer{Code: 200, Batch: batch, Stored: batch.Records, Note: note, Header: http.Header{}}
				p.Answer(&a)
				if !json.Valid(a.Body) || (a.Code == 200) != (batch.RejectedTotal == 0) {
					t.Fatalf("%d %s", a.Code, a.Body)
				}
			}
		}
	})
}

// TestJoins sends what Docker's driver, Fluent Bit and Vector do. The numbers of events are
// those of the sender.
func TestJoins(t *testing.T) {
	for _, tt := range []struct{ name, event, rest string }{
		{"Docker", `{"line":"TEXT","source":"stderr","tag":"a"}`, `,"attrs":{"source":"stderr","tag":"a","host":"h"`},
		{"Fluent Bit", `{"log":"TEXT","stream":"stderr"}`, `,"attrs":{"stream":"stderr","host":"h"`},
		{"Vector", `"TEXT"`, `,"attrs":{"host":"h"`},
	} {
		s, h := newServer(t, normalize.Limits{})
		body := ""
		for i, text := range []string{"begun", "panic: it failed", "", "goroutine 1 [running]:", "main.main()", `\t/a.go:7 +0x1d`, "done"} {
			if text != "" {
				body += `{"time":` + strconv.Itoa(1779972000+i) + `,"host":"h","event":` + strings.Replace(tt.event, "TEXT", text, 1) + `}` + "\n"
			}
		}
		rec := decodetest.Send(h, "/event", body+"7")
		want := []string{`"begun"`, `"panic: it failed\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:7 +0x1d"`, `"done"`}
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), `"invalid-event-number":6,"stored":3`) || len(s.Lines) != len(want) {
			t.Fatalf("%s: %d %s, %q", tt.name, rec.Code, rec.Body, s.Lines)
		}
		for i, line := range s.Lines {
			if !strings.Contains(line, `"msg":`+want[i]+`,`) || !strings.Contains(line, tt.rest) {
				t.Errorf("%s: %s, want %s%s", tt.name, line, want[i], tt.rest)
			}
		}
		if !strings.Contains(s.Lines[1], `"time":"2026-05-28T12:40:01`) {
			t.Errorf("%s: not the time of the first line: %s", tt.name, s.Lines[1])
		}
	}
}
