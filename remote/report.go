package remote

import (
	"errors"
	"fmt"
	"time"
)

// reportEvery is the shortest time between two calls of Options.OnError.
const reportEvery = time.Second

// A report gathers what Options.OnError is to be told.
type report struct {
	refused uint64 // lines
	reason  string // of the first refused line
	broken  uint64 // connections
	carried uint64 // lines written on them
	cause   error  // of the first
	away    error  // why lines began to go to disk
	lost    uint64 // lines dropped from disk
	spill   string // the first that was found on disk
	told    time.Time
}

// noteRefused gathers lines dropped because the peer refused them.
func (w *Writer) noteRefused(lines uint64, reason string) {
	text, now := w.quoteRefusal(reason), time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.LastRefusal, w.stats.LastRefusalTime = text, now
	w.loss.note(text)
	if w.report.refused == 0 {
		w.report.reason = reason
	}
	w.report.refused += lines
}

// noteBroken gathers a connection that broke with lines on the way.
func (w *Writer) noteBroken(carried uint64, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.report.broken == 0 {
		w.report.cause = cause
	}
	w.report.broken++
	w.report.carried += carried
}

// noteAway gathers that lines go to disk now.
func (r *report) noteAway(cause error) {
	if r.away == nil {
		r.away = cause
	}
}

// noteLost gathers lines that were dropped from disk.
func (r *report) noteLost(lines uint64) { r.lost += lines }

// noteSpill gathers what was found on disk.
func (r *report) noteSpill(text string) {
	if r.spill == "" {
		r.spill = text
	}
}

// tell calls OnError with what has gathered, if that is due or the last chance.
func (w *Writer) tell(last bool) {
	if w.opt.OnError == nil {
		return
	}
	w.mu.Lock()
	r := w.report
	now := time.Now()
	if r.refused == 0 && r.broken == 0 && r.away == nil && r.lost == 0 && r.spill == "" || !last && now.Sub(r.told) < reportEvery {
		w.mu.Unlock()
		return
	}
	w.report = report{told: now}
	w.mu.Unlock()

	var refused, broken, away, lost, spill error
	if r.refused > 0 {
		refused = fmt.Errorf("%d lines refused or too large, now dropped; the first: %s", r.refused, r.reason)
	}
	if r.broken > 0 {
		broken = fmt.Errorf("%d connections broke that had carried %d lines, of which the last may be lost; the first: %w", r.broken, r.carried, r.cause)
	}
	if r.away != nil {
		away = fmt.Errorf("lines wait on disk: %w", r.away)
	}
	if r.lost > 0 {
		lost = fmt.Errorf("%d lines dropped from disk", r.lost)
	}
	if r.spill != "" {
		spill = errors.New("on disk: " + r.spill)
	}
	defer func() {
		if v := recover(); v != nil {
			w.countError(fmt.Errorf("Options.OnError panicked: %v", v))
		}
	}()
	w.opt.OnError(w.wrap(errors.Join(refused, broken, away, lost, spill)))
}
