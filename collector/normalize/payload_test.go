package normalize

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/testkit"
)

// inside are the ways in which an event comes as the text of another one.
var inside = map[string]func(b *Batch, n *Normalizer, text string){
	"log":     member("log", ""),
	"message": member("message", ""),
	"MESSAGE": member("MESSAGE", ""),
	"line":    member("line", "\n"),
	"body":    member("body", " \r\n"),
	"Slot": func(b *Batch, n *Normalizer, text string) {
		build := n.Build(b, received)
		build.Begin()
		build.Slot(Message)
		build.String([]byte(text))
		build.End()
		build.Done()
	},
	"Field": func(b *Batch, n *Normalizer, text string) {
		build := n.Build(b, received)
		build.Begin()
		build.Field([]byte("short_message"))
		build.String([]byte("  " + text))
		build.End()
		build.Done()
	},
	"Message": func(b *Batch, n *Normalizer, text string) {
		build := n.Build(b, received)
		build.Begin()
		build.Message([]byte(" @cee: " + text + "\n"))
		build.End()
		build.Done()
	},
}

func member(name, end string) func(b *Batch, n *Normalizer, text string) {
	return func(b *Batch, n *Normalizer, text string) {
		n.Body(b, []byte(`{"`+name+`":`+inQuotes(text+end)+`}`), received)
	}
}

func inQuotes(text string) string {
	q, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(q)
}

// TestPayloadIsTheEvent: an event that is the text of another one has the line that it has
// when it comes by itself.
func TestPayloadIsTheEvent(t *testing.T) {
	events := []string{article, articleLine, `{"a":1}`, `{"msg":"x","msg":"y"}`, `{"attrs":{"a":1},"a":{"b":[1, 2]}}`, `{"log":{"level":"warn"},"message":"x"}`,
		`{"level":"error","msg":"{\"a\":1}"}`, `{"level":"error","msg":"\ud83d\ude00 \ud800"}`, "{\"msg\":\"x\",\n  \"level\" : \"warn\"}",
		`{"trace_id":"AQIDBAUGBwgJCgsMDQ4P/w=="}`, `{"message":"2026-05-28 12:40:00 ERROR x"}`}
	for _, c := range libraries {
		events = append(events, c.in)
	}
	n := New(Limits{})
	for _, event := range events {
		flat := new(Batch)
		n.Body(flat, []byte(event), received)
		for name, send := range inside {
			b := new(Batch)
			send(b, n, event)
			checkBatch(t, b)
			if string(b.Lines) != string(flat.Lines) {
				t.Errorf("%s of %s:\n got %s\nwant %s", name, event, b.Lines, flat.Lines)
			}
		}
	}
}

// TestPayload: what counts where a payload and the event around it both say something, and
// what stays text.
func TestPayload(t *testing.T) {
	const at, now = `{"time":"2026-05-28T12:40:00.000000000Z",`, `{"time":"` + receivedText + `",`
	lines := []struct{ in, want string }{
		// Docker's fluentd driver, a container of Kubernetes
		{`{"container_name":"/shop","source":"stderr","log":"{\"level\":\"error\",\"msg\":\"x\",\"trace_id\":\"abc\"}"}`,
			now + `"level":"ERROR","msg":"x","service":"shop","trace_id":"abc","attrs":{"container_name":"/shop","source":"stderr"}}`},
		{`{"time":"2026-05-28T12:40:07Z","stream":"stdout","log":"{\"level\":\"warn\",\"ts\":1779972000,\"msg\":\"x\"}\n"}`,
			at + `"level":"WARN","msg":"x","attrs":{"stream":"stdout","time":"2026-05-28T12:40:07.000000000Z"}}`},
		// journald
		{`{"PRIORITY":"6","SYSLOG_IDENTIFIER":"shop","MESSAGE":"{\"level\":\"error\",\"msg\":\"x\",\"service\":\"cart\"}"}`,
			now + `"level":"ERROR","msg":"x","service":"cart","attrs":{"level":"INFO","service":"shop"}}`},
		// the same is said once
		{`{"level":"error","service":"shop","message":"{\"level\":\"error\",\"msg\":\"x\",\"service\":\"shop\"}"}`, now + `"level":"ERROR","msg":"x","service":"shop"}`},
		// what a program prints is not an event
		{`{"level":"error","time":1779972000,"message":"{\"date\":\"2020-01-01T00:00:00Z\",\"order\":7}"}`, at + `"level":"ERROR","msg":"{\"date\":\"2020-01-01T00:00:00Z\",\"order\":7}"}`},
		{`{"level":"error","time":1779972000,"message":"{\"level\":50,\"user\":7}"}`, at + `"level":"ERROR","msg":"{\"level\":50,\"user\":7}"}`},
		{`{"level":"error","time":1779972000,"message":"{\"level\":5.5,\"user\":7}"}`, at + `"level":"ERROR","attrs":{"level":5.5,"user":7}}`},
		{`{"time":1779972000,"message":"{\"level\":\"warn\",\"user\":7}"}`, at + `"level":"WARN","attrs":{"user":7}}`},
		// in each other
		{`{"log":"{\"log\":\"{\\\"level\\\":\\\"error\\\",\\\"msg\\\":\\\"x\\\"}\\n\",\"stream\":\"stderr\"}"}`, now + `"level":"ERROR","msg":"x","attrs":{"stream":"stderr"}}`},
		// a container runtime's lines
		{`{"log":"2026-05-28T12:40:00.0Z stderr F {\"level\":\"error\",\"msg\":\"x\"}\n"}`, at + `"level":"ERROR","msg":"x","attrs":{"stream":"stderr"}}`},
		{`{"time":1779972001,"msg":"2026-05-28T12:40:00Z stdout F level=error msg=x"}`, at + `"level":"ERROR","msg":"x","attrs":{"stream":"stdout","time":"2026-05-28T12:40:01.000000000Z"}}`},
		{`{"msg":"2026-05-28T12:40:00Z stdout F text"}`, at + `"level":"INFO","msg":"2026-05-28T12:40:00Z stdout F text"}`},
		{`{"msg":"2026-05-28T12:40:00Z stdout P {\"a\":1}"}`, at + `"level":"INFO","msg":"2026-05-28T12:40:00Z stdout P {\"a\":1}"}`},
		// logfmt
		{`{"log":"level=error ts=2026-05-28T12:40:00Z msg=\"not \\\"found\\\"\" status=404 took=1.5 id=007 e=1e5 ok=true path=C:\\x empty= @x=-1"}`,
			at + `"level":"ERROR","msg":"not \"found\"","attrs":{"status":404,"took":1.5,"id":"007","e":"1e5","ok":true,"path":"C:\\x","empty":"","@x":-1}}`},
		{`{"log":"t=2026-05-28T12:40:00Z lvl=eror msg=\"a\\tb\\x1b[0m\" logger=settings"}`, at + `"level":"ERROR","msg":"a\tb\u001b[0m","logger":"settings"}`},
		{`{"log":"time=\"2026-05-28T12:40:00Z\" level=warning msg=\"a\nb\"  a=b=c "}`, at + `"level":"WARN","msg":"a\u000ab","attrs":{"a":"b=c"}}`},
	}
	for _, text := range []string{
		`{}`, ` { } `, `{"a":1}}`, `{"a":1} x`, `x {"a":1}`, `{"a":1}{"b":2}`, `{"a":1`, `{'a':1}`, `[{"a":1}]`, "{not}",
		`level=error`, `level=error x`, `level=error msg="x`, `level=error msg="x"y`, `level=error msg=x"y"`, `a=1 b=2`, `at=info method=GET path=/ service=18ms`,
		`type=SYSCALL msg=audit(24287): arch=c000003e`, `level=loud msg=x`, `x level=error msg=y`, `level=error msg="\q"`, `level=error msg="\xff"`, `level=error msg="\x8`,
		`level=error, msg=x`, `"level"=error msg=x`, `=error msg=x`, `9=error msg=x`, `a==b`, `x = 1`,
	} {
		lines = append(lines, struct{ in, want string }{`{"msg":` + inQuotes(text) + `}`, now + `"level":"INFO","msg":` + inQuotes(text) + `}`})
	}
	b, build := new(Batch), New(Limits{})
	for _, text := range []string{`{"a":1}\n`, `\n{"a":1}`} { // which are no escapes
		e := build.Build(b, received)
		e.Begin()
		e.Message([]byte(text))
		e.End()
		e.Done()
		if want := now + `"level":"INFO","msg":` + inQuotes(text) + "}\n"; !strings.HasSuffix(string(b.Lines), want) {
			t.Errorf("%s became %s", text, b.Lines)
		}
	}
	lines = append(lines, struct{ in, want string }{`{"msg":"{\"a\":\"\ud800\"}"}`, now + `"level":"INFO","msg":"{\"a\":\"\ud800\"}"}`})
	for _, c := range lines {
		b, err := normalizeBody(t, Limits{}, c.in)
		if got := strings.TrimSuffix(string(b.Lines), "\n"); err != nil || got != c.want {
			t.Errorf("%s:\n got %s\nwant %s\n%v", c.in, got, c.want, err)
		}
		if off, _ := normalizeBody(t, Limits{Text: Text{Closed: true}}, c.in); off.Records != 1 {
			t.Errorf("%s: %+v", c.in, off.Rejected)
		}
	}
	off, _ := normalizeBody(t, Limits{Text: Text{Closed: true}}, `{"log":"{\"level\":\"error\",\"msg\":\"x\"}"}`)
	if got := string(off.Lines); got != now+`"level":"INFO","msg":"{\"level\":\"error\",\"msg\":\"x\"}"}`+"\n" {
		t.Errorf("off: %s", got)
	}
}

// FuzzPayload: a text that is opened is the event that it is by itself, and no event is
// rejected because of it.
func FuzzPayload(f *testing.F) {
	for _, c := range libraries {
		f.Add(c.in, uint8(0))
	}
	for _, s := range append(seeds, `a=1 level="err\x41" msg=x`, `{"msg":"level=warn msg=\"{\\\"time\\\":1}\""}`) {
		f.Add(s, uint8(3))
	}
	small := Limits{MaxEventBytes: 300, MaxDepth: 6, MaxFields: 8, MaxKeyBytes: 20, MaxValueBytes: 100}
	around := []string{"", `"time":1779972000,`, `"level":"warn","a":1,"a":2,`, `"time":1,"severity":"x","level":"warn","service":"s","error":{"a":1},"trace_id":"x","msg_2":1,"container":"c",`}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		if !utf8.ValidString(text) {
			return
		}
		for _, limits := range []Limits{{}, small} {
			event := []byte(`{` + around[int(which)%len(around)] + `"log":` + inQuotes(text) + `}`)
			closed, open := limits, new(Batch)
			closed.Text.Closed = true
			n, shut := New(closed), new(Batch)
			n.Body(shut, event, received)
			n = New(limits)
			n.Body(open, event, received)
			checkBatch(t, open)
			if shut.Records != open.Records || open.Events() != 1 {
				t.Fatalf("%s: %d lines if it is opened, %d otherwise: %+v", event, open.Records, shut.Records, open.Rejected)
			}
			again := new(Batch)
			n.Body(again, event, received)
			if !bytes.Equal(again.Lines, open.Lines) {
				t.Fatalf("first %sthen %s", open.Lines, again.Lines)
			}
			if limits.MaxFields == 0 && int(which)%len(around) == 0 && json.Valid([]byte(text)) && strings.HasPrefix(strings.TrimSpace(text), `{"`) {
				flat := new(Batch)
				if n.Line(flat, []byte(strings.ReplaceAll(text, "\n", " ")), received); flat.Records == 1 && flat.Events() == 1 && !strings.Contains(text, `log`) && !strings.Contains(text, `\u`) && !bytes.Equal(flat.Lines, open.Lines) {
					t.Fatalf("flat %sopen %s", flat.Lines, open.Lines)
				}
			}
		}
	})
}

func TestPayloadWithoutAllocation(t *testing.T) {
	var body []byte
	for _, text := range []string{article, articleLine, `level=error msg="x y" a=1 b="c\td"`, `{"level":5,"a":1}`, `{"a":1`, `{"msg":"{\"a\":1}"}`} {
		body = append(body, `{"time":1779972000,"level":"warn","container_name":"/x","kubernetes":{"labels":{"app":"y"}},"log":`+inQuotes(text)+"}\n"...)
	}
	n, b := New(Limits{}), new(Batch)
	if got := testkit.Mallocs(func() {
		b.Reset()
		if err := n.Body(b, body, received); err != nil || b.RejectedTotal > 0 {
			t.Fatal(err, b.Rejected)
		}
	}); got != 0 {
		t.Errorf("%d allocations for %d events", got, b.Records)
	}
}

// BenchmarkPayload compares an event that comes by itself with the same in a line.
func BenchmarkPayload(b *testing.B) {
	flat, text := bytes.Repeat([]byte(article+"\n"), 100), bytes.Repeat([]byte(`{"log":`+inQuotes(article)+"}\n"), 100)
	n, batch := New(Limits{}), new(Batch)
	for name, body := range map[string][]byte{"flat": flat, "line": text} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				n.Body(batch, body, received)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
		})
	}
}
