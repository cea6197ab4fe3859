package remote

import (
	"errors"
	"fmt"
	"time"

	"github.com/rollway/rollway/internal/aside"
)

// topic is what OnError is told of, at most once a minute.
type topic int

const (
	refused topic = aside.Note + 1 + iota // lines
	broken                                // connections, with the lines that they had carried
	away                                  // the peer, so that lines wait on disk
	dropped                               // lines on disk
	found                                 // something on disk
	topics
)

// A report gathers what OnError is to be told of a topic.
type report struct {
	times, lines uint64
	first        error
}

// note gathers what is told by the end of the call under way.
func (w *Writer) note(of topic, lines uint64, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(of, lines, cause)
}

func (w *Writer) noteLocked(of topic, lines uint64, cause error) {
	r := &w.reports[of]
	if r.times == 0 {
		r.first = cause
	}
	r.times++
	r.lines += lines
}

// noteRefused gathers lines dropped because the peer refused them.
func (w *Writer) noteRefused(lines uint64, reason string) {
	text, now := w.quoteRefusal(reason), time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.LastRefusal, w.stats.LastRefusalTime = text, now
	w.loss.note(text)
	w.noteLocked(refused, lines, errors.New(reason))
}

// tell passes on to OnError what has gathered, at the end of the Writer all of it,
// else what is due now. The rest follows.
func (w *Writer) tell(end bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := false
	for of := range topics {
		r := &w.reports[of]
		if r.times == 0 || of == away && w.stats.Spill.Lines == 0 { // which is over
			*r = report{}
			continue
		}
		kind := int(of)
		if end {
			kind = aside.Note
		}
		if w.teller.Tell(w.opt.OnError, kind, w.wrap(w.errorLocked(of))) {
			*r = report{}
		} else {
			rest = true
		}
	}
	if end {
		w.ended, w.later = true, true
		w.teller.End()
	}
	if rest && !w.later {
		w.later = true
		time.AfterFunc(aside.TellEvery, func() {
			w.mu.Lock()
			w.later = w.ended
			w.mu.Unlock()
			w.tell(false)
		})
	}
}

func (w *Writer) errorLocked(of topic) error {
	r := w.reports[of]
	switch of {
	case refused:
		return fmt.Errorf("%d lines refused or too large, now dropped; the first: %w", r.lines, r.first)
	case broken:
		return fmt.Errorf("%d connections broke that had carried %d lines, of which the last may be lost; the first: %w", r.times, r.lines, r.first)
	case away:
		return fmt.Errorf("%d lines wait on disk: %w", w.stats.Spill.Lines, r.first)
	case dropped:
		return fmt.Errorf("%d lines dropped from disk; the first: %w", r.lines, r.first)
	default:
		return fmt.Errorf("on disk: %w", r.first)
	}
}
