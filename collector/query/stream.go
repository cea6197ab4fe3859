package query

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rollway/rollway/collector/admission"
)

// streamBuffer is how many bytes an answer gathers before it sends them.
const streamBuffer = 64 << 10

// stream writes an answer in pieces. The client must take each within a time.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	turn    admission.Turn // to look at lines
	buf     []byte         // not sent yet
	started bool           // status and headers are sent
	flushed time.Time      // when something was sent last
	waited  time.Duration  // for the client

	// A client that has not taken a piece for lendAfter.
	lend    func()       // gives back what the answer does not need meanwhile; nil: nothing
	reclaim func() error // takes it again
}

// lendAfter is how long a client may take for a piece until the answer lends what it has.
const lendAfter = time.Second

// setEvents sets the header of an answer that is events.
func setEvents(w http.ResponseWriter) {
	setHeader(w, "text/event-stream").Set("X-Accel-Buffering", "no") // a proxy in between passes events on at once
}

// event appends an event that is not a line. data always encodes.
func (s *stream) event(name string, data any) {
	b, _ := json.Marshal(data)
	s.buf = fmt.Appendf(s.buf, "event: %s\ndata: %s\n\n", name, b)
}

// clientError is a failure to reach the client.
type clientError struct{ err error }

func (e *clientError) Error() string { return fmt.Sprintf("send to the client: %v", e.err) }
func (e *clientError) Unwrap() error { return e.err }

// flush sends what is gathered, at least the headers. The server takes the
// deadline off again when the request ends.
func (s *stream) flush() (err error) {
	begin := time.Now()
	defer func() { s.waited += time.Since(begin) }()
	if s.turn.Suspend() {
		defer s.turn.Begin()
	}
	if s.lend != nil {
		lent := make(chan struct{})
		timer := time.AfterFunc(lendAfter, func() { s.lend(); close(lent) })
		defer func() {
			if !timer.Stop() {
				<-lent
				err = cmp.Or(err, s.reclaim())
			}
		}()
	}
	err = s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return &clientError{err}
	}
	s.started = true
	if len(s.buf) > 0 {
		_, err := s.w.Write(s.buf)
		s.buf = s.buf[:0]
		if err != nil {
			return &clientError{err}
		}
	}
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return &clientError{err}
	}
	s.flushed = time.Now()
	return nil
}
