package remote

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxAnswer     = 8 << 20          // bytes read of an answer that lists refused lines
	maxQuote      = 4 << 10          // bytes of an error's body that are quoted
	maxRetryAfter = 10 * time.Minute // longest wait that a peer can ask for
)

// An answer is what became of one request's lines.
type answer struct {
	refusal *statusError // the body was refused as a whole; a part of it may be taken
	tally   tally        // otherwise; zero if the peer did not send one
}

// A tally is the body in which a Rollway collector says what it took:
//
//	{"accepted":2,"rejected":[{"index":0,"line":1,"reason":"json","detail":"not JSON"}],"rejected_total":1}
type tally struct {
	counted   bool   // accepted was given
	accepted  uint64 // events
	rejected  uint64 // events
	firstLine uint64 // of the first rejected, from 1; 0 if unknown
	first     string // why it was
}

// refused is how many of the request's lines the peer did not take. The count
// of accepted ones decides where there is one, for the list may be cut short.
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

// judge reads an answer. An error leaves the lines with the caller.
func judge(resp *http.Response, now time.Time) (answer, error) {
	code := resp.StatusCode
	switch {
	case code >= 200 && code < 300:
		// The lines are stored whatever the body says; only its list of
		// refused ones is of interest.
		t, _ := parseTally(io.LimitReader(resp.Body, maxAnswer))
		drain(resp.Body)
		return answer{tally: t}, nil
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity, code == http.StatusRequestEntityTooLarge:
		var head strings.Builder
		body := io.TeeReader(resp.Body, &limitedWriter{w: &head, left: maxQuote})
		t, ok := parseTally(io.LimitReader(body, maxAnswer))
		drain(body)
		if ok && t.rejected > 0 {
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
		wait:   parseRetryAfter(resp.Header.Get("Retry-After"), now),
	}
}

// drain reads what is left of a short body, so that the connection is kept.
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

// parseTally reads a tally from the beginning of r. For any other body it
// reports false. Memory does not grow with the number of rejected lines.
func parseTally(r io.Reader) (t tally, ok bool) {
	d := json.NewDecoder(r)
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return tally{}, false
	}
	var total uint64
	known := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return tally{}, false
		}
		switch name {
		case "accepted":
			err = d.Decode(&t.accepted)
			t.counted, known = true, true
		case "rejected":
			err = t.parseRejected(d)
			known = true
		case "rejected_total":
			err = d.Decode(&total)
			known = true
		default:
			var skip json.RawMessage
			err = d.Decode(&skip)
		}
		if err != nil {
			return tally{}, false
		}
	}
	if _, err := d.Token(); err != nil || !known {
		return tally{}, false
	}
	t.rejected = max(t.rejected, total)
	return t, true
}

func (t *tally) parseRejected(d *json.Decoder) error {
	tok, err := d.Token()
	if err != nil || tok == nil { // null: none
		return err
	}
	if tok != json.Delim('[') {
		return fmt.Errorf("rejected is %v, not a list", tok)
	}
	for d.More() {
		var r struct {
			Line   uint64 `json:"line"`
			Reason string `json:"reason"`
			Detail string `json:"detail"`
		}
		if err := d.Decode(&r); err != nil {
			return err
		}
		if t.rejected++; t.rejected == 1 {
			t.firstLine, t.first = r.Line, cmp.Or(r.Detail, r.Reason)
		}
	}
	_, err = d.Token()
	return err
}

// parseRetryAfter reads the header of that name (RFC 9110, section 10.2.3):
// seconds or a date. What is absent, past or not understood is 0.
func parseRetryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(0, min(t.Sub(now), maxRetryAfter))
	}
	return 0
}
