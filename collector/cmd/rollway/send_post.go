package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rollway/rollway/collector/receiver"
)

// answer is the response of POST /api/logs.
type answer struct {
	Accepted      int         `json:"accepted"`
	Rejected      []rejection `json:"rejected"`
	RejectedTotal int         `json:"rejected_total"`
	Error         string      `json:"error"`

	before bool // accepted before, under the same key
}

type rejection struct {
	Index  int    `json:"index"` // of the event in the batch, from 0
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// post sends the events [from, to) of b until the collector has answered, and counts. It
// halves what is too large for the collector. An error means that the events were not
// acknowledged and that sending more is pointless.
func (s *sender) post(ctx context.Context, b *batch, from, to int, t *tally, shown string) error {
	begin := 0
	if from > 0 {
		begin = b.ends[from-1]
	}
	a, err := s.postUntilAnswered(ctx, b.body[begin:b.ends[to-1]], to-from, "")
	status, refused := errors.AsType[*statusError](err)
	switch {
	case refused && status.code == http.StatusRequestEntityTooLarge && to-from > 1:
		middle := from + (to-from)/2
		if err := s.post(ctx, b, from, middle, t, shown); err != nil {
			return err
		}
		return s.post(ctx, b, middle, to, t, shown)
	case refused && (status.code == http.StatusRequestEntityTooLarge || status.code == http.StatusBadRequest):
		// There is no list of rejected events: the collector took none.
		t.refused += to - from
		t.reason(to-from, "%s:%d to %d: %s", shown, b.numbers[from], b.numbers[to-1], status.message)
		return nil
	case err != nil:
		return err
	}
	t.accepted += a.Accepted
	t.refused += to - from - a.Accepted
	for _, r := range a.Rejected {
		if r.Index < 0 || r.Index >= to-from {
			continue
		}
		text := r.Reason
		if r.Detail != "" {
			text += ": " + r.Detail
		}
		t.reason(1, "%s:%d: %s", shown, b.numbers[from+r.Index], appendPlain(nil, text))
	}
	return nil
}

// postUntilAnswered sends body, which contains n events (0: unknown). It retries for
// -retry while the collector is unreachable or full. key is the Idempotency-Key; empty:
// none.
func (s *sender) postUntilAnswered(ctx context.Context, body []byte, n int, key string) (a answer, err error) {
	err = s.untilAnswered(ctx, func() (err error) {
		a, err = s.postOnce(body, n, key)
		return err
	})
	return a, err
}

// untilAnswered calls try until it succeeds, its error is final, or -retry is over.
func (s *sender) untilAnswered(ctx context.Context, try func() error) error {
	told := false
	return retry(ctx, s.options.retry, try, func(err error) (time.Duration, bool) {
		pause, ok := retryAfter(err)
		if ok && !told {
			told = true
			s.line.clear()
			s.call.say("%v; retrying for %s", err, s.options.retry)
		}
		return pause, ok
	})
}

// journalID returns the ID of the collector's journal, which it asks for once a run;
// empty if unknown.
func (s *sender) journalID(ctx context.Context) (string, error) {
	if s.asked {
		return s.journal, nil
	}
	var health struct {
		Journal string `json:"journal"`
	}
	err := s.untilAnswered(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		err := s.client.getJSON(ctx, "/healthz", &health)
		if status, ok := errors.AsType[*statusError](err); ok && status.code/100 == 4 || errors.As(err, new(*json.SyntaxError)) || errors.As(err, new(*json.UnmarshalTypeError)) {
			return nil // another kind of server
		}
		return err
	})
	s.journal, s.asked = health.Journal, err == nil
	return s.journal, err
}

// postOnce sends body once. Ctrl-C does not cancel it: the current batch ends first.
func (s *sender) postOnce(body []byte, n int, key string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	header := http.Header{"Content-Type": {"application/x-ndjson"}}
	if key != "" {
		header.Set(receiver.KeyHeader, key)
	}
	resp, err := s.client.do(ctx, http.MethodPost, "/api/logs", header, body)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusBadRequest {
		return a, newStatusError(theCollector, resp)
	}
	a.before = resp.Header.Get(receiver.ReplayedHeader) == "true"
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return a, fmt.Errorf("read the answer: %w", err)
	}
	a.Accepted = -1 // to detect an answer without it
	err = json.Unmarshal(text, &a)
	rejected := max(a.RejectedTotal, len(a.Rejected))
	switch {
	case err != nil || a.Accepted < 0:
		return a, fatalError{fmt.Errorf("%s answers %d, but not as a collector does: %s%s", s.client.base, resp.StatusCode, serverMessage(text), plainToTLS(resp.StatusCode, text))}
	case resp.StatusCode == http.StatusBadRequest && rejected == 0:
		return a, &statusError{server: theCollector, code: resp.StatusCode, message: serverMessage(text), body: text}
	case n > 0 && a.Accepted+rejected != n:
		return a, fatalError{fmt.Errorf("%s says that it accepted %d and rejected %d of %s", s.client.base, a.Accepted, rejected, lines(n))}
	}
	return a, nil
}

// fatalError must not be retried.
type fatalError struct{ error }

// retryAfter reports whether a retry may help, and the pause that the server asks for.
func retryAfter(err error) (pause time.Duration, retry bool) {
	if errors.As(err, new(fatalError)) {
		return 0, false
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.after, status.code == http.StatusTooManyRequests || status.code == http.StatusRequestTimeout || status.code >= 500
	}
	// Otherwise the connection failed. It will again if it is TLS that the two do not agree on.
	return 0, !errors.As(err, new(*tls.CertificateVerificationError)) && !errors.As(err, new(tls.RecordHeaderError)) &&
		!errors.As(err, new(tls.AlertError)) && !errors.Is(err, http.ErrSchemeMismatch)
}
