package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/backoff"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/spool"
	"github.com/rollway/rollway/line"
)

// run sends what is on disk until the spillQueue is stopped.
func (s *spillQueue) run() {
	defer close(s.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures := 0 // of the disk and of notices
	var resume time.Time
	for s.ctx.Err() == nil {
		wait := time.Until(resume)
		if wait <= 0 {
			var err error
			if wait, err = s.fill(); err != nil {
				s.failed(err)
				wait = retryWait(failures, backoff.Asked(err))
				resume = time.Now().Add(wait)
				failures++
			} else {
				failures = 0
			}
			s.takeCounts()
		}
		s.w.tell(false)
		timer.Stop()
		var due <-chan time.Time
		if wait > 0 {
			timer.Reset(wait)
			due = timer.C
		}
		select {
		case l := <-s.ended:
			s.finished(l)
		case <-s.sent:
		case <-s.wake:
		case <-s.flush:
			s.retrySoon()
		case <-due:
		case <-s.ctx.Done():
		}
	}
	for s.busy > 0 {
		s.finished(<-s.ended)
	}
	for _, l := range s.workers[1:] {
		l.out.close()
	}
}

// fill begins as many attempts as the window allows. It returns how long to wait for the
// next, as choose does.
func (s *spillQueue) fill() (wait time.Duration, err error) {
	for s.busy < s.size {
		l, wait, err := s.choose(s.spool, time.Now())
		s.takeCounts()
		if err != nil {
			return 0, err
		}
		if l == nil {
			if len(s.queue) == 0 && s.shrink() {
				s.publish()
			}
			return wait, s.announce()
		}
		if err := s.announce(); err != nil {
			return 0, err
		}
		s.begin(l, time.Now())
		s.publish()
		why := s.repeatedStatusOf(l)
		go func() {
			l.err = s.send(l, why)
			s.ended <- l
		}()
	}
	return 0, nil
}

// publish shows the window in Stats.
func (s *spillQueue) publish() {
	s.w.count(func(st *Stats) { st.Spill.InFlight, st.Spill.Window = s.busy, s.size })
}

// finished notes how the attempt of l has ended.
func (s *spillQueue) finished(l *worker) {
	err := l.err
	s.end(l, time.Now(), s.spool.Stats().Unread >= int64(s.piece))
	s.publish()
	if err != nil {
		s.failed(err)
	}
}

// failed tells that lines wait on disk because of err.
func (s *spillQueue) failed(err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.w.mu.Lock()
	s.w.noteLocked(peerAway, 0, err)
	s.wakeWaitersLocked() // a Sync does not wait any longer
	s.w.mu.Unlock()
}

// announce sends the lines that say what was dropped, unless their sender is busy.
func (s *spillQueue) announce() error {
	w := s.w
	if w.opt.Spill.NoNotice || s.workers[0].busy {
		return nil
	}
	if len(s.notice) == 0 {
		s.noticed = s.spool.Stats().Dropped
		for _, r := range [...]struct {
			lines  uint64
			reason string
		}{
			{s.noticed.Full - s.announced.Full, "disk buffer full"},
			{s.noticed.Old - s.announced.Old, "disk buffer too old"},
			{s.noticed.Damaged - s.announced.Damaged, "disk buffer damaged"},
		} {
			if r.lines > 0 {
				s.notice = jsonline.AppendLossNotice(s.notice, time.Now(), r.lines, r.reason)
			}
		}
	}
	for len(s.notice) > 0 {
		if s.noticeErrors >= divideAfter && s.noticePassed == s.passed {
			return nil // lines go first: they show whether the peer accepts anything
		}
		done, err := s.sendNotice()
		s.notice = s.notice[done.n:]
		w.count(func(st *Stats) { st.Spill.Notices += done.written })
		if err != nil {
			return err
		}
		s.noticeErrors = 0
	}
	s.notice, s.announced = s.notice[:0], s.noticed
	return nil
}

func (s *spillQueue) sendNotice() (outcome, error) {
	w := s.w
	if err := w.lock(s.ctx); err != nil {
		return outcome{}, err
	}
	defer w.unlock()
	ctx, cancel := context.WithTimeout(s.ctx, w.opt.Timeout)
	defer cancel()
	done, err := w.out.send(ctx, s.notice)
	e, ok := errors.AsType[*statusError](err)
	if ok && !temporary(e.code) && (e.code < 500 || s.noticeErrors >= divideAfter) {
		w.note(diskFinding, 0, fmt.Errorf("the peer does not take the line that announces a loss: %w", err))
		return outcome{n: len(s.notice)}, nil
	}
	if ok && !temporary(e.code) {
		s.noticeErrors++
		s.noticePassed = s.passed
	}
	if err != nil {
		w.countError(err)
	}
	return done, err
}

// minRetryWait is the shortest time between two attempts while a Flush waits.
const minRetryWait = 100 * time.Millisecond

// send sends the piece of l, all of it unless there is an error.
func (s *spillQueue) send(l *worker, why repeatedStatus) error {
	w := s.w
	if err := acquire(s.ctx, l.sem); err != nil {
		return err
	}
	defer func() { <-l.sem }()
	ctx, cancel := context.WithTimeout(s.ctx, w.opt.Timeout)
	defer cancel()
	if h, ok := l.out.(*httpSender); ok {
		h.replay(replaying{l.piece, l.after, why, func() {
			l.sent.Store(true)
			aside.Signal(s.sent)
		}})
		defer h.replay(replaying{})
	}
	for len(l.piece.Data) > 0 {
		done, err := l.out.send(ctx, l.piece.Data)
		l.accepted = l.accepted || done.written > 0
		if err := s.settle(l.piece, done); err != nil {
			return err
		}
		if err != nil {
			w.countError(err)
			if w.addr.transport == overHTTP {
				l.out.close() // the next attempt may meet another process of the peer
			}
			return err
		}
		w.countSuccess()
	}
	return nil
}

// settle counts lines from the disk that are settled, and lets go of them.
func (s *spillQueue) settle(b *spool.Batch, done outcome) error {
	s.w.count(func(st *Stats) {
		done.count(st)
		st.Spill.Lines -= done.lines()
	})
	err := s.spool.Ack(b, done.n)
	s.w.mu.Lock()
	s.wakeWaitersLocked()
	s.w.mu.Unlock()
	return err
}

// peerFails reports whether lines are on disk and the peer fails.
func (s *spillQueue) peerFails() bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.stats.Failures > 0 && s.w.stats.Spill.Lines > 0
}

// drain waits until everything stored so far is settled; unless it is patient, only while
// the peer works.
func (s *spillQueue) drain(ctx context.Context, patient bool) error {
	if !patient && s.peerFails() { // a Sync comes often, and would ask a peer that fails too often
		return s.pendingError(patient, nil)
	}
	if err := acquire(ctx, s.storing); err != nil { // the Writes before it
		return s.pendingError(patient, err)
	}
	target := s.spool.Stats().Next
	<-s.storing
	aside.Signal(s.flush)
	for {
		s.w.mu.Lock()
		moved := s.progress
		s.w.mu.Unlock()
		if s.spool.Stats().First >= target {
			s.takeCounts()
			return nil
		}
		if !patient && s.peerFails() {
			return s.pendingError(patient, nil)
		}
		select {
		case <-moved:
		case <-s.stopped:
			return s.pendingError(true, os.ErrClosed) // finish calls fsync
		case <-ctx.Done():
			return s.pendingError(patient, ctx.Err())
		}
	}
}

// pendingError says how many lines are on disk and why; nil for none. Unless the caller is
// patient it calls fsync first.
func (s *spillQueue) pendingError(patient bool, why error) error {
	if !patient {
		why = errors.Join(s.spool.Sync(), why)
	}
	s.w.mu.Lock()
	lines, err := s.w.stats.Spill.Lines, s.w.stats.LastError
	s.w.mu.Unlock()
	if lines == 0 {
		return why
	}
	left := fmt.Errorf("%w: %d lines wait in %s", line.ErrPending, lines, s.w.opt.Spill.Dir)
	if err != nil {
		left = fmt.Errorf("%w; the latest error: %s", left, err)
	}
	if why != nil {
		left = fmt.Errorf("%w: %w", left, why)
	}
	return left
}

// finish drains while ctx lasts, ends the goroutine and gives up the folder.
// No Write runs any more.
func (s *spillQueue) finish(ctx context.Context) error {
	err := s.drain(ctx, true)
	s.stop()
	<-s.stopped
	closeErr := s.spool.Close()
	s.takeCounts()
	if s.w.Stats().Spill.Lines == 0 {
		err = nil
	}
	return errors.Join(err, closeErr)
}
