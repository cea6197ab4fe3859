package remote

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/line"
)

// A topic is a kind of report to OnError, made at once and then at most once a minute.
type topic int

const (
	refusedLines topic = aside.Note + 1 + iota // lines
	brokenConn                                 // connections, with the lines that they had carried
	peerAway                                   // the peer, so that lines wait on disk
	droppedLines                               // lines on disk
	diskFinding                                // something on disk
	topics
)

// A report collects the news of a topic for OnError.
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

// noteBroken records a connection that broke after it had carried so many lines, if any.
func (w *Writer) noteBroken(lost *report, lines uint64, cause error) {
	if lines > 0 {
		lost.add(lines, cause)
		w.note(brokenConn, lines, cause)
	}
}

// takeBroken is what a confirm returns of noteBroken, once; nil for none.
func (w *Writer) takeBroken(lost *report) (err error) {
	if lost.times > 0 {
		err = lost.broken()
	}
	if w.life.Err() == nil { // otherwise Shutdown returns it too
		*lost = report{}
	}
	return err
}

func (r *report) broken() error {
	return fmt.Errorf("%d connections broke, after %d lines; the last lines of each may be lost; the first: %w", r.times, r.lines, r.first)
}

// noteRefused adds lines that were dropped because the peer refused them, or
// because they are too large.
func (w *Writer) noteRefused(lines uint64, reason string) {
	text, now := w.quoteRefusal(reason), time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.LastRefusal, w.stats.LastRefusalTime = text, now
	w.loss.note(text)
	w.noteLocked(refusedLines, lines, errors.New(text))
}

// tell passes reports that are due to OnError, and all of them at the end of the Writer.
// A later call, or a timer, passes the others.
func (w *Writer) tell(end bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	rest := false
	for of := range topics {
		r := &w.reports[of]
		if r.times == 0 || of == peerAway && w.stats.Spill.Lines == 0 { // none waits any more
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
	case refusedLines:
		return fmt.Errorf("%d lines refused or too large, now dropped; the first: %w", r.lines, r.first)
	case brokenConn:
		return r.broken()
	case peerAway:
		return fmt.Errorf("%d lines wait on disk: %w", w.stats.Spill.Lines, r.first)
	case droppedLines:
		return fmt.Errorf("%d lines dropped from disk; the first: %w", r.lines, r.first)
	default:
		return fmt.Errorf("on disk: %w", r.first)
	}
}

// A loss is what the next Sync or Close reports of lost lines.
type loss struct {
	told  uint64 // Dropped.Total() when the latest was told
	first string // why the first line since then was lost
}

func (l *loss) note(reason string) {
	if l.first == "" {
		l.first = reason
	}
}

// newLosses returns what was lost since its last call, nil if that is nothing.
func (w *Writer) newLosses() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := w.stats.Dropped.Total()
	n := total - w.loss.told
	if n == 0 {
		return nil // a reason that is known already is that of lines not settled yet
	}
	// A Sync may have told the reason while the line was not counted yet.
	first := cmp.Or(w.loss.first, w.stats.LastRefusal)
	err := fmt.Errorf("%w: %d, the first: %s", line.ErrLost, n, first)
	w.loss = loss{told: total}
	return err
}

// maxRefusal is how many bytes of the text of a refusal are kept.
const maxRefusal = 1 << 10

// quoteRefusal returns text without secrets, shortened. The secrets are removed first:
// half of one would not be found.
func (w *Writer) quoteRefusal(text string) string {
	if text = w.redact(text); len(text) > maxRefusal {
		text = strings.ToValidUTF8(text[:maxRefusal], "") + "…"
	}
	return text
}

// noteRefusal notes that the peer has refused a whole request, whose lines may
// be taken in smaller ones.
func (w *Writer) noteRefusal(e *statusError) {
	text, now := w.quoteRefusal(e.Error()), time.Now()
	w.count(func(s *Stats) { s.LastRefusal, s.LastRefusalTime = text, now })
}
