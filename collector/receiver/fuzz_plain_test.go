package receiver_test

import (
	"bytes"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/internal/jsonline"
)

// FuzzPlain sends any body as text and as a form. Each line of a text is the event that it is
// by itself, and the fields of a form make the event that they make as members of an object.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"one\r\n\n [two] three \n\xff", `{"msg":"x"}`, "a\n\tat b.C(D.java:7)\nlevel=warn msg=x", "msg=100%25+of&levelname=WARNING&a=1&a=2",
		"=x&a&b=%00&error=x%0Ay", `msg={"level":"error","msg":"y"}&time=1779972000`, "msg=%zz", "metadata=x&attrs=y&level=50"} {
		f.Add(s)
	}
	decode := func(limits normalize.Limits, kind, body string) (*normalize.Batch, error) {
		req := httptest.NewRequest("POST", "/api/logs", nil)
		req.Header.Set("Content-Type", kind)
		b := new(normalize.Batch)
		_, err := decodetest.Decode(receiver.Plain, normalize.New(limits), b, req, []byte(body), nil)
		return b, err
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, limits := range decodetest.FuzzLimits() {
			for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", ""} {
				b, _ := decode(limits, kind, body)
				decodetest.CheckLines(t, b)
			}
		}
		first := strings.TrimSpace(body)
		if first != "" && first[0] != '{' && first[0] != '[' {
			apart := normalize.Limits{Text: normalize.Text{Apart: true}}
			all, err := decode(apart, "text/plain", body)
			if err != nil {
				t.Fatalf("%q: %v", body, err)
			}
			var lines []byte
			for line := range strings.SplitSeq(body, "\n") {
				if line = strings.TrimSuffix(line, "\r"); strings.TrimSpace(line) == "" {
					continue
				}
				n, b := normalize.New(apart), new(normalize.Batch)
				build := n.Build(b, time.Unix(1779972000, 0))
				build.Begin()
				build.Message([]byte(line))
				build.End()
				build.Done()
				lines = b.AppendTo(lines)
			}
			if got := all.AppendTo(nil); !bytes.Equal(got, lines) {
				t.Fatalf("%q: %s, line by line %s", body, got, lines)
			}
		}
		checkForm(t, body, decode)
	})
}

// checkForm compares the fields of a body with members of an object.
func checkForm(t *testing.T, body string, decode func(normalize.Limits, string, string) (*normalize.Batch, error)) {
	name, _, found := strings.Cut(body, "=")
	if !found || name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == '{' || c == '[' || c == '"' }) {
		return // it is no form
	}
	object := []byte("{")
	for field := range strings.SplitSeq(strings.TrimSpace(body), "&") {
		name, value, _ := strings.Cut(field, "=")
		name, err := url.QueryUnescape(name)
		text, err2 := url.QueryUnescape(value)
		if err != nil || err2 != nil || !utf8.ValidString(name+text) {
			return
		}
		if name != "" {
			object = append(append(jsonline.AppendString(object, name), ':'), jsonline.AppendString(nil, text)...)
			object = append(object, ',')
		}
	}
	object = append(bytes.TrimSuffix(object, []byte(",")), '}')
	form, err := decode(normalize.Limits{}, "application/x-www-form-urlencoded", body)
	if err != nil || form.RejectedFor(normalize.ReasonBinary) > 0 {
		return
	}
	if b, _ := decode(normalize.Limits{}, "", string(object)); !bytes.Equal(b.AppendTo(nil), form.AppendTo(nil)) {
		t.Fatalf("%q: %s, as %s %s", body, form.AppendTo(nil), object, b.AppendTo(nil))
	}
}
