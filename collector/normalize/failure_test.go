package normalize

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// The forms of an error. Those of libraries are in the collector's TestErrorsOfLibraries.
func TestErrors(t *testing.T) {
	const failed = `{"time":"` + receivedText + `","level":"ERROR"`
	for _, c := range []struct{ name, in, want string }{
		{"a text", `{"error":"EOF"}`, failed + `,"error":"EOF"}`},
		{"a text of several lines", `{"error":"a\nb"}`, failed + `,"error":"a\nb"}`},
		{"a level that was named", `{"level":"info","error":"EOF"}`, prefix + `,"error":"EOF"}`},
		{"a level that cannot be read", `{"level":"loud","error":"EOF"}`, failed + `,"error":"EOF","attrs":{"level":"loud"}}`},
		{"a level in the text", `{"msg":"[WARN] x","err":"EOF"}`, `{"time":"` + receivedText + `","level":"WARN","msg":"[WARN] x","error":"EOF"}`},
		{"no error", `{"error":false}`, prefix + `,"error":false}`},
		{"no error, null", `{"exception":null,"err":"","exc_info":true,"error":{ }}`, prefix + `,"error":{},"attrs":{"exception":null,"err":"","exc_info":true}}`},
		{"a number", `{"error":5}`, failed + `,"error":5}`},
		{"what is as it should be", `{"error":{"message":"m","type":"T","causes":[{"type":"U"}],"code":7}}`, failed + `,"error":{"message":"m","type":"T","causes":[{"type":"U"}],"code":7}}`},
		{"other names", `{"error":{"kind":"T","msg":"m","stack_trace":["a"],"code":7}}`, failed + `,"error":{"type":"T","message":"m","stack":["a"],"code":7}}`},
		{"the best name", `{"error":{"name":"n","kind":"k","type":"T","msg":"m"}}`, failed + `,"error":{"name":"n","kind":"k","type":"T","message":"m"}}`},
		{"a name that is taken by something else", `{"error":{"kind":"k","type":null,"msg":"m"}}`, failed + `,"error":{"kind":"k","type":null,"message":"m"}}`},
		{"no members of an error", `{"error":{"a":1},"exception":{"b":2}}`, failed + `,"error":{"a":1},"attrs":{"exception":{"b":2}}}`},
		{"causes in causes", `{"err":{"type":"A","cause":{"name":"B","message":"b","cause":{"type":"C","cause":"D: d"}}}}`,
			failed + `,"error":{"type":"A","causes":[{"type":"B","message":"b"},{"type":"C"},"D: d"]}}`},
		{"causes in the text of a stack", `{"err":{"type":"A","stack":"A: a\n\tat a.B(C.java:7)\nCaused by: b.B: b\n\tat a.B(C.java:7)\nCaused by: c.C\n"}}`,
			failed + `,"error":{"message":"a","type":"A","stack":"A: a\n\tat a.B(C.java:7)\nCaused by: b.B: b\n\tat a.B(C.java:7)\nCaused by: c.C\n","causes":[{"type":"b.B","message":"b"},{"type":"c.C"}]}}`},
		{"causes of its own", `{"err":{"type":"A","message":"a","cause":"x","stack":"A: a\n\tat a.B(C.java:7)\nCaused by: b.B: b\n"}}`,
			failed + `,"error":{"type":"A","message":"a","causes":["x"],"stack":"A: a\n\tat a.B(C.java:7)\nCaused by: b.B: b\n"}}`},
		{"a trace in the message", `{"msg":"it failed\njava.io.IOException: a \"b\"\n\tat a.B(C.java:7)\nCaused by: b.B: b"}`,
			failed + `,"msg":"it failed\njava.io.IOException: a \"b\"\n\tat a.B(C.java:7)\nCaused by: b.B: b","error":{"type":"java.io.IOException","message":"a \"b\"","causes":[{"type":"b.B","message":"b"}]}}`},
		{"a trace in the message of an event with an error", `{"err":"EOF","msg":"it failed\njava.io.IOException: a\n\tat a.B(C.java:7)"}`,
			failed + `,"msg":"it failed\njava.io.IOException: a\n\tat a.B(C.java:7)","error":"EOF"}`},
		{"a list", `{"exception":[{"exc_type":"A","exc_value":"a"},{"exc_type":"B","exc_value":"b"}]}`, failed + `,"error":{"type":"A","message":"a","causes":[{"type":"B","message":"b"}]}}`},
		{"causes in a list", `{"error":{"type":"A","chain":[{"type":"B","cause":{"type":"C"}},7]}}`, failed + `,"error":{"type":"A","causes":[{"type":"B","causes":[{"type":"C"}]},7]}}`},
		{"parts", `{"exception.type":"T","exception.message":"m","exception.stacktrace":"s","exception.escaped":true}`,
			failed + `,"error":{"type":"T","message":"m","stack":"s"},"attrs":{"exception.escaped":true}}`},
		{"a part", `{"stack_trace":"T: m\n\tat a.B.c(B.java:7)"}`, failed + `,"error":{"type":"T","message":"m","stack":"T: m\n\tat a.B.c(B.java:7)"}}`},
		{"a text and a stack", `{"error":"EOF","stacktrace":"main.main\n\t/app/main.go:9"}`, failed + `,"error":{"message":"EOF","stack":"main.main\n\t/app/main.go:9"}}`},
		{"a text and a trace", `{"error":"charge failed","exc_info":"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nE: m"}`,
			failed + `,"error":{"type":"E","message":"charge failed","stack":"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nE: m"}}`},
		{"a text and an object", `{"error":"charge failed","exception":{"type":"T"}}`, failed + `,"error":{"message":"charge failed","type":"T"}}`},
		{"a text and an object with another", `{"error":"charge failed","exception":{"type":"T","message":"m"}}`, failed + `,"error":{"type":"T","message":"m"},"attrs":{"error":"charge failed"}}`},
		{"a text and its equal", `{"error":"m","error.message":"m","error.type":"T"}`, failed + `,"error":{"type":"T","message":"m"}}`},
		{"an object and parts", `{"error":{"type":"T"},"error.type":"U","error.message":"m"}`, failed + `,"error":{"message":"m","type":"T"},"attrs":{"error.type":"U"}}`},
		{"two objects", `{"error":{"type":"T"},"err":{"type":"U"}}`, failed + `,"error":{"type":"T"},"attrs":{"err":{"type":"U"}}}`},
		{"a truth value and parts", `{"error":true,"error.kind":"T"}`, failed + `,"error":{"type":"T"},"attrs":{"error":true}}`},
		{"JBoss", `{"hostName":"h","exception":{"refId":1,"exceptionType":"a.B","message":"m","frames":[{"class":"a.C","method":"f","line":7}],"causedBy":{"exception":{"refId":2,"exceptionType":"D","message":"d","frames":[]}}}}`,
			failed + `,"error":{"refId":1,"type":"a.B","message":"m","stack":[{"class":"a.C","method":"f","line":7}],"causes":[{"refId":2,"type":"D","message":"d","frames":[]}]},"attrs":{"host":"h"}}`},
		{"Log4j 2 for Google Cloud", `{"severity":"ERROR","message":"x","_exception":{"class":"a.B","message":"m","stackTrace":"a.B: m"},"_thread":"main"}`,
			failed + `,"msg":"x","error":{"type":"a.B","message":"m","stack":"a.B: m"},"attrs":{"thread":"main"}}`},
		{"Lambda", `{"level":"ERROR","message":{"errorType":"T","errorMessage":"m","stackTrace":["T: m","    at f (/a.js:1:2)"]}}`,
			failed + `,"error":{"type":"T","message":"m","stack":["T: m","    at f (/a.js:1:2)"]}}`},
		{"Go's pkg/errors by zap", `{"error":"pay: EOF","errorVerbose":"EOF\nmain.pay\n\t/app/main.go:9\npay","stacktrace":"main.main\n\t/app/main.go:3"}`,
			failed + `,"error":{"message":"pay: EOF","stack":"EOF\nmain.pay\n\t/app/main.go:9\npay"},"attrs":{"stacktrace":"main.main\n\t/app/main.go:3"}}`},
		{"Go's pkg/errors by zerolog", `{"stack":[{"func":"pay","line":"9","source":"main.go"}],"error":"EOF"}`, failed + `,"error":{"message":"EOF","stack":[{"func":"pay","line":"9","source":"main.go"}]}}`},
		{"lists that are no frames", `{"stack":["a"],"traceback":[{"name":"x"}],"full_message":[]}`, prefix + `,"attrs":{"stack":["a"],"traceback":[{"name":"x"}],"full_message":[]}}`},
		{"Serilog's details and list", `{"ExceptionDetail":{"Type":"T","Message":"m","InnerException":{"Type":"U"}},"exceptions":[{"Depth":0,"ClassName":"T","Message":"m"}]}`,
			failed + `,"error":{"type":"T","message":"m","causes":[{"type":"U"}]},"attrs":{"exceptions":[{"Depth":0,"ClassName":"T","Message":"m"}]}}`},
		{"several at once by pino", `{"err":{"type":"AggregateError","message":"m","aggregateErrors":[{"type":"A","message":"a"},{"type":"B","message":"b"}]}}`,
			failed + `,"error":{"type":"AggregateError","message":"m","causes":[{"type":"A","message":"a"},{"type":"B","message":"b"}]}}`},
		{"a trace as text", `{"error":"T: m\r\n   at a.B.c()"}`, failed + `,"error":{"type":"T","message":"m","stack":"T: m\r\n   at a.B.c()"}}`},
		{"texts that are no traces", `{"stack":"prod","traceback":"a\nb","full_message":"c\nd"}`, prefix + `,"attrs":{"stack":"prod","traceback":"a\nb","full_message":"c\nd"}}`},
		{"in objects that are merged", `{"context":{"exception":{"class":"T","message":"m"},"error.code":7},"level":"warn"}`,
			`{"time":"` + receivedText + `","level":"WARN","error":{"type":"T","message":"m"},"attrs":{"error.code":7}}`},
		{"in fields", `{"fields":{"message":"x","error":"EOF"}}`, failed + `,"msg":"x","error":"EOF"}`},
		{"in attrs", `{"attrs":{"error":"EOF","err":"x","exception.type":"T","hostname":"h"}}`, prefix + `,"attrs":{"error":"EOF","err":"x","exception.type":"T","hostname":"h"}}`},
		{"in an object", `{"record":{"exception":{"type":"T","value":"m","traceback":true},"line":7}}`,
			failed + `,"error":{"type":"T","message":"m","traceback":true},"attrs":{"record":{"line":7}}}`},
		{"host, thread and a request", `{"hostname":"h","thread_name":"t","http":{"request":{"method":"GET","id":"7"},"response":{"status_code":502}},"user_agent":{"original":"curl"}}`,
			prefix + `,"attrs":{"host":"h","thread":"t","method":"GET","status":502,"http":{"request":{"id":"7"}},"user_agent":"curl"}}`},
		{"an object of that name", `{"host":{"name":"h","ip":["10.0.0.7"]},"a":1}`, prefix + `,"attrs":{"a":1,"host":"h","host.ip":["10.0.0.7"]}}`},
		{"one that has its name", `{"host":"h","hostname":"g","host.name":"f"}`, prefix + `,"attrs":{"host":"h","hostname":"g","host.name":"f"}}`},
		{"values that do not fit", `{"hostname":["a"],"thread_name":null,"status_code":{}}`, prefix + `,"attrs":{"hostname":["a"],"thread_name":null,"status_code":{}}}`},
	} {
		in := func(b *Batch, text string) error {
			return New(Limits{NoFingerprint: true}).Body(b, []byte(text), received)
		}
		b := new(Batch)
		if err := in(b, c.in); err != nil || b.RejectedTotal > 0 {
			t.Fatal(c.name, err, b.Rejected)
		}
		checkBatch(t, b)
		if got := strings.TrimSuffix(string(b.Lines), "\n"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		for form, read := range libraryForms {
			again := new(Batch)
			err := read(again, c.in)
			checkBatch(t, again)
			if got := withoutFingerprint(string(again.Lines)); err != nil || got != string(b.Lines) {
				t.Errorf("%s, %s:\n got %s\nwant %s%v", form, c.name, got, b.Lines, err)
			}
		}
	}
}

// withoutFingerprint is a line without the fingerprint, which comes last.
func withoutFingerprint(line string) string {
	before, rest, found := strings.Cut(line, `"`+FingerprintName+`":"`)
	if !found {
		return line
	}
	_, after, _ := strings.Cut(rest, `"`)
	if before = strings.TrimSuffix(before, ","); strings.HasSuffix(before, `,"attrs":{`) {
		return strings.TrimSuffix(before, `,"attrs":{`) + after[1:]
	}
	return before + after
}

// Whatever an event tells of errors, in whatever combination: nothing is lost, and the line is
// the same when it is read again.
func TestErrorsOfAnyForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	names := []string{"error", "err", "exception", "exc_info", "@x", "error.type", "error.kind", "exception.type", "error.message", "exc_value", "stack_trace", "error.stack", "stack", "host", "hostname", "host.name", "record", "level"}
	inner := []string{"type", "kind", "name", "message", "msg", "value", "stack", "stacktrace", "cause", "causes", "chain", "code", "exception"}
	count := 0
	var value func(depth int) string
	value = func(depth int) string {
		count++
		switch k := rng.IntN(10); {
		case k < 4 && depth < 4:
			var b strings.Builder
			b.WriteByte('{')
			for i := range rng.IntN(5) {
				if i > 0 {
					b.WriteString(" , ")
				}
				fmt.Fprintf(&b, `"%s":%s`, inner[rng.IntN(len(inner))], value(depth+1))
			}
			return b.String() + "}"
		case k == 4 && depth < 4:
			return "[" + value(depth+1) + "," + value(depth+1) + "]"
		case k == 5:
			return []string{"null", "true", "0", `""`}[rng.IntN(4)]
		case k == 6:
			return fmt.Sprintf(`"T%dError: m\n\tat a.B.c(B.java:7)"`, count)
		}
		return fmt.Sprintf(`"v%d"`, count)
	}
	n := New(Limits{})
	for range 5000 {
		var in strings.Builder
		for i := range 1 + rng.IntN(5) {
			fmt.Fprintf(&in, `,"%s":%s`, names[rng.IntN(len(names))], value(i%2))
		}
		text := "{" + in.String()[1:] + "}"
		b := new(Batch)
		if err := n.Body(b, []byte(text), received); err != nil || b.Records != 1 {
			t.Fatal(text, err, b.Rejected)
		}
		checkBatch(t, b)
		var sent, stored any
		json.Unmarshal([]byte(text), &sent)
		json.Unmarshal(b.Lines, &stored)
		eachText(strings.ReplaceAll(text, `\n`, "\n"), func(part string) {
			if !strings.Contains(strings.ReplaceAll(string(b.Lines), `\n`, "\n"), part) {
				t.Fatalf("%q of %s is not in %s", part, text, b.Lines)
			}
		})
		again := new(Batch)
		if err := n.Body(again, b.Lines, received); err != nil || string(again.Lines) != string(b.Lines) {
			t.Fatalf("%s\nonce  %sagain %s%v", text, b.Lines, again.Lines, err)
		}
	}
}

// eachText calls yield for each value of the test above.
func eachText(text string, yield func(string)) {
	for i := 0; i < len(text); i++ {
		if text[i] == '"' && i+2 < len(text) && (text[i+1] == 'v' || text[i+1] == 'T') && text[i+2] >= '0' && text[i+2] <= '9' {
			end := strings.IndexByte(text[i+1:], '"')
			yield(text[i : i+end+2])
		}
	}
}

// An error that is nested without end costs no more than its bytes, some times over, and what
// is not read of it stays.
func TestManyCauses(t *testing.T) {
	in := `{"type":"E18"}`
	for i := 17; i >= 0; i-- {
		in = fmt.Sprintf(`{"type":"E%d","cause":%s}`, i, in)
	}
	b, err := normalizeBody(t, Limits{NoFingerprint: true}, `{"error":`+in+`}`)
	if err != nil || !strings.Contains(string(b.Lines), `{"type":"E15"},{"type":"E16"},{"type":"E17","cause":{"type":"E18"}}]}`) {
		t.Errorf("%s, %v", b.Lines, err)
	}
	again, err := normalizeBody(t, Limits{NoFingerprint: true}, string(b.Lines))
	if err != nil || string(again.Lines) != string(b.Lines) {
		t.Errorf("once  %sagain %s%v", b.Lines, again.Lines, err)
	}
	deep := strings.Repeat(`{"type":"E","cause":`, 9000) + "1" + strings.Repeat("}", 9000)
	if b, err := normalizeBody(t, Limits{}, `{"error":`+deep+`}`); err != nil || b.RejectedFor(ReasonTooDeep) != 1 {
		t.Error(err, b.Rejected)
	}
}

// A stack is read from its ends if it is long.
func TestLongStack(t *testing.T) {
	for _, kind := range []string{"a", `\\n`} {
		stack := `Traceback (most recent call last):\n` + strings.Repeat(`  File \"/app/shop.py\", line 7, in pay\n    `+kind+strings.Repeat("x", 100)+`\n`, 2000) + `ZeroDivisionError: division by zero`
		b, err := normalizeBody(t, Limits{}, `{"exc_info":"`+stack+`"}`)
		if err != nil || !strings.Contains(string(b.Lines), `"error":{"type":"ZeroDivisionError","message":"division by zero","stack":"`+stack+`"}`) {
			t.Errorf("%.300s, %v", b.Lines, err)
		}
	}
}

func TestNoAllocationForErrors(t *testing.T) {
	body := []byte(strings.Repeat(`{"level":"error","msg":"m","err":{"type":"T","message":"order 7","stack":"T: order 7\n    at pay (/app/a.js:1:2)","cause":{"name":"U","message":"u"}}}
{"msg":"m","error":"a","exc_info":"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nE: m","hostname":"h","log":{"level":"warn","x":{"y":1}}}
{"exception.type":"T","exception.message":"m","exception.stacktrace":"T: m\n\tat a.B.c(B.java:7)"}
{"exception":[{"exc_type":"T","exc_value":"v","frames":[{"filename":"a.py","lineno":7,"name":"f"}]}]}
`, 50))
	n, b := New(Limits{}), new(Batch)
	if got := testkit.Mallocs(func() {
		b.Reset()
		if n.Body(b, body, received); b.Records != 200 {
			t.Fatal(b.Rejected)
		}
	}); got != 0 {
		t.Errorf("%d allocations", got)
	}
}

// The fingerprint is one of the attributes, and obeys their limits.
func TestFingerprint(t *testing.T) {
	print := func(limits Limits, in string) string {
		b, err := normalizeBody(t, limits, in)
		if err != nil || b.Records != 1 {
			t.Fatal(in, err, b.Rejected)
		}
		_, rest, _ := strings.Cut(string(b.Lines), `"`+FingerprintName+`":`)
		value, _, _ := strings.Cut(rest, "}")
		return value
	}
	same := map[string]string{}
	for name, in := range map[string]string{
		"text and type":      `{"exception.type":"a.ArithmeticException","exception.message":"order 7"}`,
		"object":             `{"err":{"name":"ArithmeticException","message":"order 8"}}`,
		"head of a text":     `{"error":"a.b.ArithmeticException: order 77"}`,
		"with another cause": `{"error":{"type":"ArithmeticException","message":"order 9","cause":{"type":"X"}}}`,
	} {
		same[print(Limits{}, in)] = name
	}
	same[print(Limits{}, `{"errorType":"ArithmeticException","errorMessage":"order 8","stackTrace":["ArithmeticException: order 8"]}`)] = "a list with the head alone"
	if len(same) != 1 {
		t.Errorf("%v", same)
	}
	for in, want := range map[string]string{
		`{"error":"x","attrs":{"error.fingerprint":"mine"}}`: `"mine"`,
		`{"error":null}`: "", `{"error":{}}`: "", `{"msg":"x"}`: "",
	} {
		if got := print(Limits{}, in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if print(Limits{MaxFields: 1}, `{"error":"x","a":1}`) != "" || print(Limits{MaxFields: 1}, `{"error":"x"}`) == "" || print(Limits{MaxKeyBytes: 16}, `{"error":"x"}`) != "" {
		t.Error("limits do not hold")
	}
	if a, b := print(Limits{}, `{"msg":"charge failed","error":{"code":7}}`), print(Limits{}, `{"msg":"refund failed","error":{"code":7}}`); a == "" || a == b {
		t.Errorf("of the message: %s, %s", a, b)
	}
}

// A failure has one fingerprint, whether its trace comes by itself or in the message.
func TestTraceInTheMessage(t *testing.T) {
	const trace = `Traceback (most recent call last):\n  File \"/app/db.py\", line 3, in query\n    rows = 1 / 0\nZeroDivisionError: division by zero\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"/app/shop.py\", line 7, in pay\nshop.PaymentError: order 7`
	prints := map[string]bool{}
	for _, in := range []string{`{"level":"error","msg":"it failed","exc_info":"` + trace + `"}`, `{"level":"error","msg":"it failed\n` + trace + `"}`, `{"level":"error","log":` + inQuotes(`{"msg":"it failed\n`+trace+`"}`) + `}`} {
		b, err := normalizeBody(t, Limits{}, in)
		var line struct {
			Error struct {
				Type, Message string
				Causes        []struct{ Type, Message string }
			}
			Attrs map[string]any
		}
		if err := json.Unmarshal(b.Lines, &line); err != nil {
			t.Fatal(err)
		}
		if e := line.Error; err != nil || e.Type != "shop.PaymentError" || e.Message != "order 7" || len(e.Causes) != 1 || e.Causes[0].Type != "ZeroDivisionError" || e.Causes[0].Message != "division by zero" {
			t.Errorf("%s became %s", in, b.Lines)
		}
		prints[fmt.Sprint(line.Attrs[FingerprintName])] = true
	}
	if len(prints) != 1 || prints["<nil>"] {
		t.Errorf("fingerprints %v", prints)
	}
	for _, l := range []Limits{{Text: Text{Off: true}}, {MaxDepth: 3}, {MaxEventBytes: 600}} {
		if b, err := normalizeBody(t, l, `{"msg":"it failed\n`+trace+`"}`); err != nil || b.Records != 1 {
			t.Errorf("%+v: %v, %+v", l, err, b.Rejected)
		} else if l.Text.Off && strings.Contains(string(b.Lines), `"error"`) {
			t.Errorf("off: %s", b.Lines)
		}
	}
}
