package remote

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// ndjsonFormat sends lines as they are.
type ndjsonFormat struct{}

func (ndjsonFormat) group([]byte) int { return 0 }

func (ndjsonFormat) appendBody(_, span []byte, _ [][]byte, _ time.Time, _ func(int) string) []byte {
	return span
}

func (ndjsonFormat) readAnswer(resp *http.Response, lines int, _ bool) (v verdict, err error) {
	var t tally
	if code := resp.StatusCode; code >= 200 && code < 300 {
		if t, err = readConfirmation(resp); err != nil {
			return v, err
		}
	} else {
		defer drain(resp.Body)
		head, _ := io.ReadAll(io.LimitReader(resp.Body, maxQuote))
		if refusesBody(code) {
			t, _ = parseTally(io.MultiReader(bytes.NewReader(head), resp.Body))
		}
		whole := refusal(resp, string(head), nil)
		switch {
		case !refusesBody(code):
			return v, whole
		case t.rejected == 0:
			return verdict{whole: whole}, nil
		}
	}
	return verdict{refused: t.refused(uint64(lines)), reason: t.reason()}, nil
}

// A tally is the body of a Rollway collector's answer:
//
//	{"accepted":2,"rejected":[{"index":0,"line":1,"reason":"json","detail":"not JSON"}],"rejected_total":1}
//
// or of a receiver of OTLP:
//
//	{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"too old"}}
type tally struct {
	counted   bool   // accepted was given
	accepted  uint64 // events
	rejected  uint64 // events
	firstLine uint64 // of the first rejected, from 1; 0 if unknown
	first     string // why it was
}

// refused returns how many of the request's lines the peer did not accept. If there is a
// count of accepted lines, it decides: the list of others may be incomplete.
func (t tally) refused(lines uint64) uint64 {
	n := min(t.rejected, lines)
	if t.counted && t.accepted < lines {
		n = max(n, lines-t.accepted)
	}
	return n
}

func (t tally) reason() string {
	reason := cmp.Or(t.first, "the peer gives no reason")
	if t.firstLine > 0 {
		reason = fmt.Sprintf("line %d of its request: %s", t.firstLine, reason)
	}
	return reason
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
	if t.rejected == 0 {
		t.first = "" // a warning
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
		case "partialSuccess":
			if c, _ := a.Peek(); c == '{' {
				return t.parse(a)
			}
			err = a.Skip()
		case "rejectedLogRecords": // a number of 64 bits, which JSON of protocol buffers has as a text
			if c, _ := a.Peek(); c != '"' {
				t.rejected, _, err = a.Uint()
				return err
			}
			var digits string
			digits, err = a.Text()
			t.rejected, _ = strconv.ParseUint(digits, 10, 64)
		case "errorMessage":
			t.first, err = a.Text()
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
