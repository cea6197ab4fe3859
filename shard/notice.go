package shard

import "time"

// noticeOwed reports whether there is a loss to announce.
func (w *Writer) noticeOwed() bool {
	return !w.opts.NoLossNotice && w.losses() != w.io.announced
}

// noticeDue reports whether a loss should be announced now: not while the
// destination fails, or the announcement would hold up the records.
func (w *Writer) noticeDue() bool { return !w.io.failing && w.noticeOwed() }

// noticeLate is noticeDue while there are no records to hold up: announcing is
// tried again now and then, and once more before the end.
func (w *Writer) noticeLate() bool {
	if !w.noticeOwed() {
		return false
	}
	if w.isClosing() && !w.io.parting {
		w.io.parting = true
		return true
	}
	return !w.isClosing() && time.Now().After(w.io.noticeAt)
}

// announce writes a line for each reason for which records were lost. Only
// whole records are in the destination when it is called, or the beginning of
// what is left of an announcement.
func (w *Writer) announce() {
	if len(w.io.text) == 0 {
		w.io.owed = w.losses()
		w.io.text, w.io.notices = w.io.owed.since(w.io.announced).appendNotices(nil, time.Now())
		w.io.textSize = len(w.io.text)
	}
	for len(w.io.text) > 0 {
		if !w.enter("write") {
			w.io.text = nil
			return
		}
		failed := false
		var n int64
		guard("write", func() (err error) {
			m, err := w.dst.Write(w.io.text)
			n, err = inRange(int64(m), int64(len(w.io.text)), err)
			return err
		}, func(err error) {
			failed = err != nil
			w.wroteText(n, err)
		})
		if failed && len(w.io.text) > 0 && !w.sleep(w.backoff()) {
			w.io.text = nil
			return
		}
	}
}

// wroteText books that a call has taken n bytes of the announcement. One of which
// nothing was taken is still owed, and does not hold up records.
func (w *Writer) wroteText(n int64, err error) {
	whole := len(w.io.text) == w.io.textSize
	w.io.text = w.io.text[n:]
	w.mu.Lock()
	w.exitLocked()
	w.tally.bytes += uint64(n)
	w.tally.lastErr = err
	if err != nil {
		w.tally.errors++
	}
	switch {
	case len(w.io.text) == 0:
		w.io.announced = w.io.owed
		w.tally.notices += w.io.notices
	case n == 0 && whole:
		w.io.text = nil
	}
	w.mu.Unlock()
	if n > 0 {
		w.io.tries = 0
	} else {
		w.io.noticeAt = time.Now().Add(w.backoff())
	}
	w.report(err)
}
