package remote

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// maxItem is how many bytes of an answer are read for each line.
const maxItem = 4 << 10

// bulkQuery keeps an answer short: 40 bytes instead of 200 per line.
const bulkQuery = "took,errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason"

// elasticURL makes of a URL with the path of an index or data stream that of
// its _bulk.
func elasticURL(u *url.URL) error {
	path := strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/_bulk")
	if path == "" || path == "/" {
		return errors.New("has no index: write it as the path, as in /logs-shop-default")
	}
	u.Path, u.RawPath = path+"/_bulk", ""
	q := u.Query()
	if !q.Has("filter_path") {
		q.Set("filter_path", bulkQuery)
		u.RawQuery = q.Encode()
	}
	return nil
}

// An elasticFormat is the _bulk protocol of Elasticsearch and OpenSearch. Each line becomes
// a document with an id of its own, so that it is stored once: the line with @timestamp
// before its other fields. A line that is not a JSON object becomes its message.
type elasticFormat struct{ rec record }

func (f *elasticFormat) group([]byte) int { return 0 }

func (f *elasticFormat) appendBody(dst, _ []byte, lines [][]byte, at time.Time, id func(int) string) []byte {
	for i, line := range lines {
		dst = append(dst, `{"create":{"_id":"`...)
		dst = append(dst, id(i)...)
		dst = append(dst, "\"}}\n"...)
		dst = append(f.appendDocument(dst, line, at), '\n')
	}
	return dst
}

func (f *elasticFormat) appendDocument(dst, line []byte, at time.Time) []byte {
	r := &f.rec
	r.read(line, false)
	if r.object && r.stamped {
		return append(dst, line...)
	}
	if !r.time.IsZero() {
		at = r.time
	}
	dst = append(dst, `{"@timestamp":"`...)
	dst = at.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	if !r.object {
		dst = append(dst, `,"message":`...)
		return append(jsonline.AppendStringBytes(dst, line), '}')
	}
	rest := bytes.TrimLeft(bytes.TrimLeft(line, " \t\r")[1:], " \t\r")
	if rest[0] != '}' {
		dst = append(dst, ',')
	}
	return append(dst, rest...)
}

var elasticAdvice = map[int]string{
	http.StatusNotFound:              elasticPath,
	http.StatusMethodNotAllowed:      elasticPath,
	http.StatusBadRequest:            "",
	http.StatusUnprocessableEntity:   "",
	http.StatusRequestEntityTooLarge: "",
}

const elasticPath = "check the URL: its path is that of an index or a data stream"

func (f *elasticFormat) readAnswer(resp *http.Response, lines int, _ bool) (verdict, error) {
	defer drain(resp.Body)
	if code := resp.StatusCode; code < 200 || code >= 300 {
		return readRefusal(resp, elasticAdvice)
	}
	body, head, err := openAnswer(resp)
	if err != nil {
		return verdict{}, err
	}
	v, err := parseBulk(body, lines)
	if err != nil {
		return verdict{}, unconfirmed(resp, head, "the answer is not a whole one of _bulk: is the URL that of an Elasticsearch?", err)
	}
	if again, ok := v.again.(*statusError); ok {
		again.wait = retryAfterOf(resp.Header)
	}
	return v, nil
}

// An item is what an answer of _bulk says of one line.
type item struct {
	status int
	kind   string // of the error, with its reason
	reason string
	cause  string
}

// parseBulk reads the whole answer to lines lines. Memory does not grow with its
// length, except for one byte per line. The items are in the order of the lines.
func parseBulk(r io.Reader, lines int) (v verdict, err error) {
	a := jsonwalk.NewStream(r, maxAnswer+int64(lines)*maxItem, maxDepth)
	known, failed := false, true
	err = a.Object(func(name string) (err error) {
		switch name {
		case "errors":
			known = true
			failed, err = a.Bool()
			return err
		case "items":
			known = true
			return v.parseItems(a, lines)
		default:
			return a.Skip()
		}
	})
	if err == nil {
		err = a.End()
	}
	switch {
	case err != nil:
		return verdict{}, err
	case !known:
		return verdict{}, errors.New("it has neither errors nor items")
	case v.lines == nil && !failed:
		return verdict{}, nil
	case v.lines == nil:
		v.lines = make([]lineState, lines)
	}
	if v.again == nil && slices.Contains(v.lines, lineTodo) {
		v.again = fmt.Errorf("the answer does not speak of all %d lines", lines)
	}
	return v, nil
}

func (v *verdict) parseItems(a *jsonwalk.Stream, lines int) error {
	i := 0
	return a.Array(func() error {
		it, err := parseItem(a)
		if err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
		if i++; i > lines {
			return fmt.Errorf("it has more than %d items", lines)
		}
		if v.lines == nil {
			v.lines = make([]lineState, lines)
		}
		state := it.state()
		v.lines[i-1] = state
		switch {
		case state == lineRefused && v.reason == "":
			v.reason = fmt.Sprintf("line %d of its request: %d %s", i, it.status, it.text())
		case state == lineTodo && v.again == nil:
			v.again = &statusError{code: it.status, body: it.text()}
		}
		return nil
	})
}

// parseItem reads {"create":{"status":400,"error":{"type":"…","reason":"…"}}}.
func parseItem(a *jsonwalk.Stream) (it item, err error) {
	actions := 0
	err = a.Object(func(string) error {
		actions++
		return a.Object(func(name string) error {
			switch name {
			case "status":
				n, _, err := a.Uint()
				it.status = int(min(n, 999))
				return err
			case "error":
				return it.parseError(a)
			default:
				return a.Skip()
			}
		})
	})
	if err == nil && (actions != 1 || it.status < 100) {
		err = fmt.Errorf("it has %d actions and the status %d", actions, it.status)
	}
	return it, err
}

// parseError reads an error, which some engines send as a text.
func (it *item) parseError(a *jsonwalk.Stream) error {
	if c, err := a.Peek(); err != nil || c != '{' {
		it.reason, err = a.Text()
		return err
	}
	return a.Object(func(name string) (err error) {
		switch name {
		case "type":
			it.kind, err = a.Text()
		case "reason":
			it.reason, err = a.Text()
		case "caused_by":
			var cause item
			err = cause.parseError(a)
			it.cause = cause.reason
		default:
			err = a.Skip()
		}
		return err
	})
}

// state is what the status of a line means. What an index or a user's rights
// lack is not the line's fault: it is kept.
func (it item) state() lineState {
	switch c := it.status; {
	case c >= 200 && c < 300, c == http.StatusConflict: // there already, by its id
		return lineWritten
	case c == http.StatusUnauthorized, c == http.StatusForbidden, c == http.StatusNotFound,
		c == http.StatusRequestTimeout, c == http.StatusTooManyRequests, c < 400, c >= 500:
		return lineTodo
	default:
		return lineRefused
	}
}

func (it item) text() string {
	text := it.reason
	if it.kind != "" {
		text = it.kind + ": " + text
	}
	if it.cause != "" {
		text += " (" + it.cause + ")"
	}
	return cmp.Or(text[:min(len(text), maxQuote)], "no reason is given")
}
