package receiver

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// Plain is the protocol of /api/logs: JSON, whatever the Content-Type is, and besides lines
// of text as text/plain, each a message, and one event as a form.
var Plain Protocol = plain{}

type plain struct{}

func (plain) Decode(q *Request) error {
	kind, _, _ := strings.Cut(q.HTTP.Header.Get("Content-Type"), ";")
	switch {
	case kind == "text/plain" && !isJSON(q.Body):
		b := q.Norm.Build(q.Batch, q.Received)
		wire.Lines(b, q.Body, func() { b.End() })
		b.Done()
		return nil
	case kind == "application/x-www-form-urlencoded" && isForm(q.Body):
		form(q)
		return nil
	}
	text := textLines
	if text.Most = q.Norm.MostJoined(); text.Suits(q.Body) {
		text.InPlace(q.Body)
	}
	err := q.Norm.Body(q.Batch, q.Body, q.Received)
	switch {
	case err == normalize.ErrEmpty:
		return &Refusal{Code: http.StatusBadRequest, Text: err.Error() + `, such as {"level":"info","msg":"hello"}`, Empty: true}
	case err != nil:
		return fmt.Errorf("the body is %w%s; nothing was stored", err, expected(q.Body))
	}
	return nil
}

// isJSON reports whether a body is JSON, or empty. Text may begin with a time in brackets.
func isJSON(body []byte) bool {
	const maxNested = 10_000
	body = bytes.TrimSpace(body)
	return len(body) == 0 || body[0] == '{' || body[0] == '[' && jsonwalk.Valid(body, maxNested)
}

// isForm reports whether a body is names and values. curl sends anything as a form.
func isForm(body []byte) bool {
	name, _, found := bytes.Cut(body, []byte("="))
	return found && len(name) > 0 && bytes.IndexFunc(name, func(c rune) bool { return c <= ' ' || c == '{' || c == '[' || c == '"' }) < 0
}

// form makes one event of the fields of a form, in their order.
func form(q *Request) {
	b := q.Norm.Build(q.Batch, q.Received)
	b.Begin()
	b.Raw(q.Body)
	for field := range strings.SplitSeq(string(bytes.TrimSpace(q.Body)), "&") {
		name, value, _ := strings.Cut(field, "=")
		name, err := url.QueryUnescape(name)
		text, err2 := url.QueryUnescape(value)
		switch {
		case err != nil || err2 != nil:
			b.Reject(normalize.ReasonSyntax, fmt.Sprintf("the form's field %.50q is not encoded as a form is", field))
			b.Done()
			return
		case name != "" && !b.Failed():
			b.Field([]byte(name))
			b.String([]byte(text))
		}
	}
	b.End()
	b.Done()
}

// expected says what a body that does not begin as JSON should be.
func expected(body []byte) string {
	if body = bytes.TrimSpace(body); len(body) > 0 && (body[0] == '{' || body[0] == '[') {
		return ""
	}
	return `; expected a JSON object, an array of objects, or one object per line, such as {"level":"info","msg":"hello"}; lines of text need Content-Type: text/plain`
}

func (plain) Answer(a *Answer) {
	a.Body = AppendAnswer(a.Body, a)
}
