package remote

import (
	"errors"
	"fmt"
	"time"

	"github.com/rollway/rollway/internal/aside"
)

// topic is what OnError is told of: at once, and then at most once a minute.
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
	told         time.Time // when the topic was told last
}

// note adds to the report of a topic. The next tell passes it on.
func (w *Writer) note(of topic, lines uint64, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(of, lines, cause)
}

func (w *Writer) noteLocked(of topic, lines uint64, cause error) {
	w.reports[of].add(lines, cause)
}

func (r *report) add(lines uint64, cause error) {
	if r.times == 0 {
		r.first = cause
	}
	r.times++
	r.lines += lines
}

// err is what a confirm returns, where what names one of the times; nil for none.
func (r *report) err(what string) error {
	switch r.times {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s after %d lines, of which the last may be lost: %w", what, r.lines, r.first)
	default:
		return fmt.Errorf("%s %d times, after %d lines in all, of which the last each time may be lost; the first: %w", what, r.times, r.lines, r.first)
	}
}

// noteRefused adds lines that were dropped because the peer refused them, or
// because they are too large.
func (w *Writer) noteRefused(lines uint64, reason string) {
	text, now := w.quoteRefusal(reason), time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.LastRefusal, w.stats.LastRefusalTime = text, now
	w.loss.note(text)
	w.noteLocked(refused, lines, errors.New(text))
}

// tell passes the reports that are due on to OnError, at the end of the Writer
// all of them. What is not due is told by a later call, or by a timer.
func (w *Writer) tell(end bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	rest := false
	for of := range topics {
		r := &w.reports[of]
		if r.times == 0 || of == away && w.stats.Spill.Lines == 0 { // none waits any more
			*r = report{told: r.told}
			continue
		}
		now := time.Now()
		if !end && now.Sub(r.told) < aside.TellEvery || !w.teller.Tell(aside.Note, w.wrap(w.errorLocked(of))) {
			rest = true
			continue
		}
		*r = report{told: now}
	}
	if w.ended = end; end && w.later != nil {
		w.later.Stop() // it would keep the Writer in memory
	}
	if rest && !end && w.later == nil {
		w.later = time.AfterFunc(aside.TellEvery, func() {
			w.mu.Lock()
			w.later = nil
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
