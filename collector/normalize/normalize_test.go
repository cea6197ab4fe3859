package normalize

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// received replaces missing times in these tests.
var received = time.Date(2026, 11, 21, 4, 0, 0, 5, time.UTC)

const (
	receivedText = "2026-11-21T04:00:00.000000005Z"
	prefix       = `{"time":"` + receivedText + `","level":"INFO"`
)

func normalizeBody(t testing.TB, limits Limits, body string) (*Batch, error) {
	t.Helper()
	b := new(Batch)
	err := New(limits).Body(b, []byte(body), received)
	checkBatch(t, b)
	return b, err
}

// checkBatch checks what holds for every batch.
func checkBatch(t testing.TB, b *Batch) {
	t.Helper()
	if n := strings.Count(string(b.Lines), "\n"); n != b.Records {
		t.Fatalf("%d records in %d lines: %q", b.Records, n, b.Lines)
	}
	sum := 0
	for _, r := range Reasons() {
		sum += b.RejectedFor(r)
	}
	if sum != b.RejectedTotal || len(b.Rejected) > b.RejectedTotal {
		t.Fatalf("%d rejected, %d by reason, %d listed", b.RejectedTotal, sum, len(b.Rejected))
	}
	for line := range strings.Lines(string(b.Lines)) {
		checkCanonical(t, strings.TrimSuffix(line, "\n"))
	}
}

func checkCanonical(t testing.TB, line string) {
	t.Helper()
	if !utf8.ValidString(line) || !json.Valid([]byte(line)) || strings.ContainsAny(line, "\r\n") {
		t.Fatalf("not one line of valid JSON in UTF-8: %q", line)
	}
	order := []string{"time", "level", "msg", "service", "logger", "source", "trace_id", "span_id", "error", "attrs"}
	dec := json.NewDecoder(strings.NewReader(line))
	dec.Token()
	last := -1
	for dec.More() {
		name, _ := dec.Token()
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
		at := -1
		for i, o := range order {
			if o == name {
				at = i
			}
		}
		if at <= last {
			t.Fatalf("key %v out of order or unknown in %s", name, line)
		}
		last = at
		switch name {
		case "msg", "service", "logger", "trace_id", "span_id", "time", "level":
			if value[0] != '"' {
				t.Fatalf("%s is %s in %s", name, value, line)
			}
		}
		if name == "time" {
			when, err := time.Parse("2006-01-02T15:04:05.000000000Z", string(value[1:len(value)-1]))
			if err != nil {
				t.Fatalf("time in %s: %v", line, err)
			}
			_ = when
		}
		if name == "attrs" && (value[0] != '{' || string(value) == "{}") {
			t.Fatalf("attrs is %s in %s", value, line)
		}
	}
	if !strings.HasPrefix(line, `{"time":"`) || !strings.Contains(line, `Z","level":"`) {
		t.Fatalf("no time or level in %s", line)
	}
}

// article is the event of the article that the collector is measured by.
const article = `{"service":"payment-api","level":"error","message":"failed to charge customer","timestamp":"2026-05-28T12:40:00Z","trace_id":"6f9c9b9d7a1a","metadata":{"customer_id":"cus_123","region":"eu-west","retry_count":2}}`

const articleLine = `{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR","msg":"failed to charge customer","service":"payment-api","trace_id":"6f9c9b9d7a1a","attrs":{"customer_id":"cus_123","region":"eu-west","retry_count":2}}`

func TestKeys(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"the article's event", article, articleLine},
		{"nothing known", `{}`, prefix + `}`},
		{"empty attrs vanish", `{"attrs":{},"fields":{}}`, prefix + `}`},
		{"empty message stays", `{"msg":""}`, prefix + `,"msg":""}`},
		{"unknown keys", `{"a":1,"b":[1, 2],"c":{"d": null}}`, prefix + `,"attrs":{"a":1,"b":[1,2],"c":{"d":null}}}`},
		{"every alias of trace", `{"traceId":"t","span.id":"s"}`, prefix + `,"trace_id":"t","span_id":"s"}`},
		{"ids in base64", `{"trace_id":"W47/95gDgQPSabYzgT/GDA==","spanId":"7uGbftp9GDg="}`, prefix + `,"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7eda7d1838"}`},
		{"ids in base64, escaped", `{"trace_id":"W47\/95gDgQPSabYzgT\/GDA=\u003d","span_id":"\u0037uGbftp9GDg="}`, prefix + `,"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7eda7d1838"}`},
		{"ids in base64 for URLs", `{"trace.id":"W47_95gDgQPSabYzgT_GDA==","span.id":"_-Gbftp9GDg="}`, prefix + `,"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"ffe19b7eda7d1838"}`},
		{"ids in capital letters", `{"trace_id":"5B8EFFF798038103D269B633813FC60C","span_id":"eee19b7eda7d183A"}`, prefix + `,"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7eda7d183a"}`},
		{"ids as they should be", `{"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7eda7d1838"}`, prefix + `,"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7eda7d1838"}`},
		{"ids of another length", `{"trace_id":"EEE19B7EDA7D1838","span_id":"5B8EFFF798038103D269B633813FC60C"}`, prefix + `,"trace_id":"EEE19B7EDA7D1838","span_id":"5B8EFFF798038103D269B633813FC60C"}`},
		{"ids in base64 of another length", `{"trace_id":"7uGbftp9GDg=","span_id":"W47/95gDgQPSabYzgT/GDA=="}`, prefix + `,"trace_id":"7uGbftp9GDg=","span_id":"W47/95gDgQPSabYzgT/GDA=="}`},
		{"ids that look like others", `{"trace_id":"W47/95gDgQPSabYzgT/GDB==","span_id":"EEE19B7EDA7D183G"}`, prefix + `,"trace_id":"W47/95gDgQPSabYzgT/GDB==","span_id":"EEE19B7EDA7D183G"}`},
		{"ids with line ends", `{"trace_id":"W47/95gDgQPSabYzgT/\nGA==","span_id":"7uGbftp9GD\r="}`, prefix + `,"trace_id":"W47/95gDgQPSabYzgT/\nGA==","span_id":"7uGbftp9GD\r="}`},
		{"ids of no padding, as UUID, of no letters", `{"trace_id":"W47_95gDgQPSabYzgT_GDA","span_id":"0123456789012345","traceId":"5B8EFFF7-9803-8103-D269-B633813FC60C"}`, prefix + `,"trace_id":"W47_95gDgQPSabYzgT_GDA","span_id":"0123456789012345","attrs":{"traceId":"5B8EFFF7-9803-8103-D269-B633813FC60C"}}`},
		{"second alias kept", `{"msg":"a","message":"b","log":"c"}`, prefix + `,"msg":"a","attrs":{"message":"b","log":"c"}}`},
		{"same key twice", `{"msg":"a","msg":"b"}`, prefix + `,"msg":"a","attrs":{"msg":"b"}}`},
		{"wrong types", `{"msg":{"a":1},"level":["x"],"service":7,"trace_id":null,"logger":true,"source":3}`,
			prefix + `,"attrs":{"msg":{"a":1},"level":["x"],"service":7,"trace_id":null,"logger":true,"source":3}}`},
		{"a wrong type leaves the slot free", `{"msg":{"a":1},"message":"b"}`, prefix + `,"msg":"b","attrs":{"msg":{"a":1}}}`},
		{"number as message", `{"msg":1e400}`, prefix + `,"msg":"1e400"}`},
		{"boolean as message", `{"log":false}`, prefix + `,"msg":"false"}`},
		{"null message", `{"log":null}`, prefix + `,"attrs":{"log":null}}`},
		{"source as object", `{"source":{"file": "a.go","line":3}}`, prefix + `,"source":{"file":"a.go","line":3}}`},
		{"any error", `{"error": [ 1, {"a" : "b c"} ]}`, `{"time":"` + receivedText + `","level":"ERROR","error":[1,{"a":"b c"}]}`},
		{"null error", `{"error":null}`, prefix + `,"error":null}`},
		{"merge", `{"x":1,"metadata":{"a":1},"fields":{"b":2},"context":{"c":{"d":3}}}`, prefix + `,"attrs":{"x":1,"a":1,"b":2,"c":{"d":3}}}`},
		{"known names in attrs are attributes", `{"attrs":{"msg":"x","time":1,"attrs":{"y":1}}}`, prefix + `,"attrs":{"msg":"x","time":1,"attrs":{"y":1}}}`},
		{"attrs that is no object", `{"fields":"none","attrs":null,"context":[1]}`, prefix + `,"attrs":{"fields":"none","attrs":null,"context":[1]}}`},
		{"equal names", `{"a":1,"a":2,"a_2":3,"metadata":{"a":4}}`, prefix + `,"attrs":{"a":1,"a_2":2,"a_2_2":3,"a_3":4}}`},
		{"equal names, one escaped", `{"a":1,"\u0061":2}`, prefix + `,"attrs":{"a":1,"\u0061_2":2}}`},
		{"equal names below are left alone", `{"a":{"b":1,"b":2}}`, prefix + `,"attrs":{"a":{"b":1,"b":2}}}`},
		{"known key, escaped", `{"\u006dsg":"x"}`, prefix + `,"msg":"x"}`},
		{"big numbers", `{"a":12345678901234567890,"b":1e400,"c":-0.10}`, prefix + `,"attrs":{"a":12345678901234567890,"b":1e400,"c":-0.10}}`},
		{"escapes stay", `{"msg":"a\u00e9\n\/\u2028\ud800 é"}`, prefix + `,"msg":"a\u00e9\n\/\u2028\ud800 é"}`},
		{"unusable time and level", `{"time":"yesterday","level":"loud"}`, prefix + `,"attrs":{"time":"yesterday","level":"loud"}}`},
		{"second time is the usable one", `{"time":null,"ts":0}`, `{"time":"1970-01-01T00:00:00.000000000Z","level":"INFO","attrs":{"time":null,"time_suspect":"past","received":"` + receivedText + `"}}`},
		{"white space everywhere", " \t{ \"a\" : [ 1 , { } , \" x \\\" y \" ] \n, \"metadata\" : { \"b\" : 2 } } \r\n", prefix + `,"attrs":{"a":[1,{}," x \" y "],"b":2}}`},
		{"time with an escaped plus", `{"time":"2026-05-28T14:40:00\u002B02:00"}`, `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := normalizeBody(t, Limits{}, c.in)
			if err != nil || b.RejectedTotal != 0 {
				t.Fatal(err, b.Rejected)
			}
			if got := string(b.Lines); got != c.want+"\n" {
				t.Errorf("got  %swant %s", got, c.want)
			}
		})
	}
}

// TestNamesOfTheEventBefore: an event's names are the same after any other event.
func TestNamesOfTheEventBefore(t *testing.T) {
	many := strings.Fields("b c d e f g h i j k l m n o p q r s t u v w x y z")
	lists := [][]string{{"a"}, {"a", "b"}, {"a", "a"}, {"a", "a_2"}, {"a_2", "a", "a"}, {"a", "b", "a", "c", "a"}, {"b", "a"},
		many, slices.Concat(many, []string{"b", "b"}), slices.Concat(many[:few-1], []string{"b"}), slices.Concat(many[:few+1], []string{"x"}), many[1:], many[:3]}
	event := func(names []string) string { return `{"` + strings.Join(names, `":1,"`) + `":1}` }
	n := New(Limits{})
	for _, before := range lists {
		for _, names := range lists {
			want, _ := normalizeBody(t, Limits{}, event(names))
			got := new(Batch)
			n.Body(got, []byte(event(before)+event(names)), received)
			if _, last, _ := strings.Cut(string(got.Lines), "\n"); last != string(want.Lines) {
				t.Errorf("%s after %s: %s, alone %s", event(names), event(before), last, want.Lines)
			}
		}
	}
}

func TestForms(t *testing.T) {
	const nl = "\n"
	for _, c := range []struct {
		name, in string
		accepted int
		rejected string // line:reason of each
		whole    bool   // the body as a whole is refused
	}{
		{"one object", `{"a":1}`, 1, "", false},
		{"pretty-printed", "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2\n  }\n}\n", 1, "", false},
		{"two, pretty-printed", "{\n\"a\":1\n}\n{\n\"a\":2\n}\n", 2, "", false},
		{"array", `[{"a":1},{"a":2}]`, 2, "", false},
		{"array over lines", "[\n{\"a\":1},\n{\"a\":2}\n]\n", 2, "", false},
		{"empty array", `[]`, 0, "", false},
		{"NDJSON", "{\"a\":1}\n{\"a\":2}\n", 2, "", false},
		{"NDJSON, no last line end", "{\"a\":1}\n{\"a\":2}", 2, "", false},
		{"CRLF and blank lines", "\r\n{\"a\":1}\r\n\r\n  \r\n{\"a\":2}\r\n", 2, "", false},
		{"concatenated", `{"a":1}{"a":2} {"a":3}`, 3, "", false},
		{"arrays in lines", "[{\"a\":1},{\"a\":2}]\n{\"a\":3}\n", 3, "", false},
		{"byte order mark", "\xef\xbb\xbf \n{\"a\":1}", 1, "", false},
		{"a bad line", "{\"a\":1}\nnonsense\n{\"a\":2}\n", 2, "2:syntax", false},
		{"a bad first line", "nonsense\n{\"a\":1}\n{\"a\":2}\n", 2, "1:syntax", false},
		{"a torn first line", "{\"a\":\"x\n{\"a\":1}\n", 1, "1:syntax", false},
		{"a torn first line, outside a string", "{\"a\":\n{\"a\":1}\n{\"a\":2}\n", 2, "1:syntax", false},
		{"a torn last line", "{\"a\":1}\n{\"a\":", 1, "2:syntax", false},
		{"a bad array in a line", "{\"a\":1}\n[{\"a\":2},{]\n{\"a\":3}\n", 2, "2:syntax", false},
		{"only bad lines", "bad\nworse\n", 0, "1:syntax 2:syntax", false},
		{"scalar lines", "{\"a\":1}\n17\n\"x\"\n", 1, "2:not_object 3:not_object", false},
		{"elements that are no objects", "[{\"a\":1},\n3,[{}],null]", 1, "2:not_object 2:not_object 2:not_object", false},
		{"broken object", `{"a":1,}`, 0, "1:syntax", true},
		{"broken array", `[{"a":1},{"a":2]`, 0, "1:syntax", true},
		{"broken array over lines", "[\n{\"a\":1}\n{\"a\":2}\n]", 0, "3:syntax", true},
		{"array without its end", "[\n{\"a\":1},\n", 0, "2:syntax", true},
		{"broken object over lines", "{\n  \"a\": 1\n  \"b\": 2\n}", 0, "3:syntax", true},
		{"not JSON at all", "hello", 0, "1:syntax", true},
		{"no name", `{:1}`, 0, "1:syntax", true},
		{"names of the event before", "{\"a\":1}\n{\"a\" : 2}\n{\"a\"b\":1}\n{:1}\n{\"a\"}\n{\"a\"", 2, "3:syntax 4:syntax 5:syntax 6:syntax", false},
		{"form", "a=b&c=d", 0, "1:syntax", true},
		{"NUL", "{\"a\":1}\x00", 0, "1:syntax", true},
		{"ten thousand and one deep", strings.Repeat("[", 10_001) + nl, 0, "1:too_deep", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := normalizeBody(t, Limits{}, c.in)
			var rejected []string
			for _, r := range b.Rejected {
				rejected = append(rejected, fmt.Sprintf("%d:%s", r.Line, r.Reason))
				if r.Detail == "" {
					t.Error("no detail")
				}
			}
			if got := strings.Join(rejected, " "); b.Records != c.accepted || got != c.rejected || (err != nil) != c.whole {
				t.Errorf("accepted %d, rejected %q, error %v; want %d, %q, %v", b.Records, got, err, c.accepted, c.rejected, c.whole)
			}
		})
	}
	for _, empty := range []string{"", " \r\n\t", "\xef\xbb\xbf"} {
		if b, err := normalizeBody(t, Limits{}, empty); err != ErrEmpty || b.Events() != 0 {
			t.Errorf("body %q: %v, %d events", empty, err, b.Events())
		}
	}
}

func TestSyntaxErrorSaysWhere(t *testing.T) {
	for in, want := range map[string]string{
		"{\n  \"a\": 1\n  \"b\": 2\n}": `not valid JSON at line 3, column 3 (offset 13): invalid character '"' after object value (expecting ',' or '}')`,
		`[{"a":1},{"a":2]`:             `not valid JSON at line 1, column 16 (offset 15): invalid character ']' after object value (expecting ',' or '}')`,
		`{"a":`:                        `not valid JSON at line 1, column 6 (offset 5): the text ends inside a value`,
		`{'a':1}`:                      `not valid JSON at line 1, column 2 (offset 1): invalid character '\'' at start of string (expecting '"')`,
	} {
		_, err := normalizeBody(t, Limits{}, in)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", in, err, want)
		}
	}
	b, _ := normalizeBody(t, Limits{}, "{\"a\":1}\n\n{\"a\":2} x\n")
	want := Rejection{Index: 1, Line: 3, Offset: 17, Reason: ReasonSyntax, Detail: `not valid JSON at line 3, column 9 (offset 17): invalid character 'x' at start of value`}
	if len(b.Rejected) != 1 || b.Rejected[0] != want {
		t.Errorf("got %+v", b.Rejected)
	}
	b, _ = normalizeBody(t, Limits{}, `[{},{},{},3]`)
	want = Rejection{Index: 3, Line: 1, Offset: 10, Reason: ReasonNotObject, Detail: "event 3 is a number, expected an object"}
	if len(b.Rejected) != 1 || b.Rejected[0] != want {
		t.Errorf("got %+v", b.Rejected)
	}
}

// A byte that is not UTF-8 costs one replacement character, in whatever the event has.
func TestBytesThatAreNotUTF8(t *testing.T) {
	for _, body := range []string{"[{\"a\":\"é\"},{\"msg\":\"caf\xe9 \xe9\xe9\"},{\"b\xc3\":1},{\"c\":3}]", "{\"a\":\"é\"}\n{\"msg\":\"caf\xe9 \xe9\xe9\"}\n{\"b\xc3\":1}\n{\"c\":3}\n"} {
		b, err := normalizeBody(t, Limits{}, body)
		want := prefix + `,"attrs":{"a":"é"}}` + "\n" + prefix + `,"msg":"caf\ufffd \ufffd\ufffd"}` + "\n" + prefix + `,"attrs":{"b\ufffd":1}}` + "\n" + prefix + `,"attrs":{"c":3}}` + "\n"
		if got := string(b.Lines); err != nil || got != strings.ReplaceAll(want, `\ufffd`, "\uFFFD") {
			t.Errorf("%v, rejected %+v\n%s", err, b.Rejected, got)
		}
	}
	b, err := normalizeBody(t, Limits{}, "{\"log\":\"{\\\"level\\\":\\\"error\\\",\\\"msg\\\":\\\"caf\xe9\\\"}\"}")
	if want := `"level":"ERROR","msg":"caf` + "\uFFFD\"}\n"; err != nil || !strings.HasSuffix(string(b.Lines), want) {
		t.Errorf("a payload: %v, %s, %+v", err, b.Lines, b.Rejected)
	}
	b, err = normalizeBody(t, Limits{MaxFields: 1}, "{\"a\":1}\n{\"a\":\"\xff\",\"b\":2}")
	if err != nil || b.Records != 1 || len(b.Rejected) != 1 || b.Rejected[0].Offset != 8 || b.Rejected[0].Line != 2 || b.RejectedFor(ReasonTooManyFields) != 1 {
		t.Errorf("a limit: %v, %+v", err, b.Rejected)
	}
	b, err = normalizeBody(t, Limits{MaxEventBytes: 100}, "{\"a\":\"\xff"+strings.Repeat(" ", 300)+"\"}")
	if err != nil || b.Records != 0 || b.RejectedFor(ReasonTooLarge) != 1 {
		t.Errorf("too large: %v, %+v", err, b.Rejected)
	}
	b, err = normalizeBody(t, Limits{MaxEvents: 1, MaxEventBytes: 100}, "[{},{\"a\":\"\xff"+strings.Repeat(" ", 300)+"\"}]")
	if err != nil || b.Records != 1 || b.RejectedFor(ReasonTooManyEvents) != 1 {
		t.Errorf("too many, and too large: %v, %+v", err, b.Rejected)
	}
	if _, err := normalizeBody(t, Limits{}, "{\"a\":\xff}"); err == nil {
		t.Error("outside of a string it is no syntax error")
	}
}

func TestLimits(t *testing.T) {
	limits := Limits{MaxEventBytes: 200, MaxDepth: 5, MaxFields: 20, MaxKeyBytes: 10, MaxEvents: 4, MaxRejections: 2}
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%d":1`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	for _, c := range []struct{ name, in, reason string }{
		{"as large as allowed", `{"msg":"` + strings.Repeat("x", 200-len(prefix)-len(`,"msg":""}`)) + `"}`, ""},
		{"larger by one", `{"msg":"` + strings.Repeat("x", 201-len(prefix)-len(`,"msg":""}`)) + `"}`, ReasonTooLarge},
		{"large attribute", `{"x":"` + strings.Repeat("x", 300) + `"}`, ReasonTooLarge},
		{"many attributes", `{"x":"` + strings.Repeat("x", 90) + `","y":"` + strings.Repeat("x", 90) + `"}`, ReasonTooLarge},
		{"white space does not count", `{"x":[` + strings.Repeat(" ", 300) + `1]}`, ""},
		{"large error", `{"error":[1, "` + strings.Repeat("x", 300) + `"]}`, ReasonTooLarge},
		{"as deep as allowed", `{"x":[[[1]]]}`, ""},
		{"deeper by one", `{"x":[[[[1]]]]}`, ReasonTooDeep},
		{"error as deep as allowed", `{"error":[[[[1]]]]}`, ""},
		{"error deeper by one", `{"error":[[[[[1]]]]]}`, ReasonTooDeep},
		{"as many as allowed", fields(20), ""},
		{"more by one", fields(21), ReasonTooManyFields},
		{"more by one, merged", `{"z":1,"attrs":` + fields(20) + `}`, ReasonTooManyFields},
		{"key as long as allowed", `{"0123456789":1}`, ""},
		{"key longer by one", `{"01234567890":1}`, ReasonKeyTooLong},
		{"key longer by its suffix", `{"012345678":1,"012345678":1}`, ReasonKeyTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Alone, and between events that must not suffer.
			for _, in := range []string{c.in, `[{"a":1},` + c.in + `,{"b":[1]}]`, "{}\n" + c.in + "\n{}\n"} {
				b, err := normalizeBody(t, limits, in)
				if err != nil {
					t.Fatal(err)
				}
				want := 0
				if c.reason != "" {
					want = 1
				}
				if b.RejectedTotal != want || b.RejectedFor(c.reason) != want {
					t.Errorf("%s: rejected %+v", in, b.Rejected)
				}
				if len(in) > len(c.in) && b.Records != 3-want {
					t.Errorf("%s: %d records", in, b.Records)
				}
			}
		})
	}
	b, err := normalizeBody(t, limits, `[{},{},1,{},{},{"x":{"y":[]}},{}]`)
	if err != nil || b.Records != 3 || b.RejectedFor(ReasonTooManyEvents) != 3 || len(b.Rejected) != 2 {
		t.Errorf("%v: %d records, rejected %d, listed %+v", err, b.Records, b.RejectedTotal, b.Rejected)
	}
}

func TestLinesOverTheLimitAreCounted(t *testing.T) {
	b, err := normalizeBody(t, Limits{MaxEvents: 2}, "[{},{},{}]\n{}\n\n[{},{}]\nbad\n")
	if err != nil || b.Records != 2 || b.RejectedFor(ReasonTooManyEvents) != 4 || b.Rejected[3].Line != 5 || b.Rejected[3].Offset != 23 {
		t.Errorf("%v: %d records, rejected %+v", err, b.Records, b.Rejected)
	}
}

func TestBatchTimes(t *testing.T) {
	b, _ := normalizeBody(t, Limits{}, `{"ts":5}{"ts":2}{"ts":3}`)
	if b.MinTime != 2e9 || b.MaxTime != 5e9 {
		t.Errorf("from %d to %d", b.MinTime, b.MaxTime)
	}
	b, _ = normalizeBody(t, Limits{}, `{"ts":"0000-01-01T00:00:00Z"}{"ts":"9999-12-31T23:59:59.999999999Z"}`)
	if b.MinTime != -1<<63 || b.MaxTime != 1<<63-1 {
		t.Errorf("from %d to %d", b.MinTime, b.MaxTime)
	}
	// What a rejected body had put into a batch is taken back.
	b = new(Batch)
	n := New(Limits{})
	n.Body(b, []byte(`{"ts":50}`), received)
	n.Body(b, []byte(`[{"ts":1},{"ts":99},`), received)
	if b.MinTime != 50e9 || b.MaxTime != 50e9 || b.Records != 1 || b.RejectedTotal != 1 || b.Rejected[0].Index != 1 {
		t.Errorf("%+v", b)
	}
}

func TestLine(t *testing.T) {
	b, n := new(Batch), New(Limits{})
	for line, wantErr := range map[string]bool{"{}\n": false, "{}": false, "\r\n": false, "": false, "{\"a\":": true, `[{},{}]`: false} {
		if err := n.Line(b, []byte(line), received); (err != nil) != wantErr {
			t.Errorf("%q: %v", line, err)
		}
	}
	checkBatch(t, b)
	if b.Records != 4 || b.RejectedTotal != 1 || b.Rejected[0].Line != 0 {
		t.Errorf("%d records, %+v", b.Records, b.Rejected)
	}
}

func TestSuspectTimes(t *testing.T) {
	at := func(d time.Duration) string { return received.Add(d).Format("2006-01-02T15:04:05.000000000Z") }
	const day = 24 * time.Hour
	for _, c := range []struct {
		limits   Limits
		away     time.Duration
		suspect  string
		rest     string // attrs of the event
		received string // name of the attribute
	}{
		{Limits{}, 0, "", `{}`, ""},
		{Limits{}, day, "", `{}`, ""},
		{Limits{}, day + time.Second, "future", `{}`, "received"},
		{Limits{}, -365 * day, "", `{}`, ""},
		{Limits{}, -365*day - time.Second, "past", `{"received":1}`, "received_2"},
		{Limits{}, -400 * day, "", `{"time_suspect":"no"}`, ""},
		{Limits{MaxFuture: time.Minute, MaxPast: -1}, 2 * time.Minute, "future", `{"a":1}`, "received"},
		{Limits{MaxFuture: -1, MaxPast: time.Minute}, -2 * time.Minute, "past", `{}`, "received"},
		{Limits{MaxFuture: -1, MaxPast: -1}, 10_000 * day, "", `{}`, ""},
	} {
		in := `{"time":"` + at(c.away) + `","level":"INFO","attrs":` + c.rest + `}`
		members := strings.Trim(c.rest, "{}")
		if c.suspect != "" {
			if members != "" {
				members += ","
			}
			members += `"time_suspect":"` + c.suspect + `","` + c.received + `":"` + receivedText + `"`
		}
		want := `{"time":"` + at(c.away) + `","level":"INFO"}`
		if members != "" {
			want = want[:len(want)-1] + `,"attrs":{` + members + `}}`
		}
		b, err := normalizeBody(t, c.limits, in)
		if err != nil || string(b.Lines) != want+"\n" {
			t.Errorf("%v: %v\n got %swant %s", c.away, err, b.Lines, want)
		}
		again, err := normalizeBody(t, c.limits, string(b.Lines))
		if err != nil || string(again.Lines) != string(b.Lines) {
			t.Errorf("%v: %v\n once  %s again %s", c.away, err, b.Lines, again.Lines)
		}
	}
}
