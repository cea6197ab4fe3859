package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/linecount"
	"github.com/rollway/rollway/internal/spool"
	"github.com/rollway/rollway/line"
)

// sending is a batch from the disk on its way to the peer.
type sending struct {
	batch spool.Batch
	skip  uint64 // its first lines, which are settled
}

// run sends what is on disk until the spiller is stopped.
func (s *spiller) run() {
	defer close(s.stopped)
	for attempt := 0; s.ctx.Err() == nil; {
		b, ok, err := s.spool.Peek()
		s.account()
		s.w.tell(false)
		if err == nil {
			err = s.announce()
		}
		switch {
		case err == nil && !ok:
			attempt = 0
			if !s.rest() {
				continue
			}
			select {
			case <-s.wake:
			case <-s.ctx.Done():
			}
			continue
		case err == nil:
			err = s.replay(b)
		}
		if err == nil {
			attempt = 0
			continue
		}
		s.failed(err)
		s.pause(retryWait(attempt, retryAfter(err)), retryAfter(err) > 0)
		attempt++
	}
}

// failed tells that lines wait on disk because of err.
func (s *spiller) failed(err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.w.mu.Lock()
	s.w.noteLocked(away, 0, err)
	s.movedLocked() // a Sync does not wait any longer
	s.w.mu.Unlock()
	s.w.tell(false)
}

// announce sends the lines that say what was dropped before what comes next.
func (s *spiller) announce() error {
	w := s.w
	if w.opt.Spill.NoNotice {
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
		done, err := s.sendNotice()
		s.notice = s.notice[done.n:]
		w.count(func(st *Stats) { st.Spill.Notices += done.written })
		if err != nil {
			return err
		}
	}
	s.notice, s.announced = s.notice[:0], s.noticed
	return nil
}

func (s *spiller) sendNotice() (settled, error) {
	w := s.w
	if err := w.lock(s.ctx); err != nil {
		return settled{}, err
	}
	defer w.unlock()
	ctx, cancel := context.WithTimeout(s.ctx, w.opt.Timeout)
	defer cancel()
	done, err := w.out.send(ctx, s.notice)
	if err == nil && done.n == 0 {
		err = errNothing
	}
	if err != nil {
		w.countError(err)
	}
	return done, err
}

var errNothing = errors.New("nothing was sent, and no reason given")

// rest lets Writes send by themselves again, if nothing is on disk.
func (s *spiller) rest() bool {
	select {
	case s.order <- struct{}{}:
	case <-s.ctx.Done():
		return false
	}
	defer func() { <-s.order }()
	if s.spool.Stats().Lines > 0 {
		return false
	}
	s.behind = false
	s.w.count(func(st *Stats) { st.Spill.Active = false })
	return true
}

// hurryAfter is the shortest time between two attempts, however many wait.
const hurryAfter = 100 * time.Millisecond

// pause waits d, or less if somebody waits for the lines and the peer did not
// ask for the time.
func (s *spiller) pause(d time.Duration, asked bool) {
	begin := time.Now()
	t := time.NewTimer(d)
	defer t.Stop()
	hurry := s.hurry
	if asked {
		hurry = nil
	}
	select {
	case <-t.C:
	case <-s.ctx.Done():
	case <-hurry:
		t.Reset(max(0, hurryAfter-time.Since(begin)))
		select {
		case <-t.C:
		case <-s.ctx.Done():
		}
	}
}

// replay sends b, all of it unless there is an error.
func (s *spiller) replay(b spool.Batch) error {
	w := s.w
	if err := w.lock(s.ctx); err != nil {
		return err
	}
	defer w.unlock()
	ctx, cancel := context.WithTimeout(s.ctx, w.opt.Timeout)
	defer cancel()
	s.sending = &sending{batch: b}
	defer func() { s.sending = nil }()
	w.count(func(st *Stats) { st.Spill.Replaying = true })
	defer w.count(func(st *Stats) { st.Spill.Replaying = false })
	for data := b.Data; len(data) > 0; {
		done, err := w.out.send(ctx, data)
		data = data[done.n:]
		if err := s.settle(done); err != nil {
			return err
		}
		if err == nil && done.n == 0 {
			err = errNothing
		}
		if err != nil {
			w.countError(err)
			return err
		}
		w.countSuccess()
	}
	return nil
}

// settle counts lines from the disk that are settled, and lets go of them.
func (s *spiller) settle(done settled) error {
	s.sending.skip += done.lines()
	s.w.count(func(st *Stats) {
		done.count(st)
		st.Spill.Lines -= done.lines()
		st.Spill.Replayed += done.lines()
	})
	err := s.spool.Ack(done.n)
	s.w.mu.Lock()
	s.movedLocked()
	s.w.mu.Unlock()
	return err
}

// replayKey is the idempotency key of piece, the beginning of what is being
// replayed; "" if nothing is. The holder of the turn calls it.
func (w *Writer) replayKey(piece []byte) string {
	if w.spill == nil || w.spill.sending == nil {
		return ""
	}
	r := w.spill.sending
	if r.batch.Tag != "" && r.batch.Skipped+r.skip == 0 && len(piece) == len(r.batch.Data) {
		return r.batch.Tag
	}
	return r.batch.Key(r.skip, linecount.Of(piece))
}

// replayID names the first line of what is being replayed, as key and number,
// and those behind it by the numbers that follow: the same at each attempt,
// also after a restart. It is "" if nothing is being replayed.
func (w *Writer) replayID() (key string, number uint64) {
	if w.spill == nil || w.spill.sending == nil {
		return "", 0
	}
	r := w.spill.sending
	if i := strings.LastIndexByte(r.batch.Tag, '-'); i > 0 {
		if n, err := strconv.ParseUint(r.batch.Tag[i+1:], 10, 62); err == nil {
			return r.batch.Tag[:i], n + r.batch.Skipped + r.skip
		}
	}
	return strconv.FormatUint(r.batch.Segment, 16), r.batch.Line + r.skip
}

// unsettled returns how many first bytes of p the last request held, and its
// key, if it failed; otherwise 0.
func (h *poster) unsettled(p []byte) (int, string) {
	if n := h.failed.size; h.failed.key != "" && n <= len(p) && sha256.Sum256(p[:n]) == h.failed.sum {
		return n, h.failed.key
	}
	return 0, ""
}

// unsettled returns how many first bytes of p went back to the caller with
// something known of them, and a key for replayID.
func (b *bulk) unsettled(p []byte) (int, string) {
	k := &b.batch
	if k.size > 0 && k.size <= len(p) && sha256.Sum256(p[:k.size]) == k.sum {
		return k.size, fmt.Sprintf("%s-%d", k.key, k.first)
	}
	return 0, ""
}

// away reports whether lines are on disk and the peer fails.
func (s *spiller) away() bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.stats.Failures > 0 && s.w.stats.Spill.Lines > 0
}

// press asks for an attempt to send, soon.
func (s *spiller) press() {
	select {
	case s.hurry <- struct{}{}:
	default:
	}
}

// drain waits until everything stored so far is settled; unless it is patient, no
// longer than the peer works.
func (s *spiller) drain(ctx context.Context, patient bool) error {
	select {
	case s.order <- struct{}{}:
	case <-ctx.Done():
		return s.left(patient, ctx.Err())
	}
	target := s.spool.Stats().Next
	<-s.order
	if patient || !s.away() { // a Sync comes often, and is not to hurry a peer that fails
		s.press()
	}
	for {
		s.w.mu.Lock()
		moved := s.moved
		s.w.mu.Unlock()
		if s.spool.Stats().First >= target {
			s.account()
			return nil
		}
		if !patient && s.away() {
			return s.left(patient, nil)
		}
		select {
		case <-moved:
		case <-s.stopped:
			return s.left(true, os.ErrClosed) // finish calls fsync
		case <-ctx.Done():
			return s.left(patient, ctx.Err())
		}
	}
}

// left is an error that says what is on disk and why, nil for nothing. Unless the
// caller is patient it calls fsync there first.
func (s *spiller) left(patient bool, why error) error {
	if !patient {
		why = errors.Join(s.spool.Sync(), why)
	}
	s.w.mu.Lock()
	lines, err := s.w.stats.Spill.Lines, s.w.stats.LastError
	s.w.mu.Unlock()
	if lines == 0 {
		return why
	}
	last := ""
	if err != nil {
		last = "; the latest error: " + err.Error()
	}
	left := fmt.Errorf("%w: %d lines wait in %s%s", line.ErrPending, lines, s.w.opt.Spill.Dir, last)
	if why == nil {
		return left
	}
	return fmt.Errorf("%w: %w", left, why)
}

// finish drains while ctx lasts, ends the goroutine and gives up the folder.
// No Write runs any more.
func (s *spiller) finish(ctx context.Context) error {
	err := s.drain(ctx, true)
	s.stop()
	<-s.stopped
	closeErr := s.spool.Close()
	s.account()
	if s.w.Stats().Spill.Lines == 0 {
		err = nil
	}
	return errors.Join(err, closeErr)
}
