package remote

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxAnswer     = 1 << 20   // bytes read of an answer, besides what each line adds
	maxText       = 4 << 10   // bytes of a 2xx's body that is not JSON
	maxQuote      = 4 << 10   // bytes of an error's body that are quoted, and of a string that are kept
	maxRetryAfter = time.Hour // longest wait that a peer can ask for
)

// refusal is the error of an answer whose body begins with body. advice is that of the
// dialect, by status.
func refusal(resp *http.Response, body string, advice map[int]string) *statusError {
	return &statusError{
		code:   resp.StatusCode,
		body:   strings.ToValidUTF8(strings.TrimSpace(body), "\uFFFD"),
		advice: advise(resp, advice),
		wait:   retryAfterOf(resp.Header),
	}
}

// readRefusal reads an answer other than 2xx, which says nothing of single lines.
func readRefusal(resp *http.Response, advice map[int]string) (verdict, error) {
	defer drain(resp.Body)
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxQuote))
	refused := refusal(resp, string(head), advice)
	if refusesBody(resp.StatusCode) {
		return verdict{whole: refused}, nil
	}
	return verdict{}, refused
}

// refusesBody reports whether the peer refuses a body for what it holds, so that a part of
// it may be taken.
func refusesBody(code int) bool {
	return code == http.StatusBadRequest || code == http.StatusUnprocessableEntity || code == http.StatusRequestEntityTooLarge
}

// readConfirmation reads the body of a 2xx to its end. It may be empty, a short text, or
// JSON of any kind. Another body, such as a page of a proxy or one that is cut, is an
// error, and the lines are kept.
func readConfirmation(resp *http.Response) (t tally, err error) {
	body, head, err := openAnswer(resp)
	if err != nil {
		return tally{}, err
	}
	switch text := bytes.TrimSpace(head); {
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		if t, err = parseTally(body); err != nil {
			return tally{}, unconfirmed(resp, head, "the answer is no whole JSON", err)
		}
	case len(head) > maxText:
		return tally{}, unconfirmed(resp, head, fmt.Sprintf("the answer is a text of more than %d bytes", maxText), nil)
	}
	return t, nil
}

// openAnswer reads the beginning of the body of a 2xx, at most maxText+1 bytes. If that
// is all of it, the body is complete.
func openAnswer(resp *http.Response) (body *bufio.Reader, head []byte, err error) {
	body = bufio.NewReaderSize(resp.Body, maxText+1)
	head, err = body.Peek(maxText + 1)
	if mark := []byte("\uFEFF"); bytes.HasPrefix(head, mark) {
		body.Discard(len(mark))
		head, err = body.Peek(maxText + 1)
	}
	switch {
	case isPage(resp.Header, head):
		return nil, nil, unconfirmed(resp, head, "the answer is an HTML page: a proxy or a login page may have taken the request", nil)
	case err != nil && err != io.EOF:
		return nil, nil, unconfirmed(resp, head, "the answer is cut short", err)
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
func unconfirmed(resp *http.Response, head []byte, what string, cause error) *statusError {
	e := refusal(resp, string(head[:min(len(head), 256)]), nil)
	e.err = cause
	if cause != nil {
		what = fmt.Sprintf("%s (%v)", what, cause)
	}
	e.advice = what + "; the lines are kept: check the URL and what is between here and there"
	return e
}

// drain reads the rest of a short body, so that the connection can be reused.
func drain(r io.Reader) { io.CopyN(io.Discard, r, 256<<10) }

// retryAfterOf returns the longest wait that the header asks for, 0 if none.
func retryAfterOf(h http.Header) (wait time.Duration) {
	for _, s := range h.Values("Retry-After") {
		wait = max(wait, parseRetryAfter(s, time.Now()))
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
