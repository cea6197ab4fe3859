package normalize

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// Which of several names counts.
func TestSecondNames(t *testing.T) {
	const t1, t2 = `"2026-05-28T12:40:00Z"`, `"2026-05-28T12:40:01Z"`
	for _, c := range []struct{ name, in, want string }{
		{"a first name counts, wherever it is", `{"levelname":"ERROR","level":"warn","_msg":"a","msg":"b","@t":` + t1 + `,"ts":` + t2 + `}`,
			`{"time":"2026-05-28T12:40:01.000000000Z","level":"WARN","msg":"b","attrs":{"levelname":"ERROR","_msg":"a","@t":` + t1 + `}}`},
		{"of second ones the first", `{"levelname":"ERROR","@l":"warn","Message":"a","_msg":"b"}`,
			`{"time":"` + receivedText + `","level":"ERROR","msg":"a","attrs":{"@l":"warn","_msg":"b"}}`},
		{"templates and events after those", `{"event":"a","@mt":"b","MESSAGE":"c"}`, prefix + `,"msg":"c","attrs":{"event":"a","@mt":"b"}}`},
		{"an event that is no text", `{"event":{"kind":"x"},"name":"y"}`, prefix + `,"attrs":{"event":{"kind":"x"},"name":"y"}}`},
		{"no level", `{"log.level":"loud","Severity":25,"PRIORITY":8}`, prefix + `,"attrs":{"log.level":"loud","Severity":25,"PRIORITY":8}}`},
		{"a second one that does not fit leaves the slot to the next", `{"LEVEL":"loud","logLevel":"warn"}`,
			`{"time":"` + receivedText + `","level":"WARN","attrs":{"LEVEL":"loud"}}`},
		{"small numbers are no times", `{"date":20260528,"_time":12.5,"datetime":99999999}`, prefix + `,"attrs":{"date":20260528,"_time":12.5,"datetime":99999999}}`},
		{"the first number that is", `{"date":100000000}`, `{"time":"1973-03-03T09:46:40.000000000Z","level":"INFO","attrs":{"time_suspect":"past","received":"` + receivedText + `"}}`},
		{"numbers under first names may be", `{"ts":99999999}`, `{"time":"1973-03-03T09:46:39.000000000Z","level":"INFO","attrs":{"time_suspect":"past","received":"` + receivedText + `"}}`},
		{"instants that are none", `{"instant":{"epochSecond":1779972000},"a":{"instant":1}}`, prefix + `,"attrs":{"a":{"instant":1},"instant":{"epochSecond":1779972000}}}`},
		{"nor these", `{"instant":{"epochSecond":1.5,"nanoOfSecond":1}}`, prefix + `,"attrs":{"instant":{"epochSecond":1.5,"nanoOfSecond":1}}}`},
		{"nor this", `{"instant":{"epochSecond":1779972000,"nanoOfSecond":-1}}`, prefix + `,"attrs":{"instant":{"epochSecond":1779972000,"nanoOfSecond":-1}}}`},
		{"loggers alone are attributes", `{"name":"a","channel":"b","Category":"c","target":"d"}`, prefix + `,"attrs":{"name":"a","channel":"b","Category":"c","target":"d"}}`},
		{"and not beside another library's level", `{"name":"a","channel":"b","LogLevel":"Warning"}`,
			`{"time":"` + receivedText + `","level":"WARN","attrs":{"name":"a","channel":"b"}}`},
		{"a logger's name beside it", `{"name":"a","levelname":"x","logger":"b"}`, prefix + `,"logger":"b","attrs":{"name":"a","levelname":"x"}}`},
		{"message in fields", `{"fields":{"message":"a","x":1},"message":"b"}`, prefix + `,"msg":"b","attrs":{"x":1,"message":"a"}}`},
		{"message in attrs", `{"attrs":{"message":"a"},"metadata":{"levelname":"WARN"}}`, prefix + `,"attrs":{"message":"a","levelname":"WARN"}}`},
		{"parts of an object come last", `{"log":{"level":"warn","logger":"x"},"LEVEL":"error"}`,
			`{"time":"` + receivedText + `","level":"ERROR","logger":"x","attrs":{"log":{"level":"warn"}}}`},
		{"all parts", `{"trace":{"id":"t"},"span":{"id":"s"},"service":{"name":"x"}}`, prefix + `,"service":"x","trace_id":"t","span_id":"s"}`},
		{"no parts", `{"trace":{"id":7},"span":{},"service":{"version":"x"},"log":{"file":{"path":"y"}},"message":{"level":"warn"}}`,
			prefix + `,"attrs":{"trace":{"id":7},"span":{},"service":{"version":"x"},"log":{"file":{"path":"y"}},"message":{"level":"warn"}}}`},
		{"no objects", `{"trace":"t","span":"s","service":7}`, prefix + `,"attrs":{"trace":"t","span":"s","service":7}}`},
		{"a part twice", `{"trace":{"id":"t", "id":"u", "x": [1, 2]}}`, prefix + `,"trace_id":"t","attrs":{"trace":{"id":"u","x":[1,2]}}}`},
		{"parts beside an equal name", `{"a":1,"log":{"level":"warn","a":2},"attrs":{"log":3}}`,
			`{"time":"` + receivedText + `","level":"WARN","attrs":{"a":1,"log":3,"log_2":{"a":2}}}`},
		{"GELF", `{"level":6,"short_message":"x"}`, prefix + `,"msg":"x"}`},
		{"GELF, the highest", `{"short_message":"x","level":0}`, `{"time":"` + receivedText + `","level":"FATAL+2","msg":"x"}`},
		{"a level of 3 that is not GELF's", `{"level":3,"msg":"x"}`, `{"time":"` + receivedText + `","level":"INFO+3","msg":"x"}`},
		{"a name in GELF", `{"level":"warn","short_message":"x"}`, `{"time":"` + receivedText + `","level":"WARN","msg":"x"}`},
		{"numbers of OpenTelemetry", `{"severity_number":1}`, `{"time":"` + receivedText + `","level":"TRACE"}`},
		{"the last of them", `{"SeverityNumber":24}`, `{"time":"` + receivedText + `","level":"FATAL+3"}`},
		{"none of them", `{"severityNumber":0}`, prefix + `,"attrs":{"severityNumber":0}}`},
		{"syslog's lowest", `{"PRIORITY":"7"}`, `{"time":"` + receivedText + `","level":"DEBUG"}`},
		{"escaped", `{"\u0040l":"warn","\u0040m":"x"}`, `{"time":"` + receivedText + `","level":"WARN","msg":"x"}`},
		{"more than can wait", `{` + strings.Repeat(`"event":"x",`, 25) + `"@l":"warn"}`,
			prefix + `,"msg":"x","attrs":{"event":"x","@l":"warn"` + numbered(`,"event_%d":"x"`, 2, 24) + `}}`},
	} {
		for form, read := range libraryForms {
			b := new(Batch)
			err := read(b, c.in)
			checkBatch(t, b)
			if got := strings.TrimSuffix(string(b.Lines), "\n"); err != nil || got != c.want {
				if form == "Builder.Field" && strings.Contains(c.in, `\u`) {
					continue // it gives names unescaped
				}
				t.Errorf("%s, %s:\n got %s\nwant %s\n%v", form, c.name, got, c.want, err)
			}
		}
		b, err := normalizeBody(t, Limits{}, c.in)
		if got := strings.TrimSuffix(string(b.Lines), "\n"); err != nil || got != c.want {
			t.Errorf("%s:\n got %s\nwant %s\n%v", c.name, got, c.want, err)
		}
	}
}

// Members that wait count as any other, and nothing of one event is in the next.
func TestLimitsOfSecondNames(t *testing.T) {
	b, err := normalizeBody(t, Limits{MaxFields: 2, MaxDepth: 4},
		`{"event":1,"@mt":2,"_msg":"x","a":1}
{"log":{"level":"warn","a":{"b":{}}}}
{"log":{"level":"warn","a":{}}}
{"a":1}`)
	want := `{"time":"` + receivedText + `","level":"WARN","attrs":{"log":{"a":{}}}}
` + prefix + `,"attrs":{"a":1}}
`
	if err != nil || string(b.Lines) != want || b.RejectedFor(ReasonTooManyFields) != 1 || b.RejectedFor(ReasonTooDeep) != 1 {
		t.Errorf("%s\n%v %v", b.Lines, b.Rejected, err)
	}
}

func TestNoAllocationForSecondNames(t *testing.T) {
	var body []byte
	for _, c := range libraries {
		body = append(append(body, c.in...), '\n')
	}
	n, b := New(Limits{}), new(Batch)
	if got := testkit.Mallocs(func() {
		b.Reset()
		if n.Body(b, body, received); b.Records != len(libraries) {
			t.Fatal(b.Rejected)
		}
	}); got != 0 {
		t.Errorf("%d allocations", got)
	}
}

// Limits on keys and values hold at every depth.
func TestLimitsAtEveryDepth(t *testing.T) {
	limits := Limits{MaxKeyBytes: 16, MaxValueBytes: 32}
	key, long := strings.Repeat("k", 16), strings.Repeat("k", 17)
	value, over := strings.Repeat("v", 32), strings.Repeat("v", 33)
	number, big := strings.Repeat("7", 32), strings.Repeat("7", 33)
	for _, c := range []struct{ in, reason, detail string }{
		{`"` + key + `":"` + value + `"`, "", ""},
		{`"x":{"` + key + `":"` + value + `","n":` + number + `}`, "", ""},
		{`"x":[[ { "` + key + `" : ["` + value + `" , ` + number + `] } ]]`, "", ""},
		{`"error":{"` + key + `":"` + value + `"}`, "", ""},
		{`"x":["` + value + `:"]`, ReasonValueTooLong, "a value of 33 bytes, at most 32"},
		{`"x":{"` + long + `":1}`, ReasonKeyTooLong, "a key of 17 bytes, at most 16"},
		{`"x":[[{"a":{"` + long + `" :1}}]]`, ReasonKeyTooLong, "a key of 17 bytes, at most 16"},
		{`"x":{"a":"` + over + `"}`, ReasonValueTooLong, "a value of 33 bytes, at most 32"},
		{`"x":{"a":"` + strings.Repeat(`\n`, 16) + `v"}`, ReasonValueTooLong, "a value of 33 bytes, at most 32"},
		{`"x":[true,null,-` + number + `]`, ReasonValueTooLong, "a value of 33 bytes, at most 32"},
		{`"x":[1,{"a":[` + big + `]}]`, ReasonValueTooLong, "a value of 33 bytes, at most 32"},
		{`"metadata":{"x":{"` + long + `":1}}`, ReasonKeyTooLong, "a key of 17 bytes, at most 16"},
		{`"error":{"a":["` + over + `"]}`, ReasonValueTooLong, "a value of 33 bytes, at most 32"},
		{`"source":{"` + long + `":"x"}`, ReasonKeyTooLong, "a key of 17 bytes, at most 16"},
		{`"log":{"level":"warn","` + long + `":1}`, ReasonKeyTooLong, "a key of 17 bytes, at most 16"},
	} {
		in := `{"msg":"m",` + c.in + `}`
		for form, read := range map[string]func(b *Batch) error{
			"Body": func(b *Batch) error { return New(limits).Body(b, []byte(in), received) },
			"Field": func(b *Batch) error {
				build := New(limits).Build(b, received)
				defer build.Done()
				build.Begin()
				fields(build, []byte(in))
				build.End()
				return nil
			},
		} {
			b := new(Batch)
			err := read(b)
			checkBatch(t, b)
			got := ""
			if len(b.Rejected) > 0 {
				got = b.Rejected[0].Reason + ": " + b.Rejected[0].Detail
			}
			want := ""
			if c.reason != "" {
				want = fmt.Sprintf("%s: event 0 has %s are allowed", c.reason, c.detail)
			}
			if err != nil || got != want || b.Records != 1-len(b.Rejected) {
				t.Errorf("%s, %s: %d lines, %q, want %q, %v", form, c.in, b.Records, got, want, err)
			}
		}
	}
}

// numbered is text for each number from first to last.
func numbered(text string, first, last int) (all string) {
	for i := first; i <= last; i++ {
		all += fmt.Sprintf(text, i)
	}
	return all
}
