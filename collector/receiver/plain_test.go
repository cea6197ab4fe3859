package receiver_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// TestTextsAndForms sends what is not JSON, as Python's HTTPHandler and curl do.
func TestTextsAndForms(t *testing.T) {
	const text, form = "text/plain;charset=UTF-8", "application/x-www-form-urlencoded"
	for _, tt := range []struct {
		kind, body string
		code       int
		lines      []string // without their times
		answer     string
	}{
		{text, "one\r\n\n [two] three \n\xff", 200, []string{`"msg":"one"}`, `"msg":" [two] three "}`, "\"msg\":\"\ufffd\"}"}, `"accepted":3`},
		{text, `{"msg":"as a beacon sends it","level":"warn"}`, 200, []string{`"level":"WARN","msg":"as a beacon sends it"}`}, `"accepted":1`},
		{text, `[{"msg":"a"},{"msg":"b"}]`, 200, []string{`"msg":"a"}`, `"msg":"b"}`}, `"accepted":2`},
		{text, `[10:00:00] {"msg":1}`, 200, []string{`"msg":"[10:00:00] {\"msg\":1}"}`}, `"accepted":1`},
		{text, " \n", 400, nil, "the body is empty"},
		{form, "name=shop.db&msg=100%25+of+%25s&levelname=WARNING&lineno=7", 200, []string{`"level":"WARN","msg":"100% of %s","logger":"shop.db","attrs":{"lineno":"7"}}`}, `"accepted":1`},
		{form, "msg=%zz", 400, nil, `is not encoded as a form is`},
		{form, `{"msg":"curl -d = a form"}`, 200, []string{`"msg":"curl -d = a form"}`}, `"accepted":1`},
		{form, "hello world", 400, nil, "lines of text need Content-Type: text/plain"},
		{"", `{"log":"a\n","stream":"stderr","time":"2026-05-28T12:40:00Z"}` + "\n" + `{"log":"\tat b.C(D.java:7)\n","stream":"stderr","time":"2026-05-28T12:40:01Z"}` + "\n" + `{"log":" c\n","stream":"stdout","time":"2026-05-28T12:40:00Z"}` + "\nx\n",
			200, []string{`"msg":"a\n\tat b.C(D.java:7)\n","attrs":{"stream":"stderr"}}`, `"msg":" c\n","attrs":{"stream":"stdout"}}`}, `"line":4`},
		{"", `[{"date":1779972000.1,"log":"a"},{"date":1779972000.2,"log":" b"},{"date":1779972000.3,"log":"c"}]`, 200, []string{`"msg":"a\n b"}`, `"msg":"c"}`}, `"accepted":2`},
		{"", `{"level":"info","message":"a"}{"level":"info","message":" b"}`, 200, []string{`"msg":"a"}`, `"msg":" b"}`}, `"accepted":2`},
		{"", "a=b", 400, nil, "expected a JSON object"},
	} {
		s := decodetest.NewServer(t, nil)
		req := httptest.NewRequest("POST", "/api/logs", strings.NewReader(tt.body))
		req.Header.Set("Content-Type", tt.kind)
		rec := httptest.NewRecorder()
		s.Handler(receiver.Plain).ServeHTTP(rec, req)
		ok := rec.Code == tt.code && strings.Contains(rec.Body.String(), tt.answer) && len(s.Lines) == len(tt.lines)
		for i := range tt.lines {
			ok = ok && strings.HasSuffix(s.Lines[i], tt.lines[i])
		}
		if !ok {
			t.Errorf("%s %q: %d %s%q, want %q", tt.kind, tt.body, rec.Code, rec.Body, s.Lines, tt.lines)
		}
	}
}
