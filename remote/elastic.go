package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

const formatElastic = "elastic"

// maxBulkAnswer is how much of an answer with an item per line is read.
const maxBulkAnswer = 64 << 20

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

// An elasticFormat is the _bulk protocol of Elasticsearch and OpenSearch. Each
// line is created as a document with an id of its own, so that one that was
// stored already is not stored again. A document is the line with @timestamp
// before its other fields; a line that is not a JSON object becomes its message.
type elasticFormat struct{ rec record }

func (f *elasticFormat) contentType() string { return "application/x-ndjson" }

func (f *elasticFormat) group([]byte) int { return 0 }

func (f *elasticFormat) appendBody(dst []byte, lines [][]byte, at time.Time, id func(int) string) []byte {
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

func (f *elasticFormat) judge(resp *http.Response, lines int, _ bool) (verdict, error) {
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		v, err := parseBulk(io.LimitReader(resp.Body, maxBulkAnswer), lines)
		if again, ok := v.again.(*statusError); ok {
			again.wait = parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
		}
		return v, err
	default:
		head, _ := io.ReadAll(io.LimitReader(resp.Body, maxQuote))
		refused := refusal(resp, string(head), time.Now())
		switch code {
		case http.StatusNotFound, http.StatusMethodNotAllowed:
			refused.advice = "check the URL: its path is that of an index or a data stream"
		case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
			refused.advice = ""
			return verdict{whole: refused}, nil
		}
		return verdict{}, refused
	}
}

// An item is what an answer of _bulk says of one line.
type item struct {
	Status int             `json:"status"`
	Error  json.RawMessage `json:"error"`
}

// parseBulk reads the answer to lines lines. Memory does not grow with its
// length, but for one byte per line.
func parseBulk(r io.Reader, lines int) (v verdict, err error) {
	bad := func(err error) (verdict, error) {
		return verdict{}, fmt.Errorf("the answer is not one of _bulk (is the URL that of an Elasticsearch?): %w", err)
	}
	d := json.NewDecoder(r)
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return bad(fmt.Errorf("it begins with %v: %v", tok, err))
	}
	known := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return bad(err)
		}
		switch name {
		case "errors":
			var failed bool
			if err := d.Decode(&failed); err != nil {
				return bad(err)
			}
			known = true
			if !failed && v.lines == nil {
				return verdict{}, nil // the items say the same
			}
		case "items":
			if err := v.parseItems(d, lines); err != nil {
				return bad(err)
			}
			known = true
		default:
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return bad(err)
			}
		}
	}
	if !known {
		return bad(errors.New("it has neither errors nor items"))
	}
	if v.lines == nil {
		v.lines = make([]lineState, lines)
	}
	if v.again == nil {
		for _, state := range v.lines {
			if state == lineTodo {
				v.again = fmt.Errorf("the answer does not speak of all %d lines", lines)
				break
			}
		}
	}
	return v, nil
}

func (v *verdict) parseItems(d *json.Decoder, lines int) error {
	if tok, err := d.Token(); err != nil || tok != json.Delim('[') {
		return fmt.Errorf("items is %v: %v", tok, err)
	}
	if v.lines == nil {
		v.lines = make([]lineState, lines)
	}
	for i := 0; d.More(); i++ {
		var actions map[string]item
		if err := d.Decode(&actions); err != nil {
			return err
		}
		if len(actions) != 1 || i >= lines {
			return fmt.Errorf("item %d of %d lines has %d actions", i+1, lines, len(actions))
		}
		for _, it := range actions {
			v.lines[i] = it.state()
			switch {
			case v.lines[i] == lineRefused && v.reason == "":
				v.reason = fmt.Sprintf("line %d of its request: %d %s", i+1, it.Status, it.reason())
			case v.lines[i] == lineTodo && v.again == nil:
				v.again = &statusError{code: it.Status, body: it.reason()}
			}
		}
	}
	_, err := d.Token()
	return err
}

// state is what the status of a line means. What an index or a user's rights
// lack is not the line's fault: it is kept.
func (it item) state() lineState {
	switch c := it.Status; {
	case c >= 200 && c < 300, c == http.StatusConflict: // there already, by its id
		return lineWritten
	case c == http.StatusUnauthorized, c == http.StatusForbidden, c == http.StatusNotFound,
		c == http.StatusRequestTimeout, c == http.StatusTooManyRequests, c < 400, c >= 500:
		return lineTodo
	default:
		return lineRefused
	}
}

func (it item) reason() string {
	var e struct {
		Type, Reason string
		Cause        struct{ Reason string } `json:"caused_by"`
	}
	var text string
	if json.Unmarshal(it.Error, &e) == nil && e.Type+e.Reason != "" {
		text = e.Type + ": " + e.Reason
		if e.Cause.Reason != "" {
			text += " (" + e.Cause.Reason + ")"
		}
	} else if json.Unmarshal(it.Error, &text) != nil {
		text = string(it.Error)
	}
	return strings.ToValidUTF8(cmp.Or(text[:min(len(text), maxQuote)], "no reason is given"), "\uFFFD")
}
