package remote

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/backoff"
)

// A cleanError is an error without secrets. Every error that a Writer returns or has in
// its Stats is one.
type cleanError struct {
	text string
	err  error
	open bool // err holds no secret and may be unwrapped
}

func (e *cleanError) Error() string             { return e.text }
func (e *cleanError) RetryAfter() time.Duration { return backoff.Asked(e.err) }
func (e *cleanError) Is(target error) bool      { return errors.Is(e.err, target) }

func (e *cleanError) Unwrap() error {
	if e.open {
		return e.err
	}
	return nil
}

// wrap puts the peer's name before err and takes secrets out of its text.
func (w *Writer) wrap(err error) error { return w.clean(fmt.Errorf("%s: %w", w, err)) }

func (w *Writer) clean(err error) error {
	text := err.Error()
	clean := w.redact(text)
	return &cleanError{text: clean, err: err, open: clean == text}
}

// redact returns s without the token, which an error of a lower layer may quote.
func (w *Writer) redact(s string) string {
	if w.opt.Token != "" {
		s = strings.ReplaceAll(s, w.opt.Token, "[redacted]")
	}
	for _, v := range w.opt.Header.Values("Authorization") {
		_, credentials, _ := strings.Cut(v, " ")
		for _, secret := range []string{v, credentials} {
			if secret != "" {
				s = strings.ReplaceAll(s, secret, "[redacted]")
			}
		}
	}
	return s
}

// A statusError is an HTTP answer that confirms nothing.
type statusError struct {
	code   int
	body   string // its beginning
	advice string
	wait   time.Duration
	err    error // why the body could not be read, if that is the reason
}

func (e *statusError) RetryAfter() time.Duration { return e.wait }
func (e *statusError) Unwrap() error             { return e.err }

func (e *statusError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "peer answers %d %s", e.code, http.StatusText(e.code))
	if e.body != "" {
		fmt.Fprintf(&b, ": %q", e.body)
	}
	if e.wait > 0 {
		fmt.Fprintf(&b, "; asks to wait %v", e.wait)
	}
	if e.advice != "" {
		b.WriteString("; " + e.advice)
	}
	return b.String()
}

// advice says what to do about an answer, by its status. Dialects have their own.
var advice = map[int]string{
	http.StatusUnauthorized:          "check Options.Token",
	http.StatusForbidden:             "check Options.Token",
	http.StatusNotFound:              collectorPath,
	http.StatusMethodNotAllowed:      collectorPath,
	http.StatusBadRequest:            takesNDJSON,
	http.StatusUnprocessableEntity:   takesNDJSON,
	http.StatusRequestEntityTooLarge: "raise the peer's limit for one request",
	http.StatusUnsupportedMediaType:  "the peer may not know gzip: try Options.DisableCompression",
	http.StatusProxyAuthRequired:     "check the user of the proxy in the environment",
	http.StatusRequestTimeout:        "",
	http.StatusTooEarly:              "",
	http.StatusTooManyRequests:       "",
}

const (
	collectorPath = "check the path of the URL: a Rollway collector takes logs at /api/logs"
	takesNDJSON   = "check that the URL takes NDJSON and that the lines are JSON objects"
)

func advise(resp *http.Response, own map[int]string) string {
	c := resp.StatusCode
	for _, by := range []map[int]string{own, advice} {
		if text, ok := by[c]; ok {
			return text
		}
	}
	switch {
	case c >= 300 && c < 400:
		if to, err := resp.Location(); err == nil {
			return "redirects are not followed: if " + display(to) + " is the right address, open that"
		}
		return "redirects are not followed: open the final address"
	case c >= 500:
		return ""
	}
	return "check the URL and the options; the lines are kept"
}

// refuses reports whether the answer refuses the request, and does not just say that the
// peer is busy or broken.
func (e *statusError) refuses() bool { return e.code >= 300 && e.code < 500 && !busy(e.code) }

// busy reports whether a status says that the peer has no time for the request now.
func busy(code int) bool {
	return code == http.StatusRequestTimeout || code == http.StatusTooEarly || code == http.StatusTooManyRequests
}

// temporary reports whether a status says that the peer is busy or broken at the moment.
func temporary(code int) bool {
	return busy(code) || code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout
}
