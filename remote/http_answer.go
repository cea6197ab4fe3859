package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/jsonwalk"
)

const (
	maxAnswer     = 1 << 20   // bytes read of an answer, besides what each line adds
	maxText       = 4 << 10   // bytes of a 2xx's body that is not JSON
	maxQuote      = 4 << 10   // bytes of an error's body that are quoted, and of a string that are kept
	maxRetryAfter = time.Hour // longest wait that a peer can ask for
)

// An answer is the outcome of one request.
type answer struct {
	refusal *statusError // the body was refused as a whole; a part of it may be taken
	tally   tally        // otherwise; zero if the peer did not send one
}

// A tally is the body of a Rollway collector's answer:
//
//	{"accepted":2,"rejected":[{"index":0,"line":1,"reason":"json","detail":"not JSON"}],"rejected_total":1}
type tally struct {
	counted   bool   // accepted was given
	accepted  uint64 // events
	rejected  uint64 // events
	firstLine uint64 // of the first rejected, from 1; 0 if unknown
	first     string // why it was
}

// refused returns how many of the request's lines the peer did not accept. If there is a
// count of accepted lines, it decides: the list of others may be incomplete.
func (a answer) refused(lines uint64) uint64 {
	n := min(a.tally.rejected, lines)
	if a.tally.counted && a.tally.accepted < lines {
		n = max(n, lines-a.tally.accepted)
	}
	return n
}

func (t tally) reason() string {
	reason := t.first
	if reason == "" {
		reason = "the peer gives no reason"
	}
	if t.firstLine > 0 {
		reason = fmt.Sprintf("line %d of its request: %s", t.firstLine, reason)
	}
	return reason
}

// readAnswer reads an answer. An error leaves the lines with the caller.
func readAnswer(resp *http.Response, now time.Time) (answer, error) {
	code := resp.StatusCode
	switch {
	case code >= 200 && code < 300:
		t, err := readConfirmation(resp, now)
		return answer{tally: t}, err
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity, code == http.StatusRequestEntityTooLarge:
		var head strings.Builder
		body := io.TeeReader(resp.Body, &limitedWriter{w: &head, left: maxQuote})
		t, err := parseTally(body)
		drain(body)
		if err == nil && t.rejected > 0 {
			return answer{tally: t}, nil
		}
		return answer{refusal: refusal(resp, head.String(), now)}, nil
	default:
		head, _ := io.ReadAll(io.LimitReader(resp.Body, maxQuote)) // what could be read is quoted
		drain(resp.Body)
		return answer{}, refusal(resp, string(head), now)
	}
}

func refusal(resp *http.Response, body string, now time.Time) *statusError {
	return &statusError{
		code:   resp.StatusCode,
		body:   strings.ToValidUTF8(strings.TrimSpace(body), "\uFFFD"),
		advice: advise(resp),
		wait:   retryAfterOf(resp.Header, now),
	}
}

// readConfirmation reads the body of a 2xx to its end. It may be empty, a short text, or
// JSON of any kind. Another body, such as a page of a proxy or one that is cut, is an
// error, and the lines are kept.
func readConfirmation(resp *http.Response, now time.Time) (t tally, err error) {
	body, head, err := openAnswer(resp, now)
	if err != nil {
		return tally{}, err
	}
	switch text := bytes.TrimSpace(head); {
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		if t, err = parseTally(body); err != nil {
			return tally{}, unconfirmed(resp, head, now, "the answer is no whole JSON", err)
		}
	case len(head) > maxText:
		return tally{}, unconfirmed(resp, head, now, fmt.Sprintf("the answer is a text of more than %d bytes", maxText), nil)
	}
	return t, nil
}

// openAnswer reads the beginning of the body of a 2xx, at most maxText+1 bytes. If that
// is all of it, the body is complete.
func openAnswer(resp *http.Response, now time.Time) (body *bufio.Reader, head []byte, err error) {
	body = bufio.NewReaderSize(resp.Body, maxText+1)
	head, err = body.Peek(maxText + 1)
	if mark := []byte("\uFEFF"); bytes.HasPrefix(head, mark) {
		body.Discard(len(mark))
		head, err = body.Peek(maxText + 1)
	}
	switch {
	case isPage(resp.Header, head):
		return nil, nil, unconfirmed(resp, head, now, "the answer is an HTML page: a proxy or a login page may have taken the request", nil)
	case err != nil && err != io.EOF:
		return nil, nil, unconfirmed(resp, head, now, "the answer is cut short", err)
	}
	return body, head, nil
}

// isPage reports whether a body that begins with head is a page for people.
// Many frameworks send every text as text/html: the type alone proves nothing.
func isPage(h http.Header, head []byte) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte("<")) ||
		strings.EqualFold(strings.TrimSpace(kind), "text/html") && bytes.IndexByte(head, '<') >= 0
}

// unconfirmed is the error of a 2xx that does not confirm the lines.
func unconfirmed(resp *http.Response, head []byte, now time.Time, what string, cause error) *statusError {
	e := refusal(resp, string(head[:min(len(head), 256)]), now)
	e.err = cause
	if cause != nil {
		what = fmt.Sprintf("%s (%v)", what, cause)
	}
	e.advice = what + "; the lines are kept: check the URL and what is between here and there"
	return e
}

// drain reads the rest of a short body, so that the connection can be reused.
func drain(r io.Reader) { io.CopyN(io.Discard, r, 256<<10) }

// limitedWriter writes the first left bytes to w and discards the rest.
type limitedWriter struct {
	w    io.Writer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	n, err := l.w.Write(p[:min(len(p), l.left)])
	l.left -= n
	return len(p), err
}

// parseTally reads a whole body of JSON, and the tally in it if there is one. It ignores
// members that a tally does not have.
func parseTally(r io.Reader) (t tally, err error) {
	a := jsonwalk.NewStream(r, maxAnswer, maxDepth)
	c, err := a.Peek()
	switch {
	case err != nil:
	case c == '{':
		err = t.parse(a)
	default:
		err = a.Skip()
	}
	if err == nil {
		err = a.End()
	}
	if err != nil {
		return tally{}, err
	}
	return t, nil
}

func (t *tally) parse(a *jsonwalk.Stream) error {
	var total uint64
	err := a.Object(func(name string) (err error) {
		switch name {
		case "accepted":
			t.accepted, t.counted, err = a.Uint()
		case "rejected":
			err = t.parseRejected(a)
		case "rejected_total":
			total, _, err = a.Uint()
		default:
			err = a.Skip()
		}
		return err
	})
	t.rejected = max(t.rejected, total)
	return err
}

func (t *tally) parseRejected(a *jsonwalk.Stream) error {
	if c, err := a.Peek(); err != nil || c != '[' {
		t.rejected, _, err = a.Uint()
		return err
	}
	return a.Array(func() error {
		t.rejected++
		if c, err := a.Peek(); err != nil || c != '{' || t.rejected > 1 {
			return a.Skip()
		}
		var reason, detail string
		err := a.Object(func(name string) (err error) {
			switch name {
			case "line":
				t.firstLine, _, err = a.Uint()
			case "reason":
				reason, err = a.Text()
			case "detail":
				detail, err = a.Text()
			default:
				err = a.Skip()
			}
			return err
		})
		t.first = cmp.Or(detail, reason)
		return err
	})
}

// retryAfterOf returns the longest wait that the header asks for, 0 if none.
func retryAfterOf(h http.Header, now time.Time) (wait time.Duration) {
	for _, s := range h.Values("Retry-After") {
		wait = max(wait, parseRetryAfter(s, now))
	}
	return wait
}

// parseRetryAfter reads the value of Retry-After (RFC 9110, section 10.2.3):
// seconds or a date. A date in the past, or another value, is 0.
func parseRetryAfter(s string, now time.Time) time.Duration {
	s = strings.Trim(s, " \t")
	if s != "" && strings.Trim(s, "0123456789") == "" {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil { // more than fits
			return maxRetryAfter
		}
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(0, min(t.Sub(now), maxRetryAfter))
	}
	return 0
}
