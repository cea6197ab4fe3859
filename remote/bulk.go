package remote

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/rollway/rollway/internal/spool"
	"github.com/rollway/rollway/line"
)

// A bulkSender sends lines to an engine whose answers speak of single lines. The
// outcome of a line is kept until all lines before it are settled too, also while the
// caller has them back. So only lines that the engine did not accept are sent again.
// All fields are owned by the holder of the sender's semaphore.
type bulkSender struct {
	h    *httpSender
	form bulkFormat
	body []byte
	sent [][]byte // the lines of one request
	todo []int    // their numbers in the batch

	batch   batch   // the latest, if a part of it went back to the caller
	earlier []batch // others of which a part went back, the latest last
}

// A bulkFormat is the protocol of an engine.
type bulkFormat interface {
	// group returns the same number for lines that may share a request after the
	// engine has refused a part of one.
	group(line []byte) int
	// appendBody appends the body for lines; at is the time of those without,
	// and ids[i] of lines[i] is the same whenever the line is sent again.
	appendBody(dst []byte, lines [][]byte, at time.Time, id func(i int) string) []byte
	// judge reads the answer. mixed says that the lines were of several groups.
	readAnswer(resp *http.Response, lines int, mixed bool) (verdict, error)
	// contentType of the body.
	contentType() string
}

// A verdict is what an engine says of the lines of a request.
type verdict struct {
	lines   []lineState  // of each line; nil: all are written, except refused of them
	refused uint64       // somewhere among them
	reason  string       // of the first refused
	again   error        // why those left undecided were not taken
	whole   *statusError // the request was refused as a whole
	certain bool         // ... for what one of its lines holds
	split   bool         // a part was refused, and only groups by themselves show which
}

// A batch is whole lines given to send.
type batch struct {
	failedLines
	lines []lineState
	key   string // with the number of a line: its id
	first int    // number of the first line
	at    time.Time
}

type lineState byte

const (
	lineTodo lineState = iota
	lineWritten
	lineRefused
	lineTooLarge
)

// maxGrowth is by how much wrapping makes a line longer, roughly.
const maxGrowth = 2

func newBulkSender(w *Writer, form bulkFormat) *bulkSender {
	b := &bulkSender{h: newHTTPSender(w), form: form}
	b.h.header.Set("Content-Type", form.contentType())
	return b
}

// nextBatch returns the beginning of p that send handles, and what is known of it.
func (b *bulkSender) nextBatch(p []byte) ([]byte, *batch) {
	k := &b.batch
	known := func(k batch) bool {
		q := b.h.piece
		return k.begins(p) && (q == nil || k.key == queueKey(q) && k.first == int(q.Line))
	}
	if known(*k) {
		return p[:k.size], k
	}
	if i := slices.IndexFunc(b.earlier, known); i >= 0 {
		*k, b.earlier[i] = b.earlier[i], *k
		return p[:k.size], k
	}
	if k.size > 0 {
		b.earlier = append(b.earlier[max(0, len(b.earlier)+1-maxFailures):], *k)
		k.lines = nil
	}
	piece := firstPiece(p, max(b.h.w.limits.size()/maxGrowth, 1))
	b.h.keyNum++
	*k = batch{
		lines: append(k.lines[:0], make([]lineState, line.Count(piece))...),
		key:   fmt.Sprintf("%s%d", b.h.keys, b.h.keyNum),
		at:    time.Now(),
	}
	if q := b.h.piece; q != nil {
		k.key, k.first = queueKey(q), int(q.Line)
	}
	for i, rest := 0, piece; len(rest) > 0; i++ {
		end := bytes.IndexByte(rest, '\n') + 1
		if len(bytes.TrimSpace(rest[:end])) == 0 {
			k.lines[i] = lineRefused
			b.h.w.noteRefused(1, "a blank line is no event")
		}
		rest = rest[end:]
	}
	return piece, k
}

// queueKey begins the ids of the lines of q, which go on with their numbers.
func queueKey(q *spool.Batch) string { return strconv.FormatUint(q.Segment, 16) }

func (b *bulkSender) send(ctx context.Context, p []byte) (outcome, error) {
	piece, k := b.nextBatch(p)
	limit := len(k.lines) // lines of a request
	if size := b.h.w.limits.size() / maxGrowth; len(piece) > size {
		limit = max(1, limit*size/len(piece))
	}
	alone := false // each group alone
	for {
		mixed := b.choose(piece, k, limit, alone)
		if len(b.todo) == 0 {
			return b.settle(piece, k), nil
		}
		v, err := b.post(ctx, k, mixed)
		switch {
		case err != nil:
			return b.settle(piece, k), err
		case v.split:
			b.h.w.countRetry()
			alone = true
		case v.whole == nil:
			b.apply(k, v)
			if v.again != nil && !b.dropFirst(k, v) {
				return b.settle(piece, k), v.again
			}
		case len(b.todo) > 1:
			b.h.w.noteRefusal(v.whole)
			b.h.w.countRetry()
			limit = len(b.todo) / 2
			if v.whole.code == http.StatusRequestEntityTooLarge {
				b.h.w.limits.tooLarge(len(piece) / 2 * maxGrowth)
			}
		case v.whole.code == http.StatusRequestEntityTooLarge:
			k.lines[b.todo[0]] = lineTooLarge
			b.h.refuse(b.sent[0], fmt.Sprintf("one line of %d bytes: %v", len(b.sent[0]), v.whole))
		case v.certain || b.h.mayDropLine():
			k.lines[b.todo[0]] = lineRefused
			b.h.refuse(b.sent[0], v.whole.Error())
		default:
			return b.settle(piece, k), v.whole
		}
	}
}

// choose fills b.sent and b.todo with the next lines of piece to be sent, at
// most limit, and reports whether they are of several groups.
func (b *bulkSender) choose(piece []byte, k *batch, limit int, alone bool) (mixed bool) {
	b.sent, b.todo = b.sent[:0], b.todo[:0]
	group := 0
	for i := 0; len(piece) > 0 && len(b.todo) < limit; i++ {
		end := bytes.IndexByte(piece, '\n')
		line := piece[:end]
		piece = piece[end+1:]
		if k.lines[i] != lineTodo {
			continue
		}
		g := b.form.group(line)
		if len(b.todo) == 0 {
			group = g
		} else if g != group {
			if alone {
				continue
			}
			mixed = true
		}
		b.sent, b.todo = append(b.sent, line), append(b.todo, i)
	}
	return mixed
}

func (b *bulkSender) post(ctx context.Context, k *batch, mixed bool) (v verdict, err error) {
	id := func(i int) string { return fmt.Sprintf("%s-%d", k.key, k.first+b.todo[i]) }
	b.body = b.form.appendBody(b.body[:0], b.sent, k.at, id)
	b.h.keyNum++ // the engines know no idempotency keys; with one, net/http replaces a dead connection
	todo := 0
	for _, state := range k.lines {
		if state == lineTodo {
			todo++
		}
	}
	err = b.h.request(ctx, b.body, todo == len(b.todo), fmt.Sprintf("%s%d", b.h.keys, b.h.keyNum), func(resp *http.Response) (err error) {
		v, err = b.form.readAnswer(resp, len(b.sent), mixed)
		drain(resp.Body)
		return err
	})
	if e := b.h.why.caused(err); e != nil {
		v, err = verdict{whole: e}, nil
	}
	return v, err
}

// apply notes what v says of the lines of the latest request.
func (b *bulkSender) apply(k *batch, v verdict) {
	refused, written := v.refused, false
	var known []byte // refused lines
	for i, line := range b.todo {
		switch {
		case v.lines != nil:
			k.lines[line] = v.lines[i]
			if v.lines[i] == lineRefused {
				refused++
				known = append(append(known, b.sent[i]...), '\n')
			}
		case uint64(i) < v.refused:
			k.lines[line] = lineRefused // which ones is not said
		default:
			k.lines[line] = lineWritten
		}
		written = written || k.lines[line] == lineWritten
	}
	if refused > 0 {
		b.h.w.noteRefused(refused, v.reason)
	}
	if len(known) > 0 {
		b.h.addDeadLetters(known, line.Count(known))
	}
	if written {
		b.h.dropsLeft = maxDrops
	}
}

// dropFirst drops the first line that the engine did not take, if the reason is
// a repeatedStatus.
func (b *bulkSender) dropFirst(k *batch, v verdict) bool {
	first := slices.Index(v.lines, lineTodo)
	if first < 0 || b.h.why.caused(v.again) == nil || !b.h.mayDropLine() {
		return false
	}
	k.lines[b.todo[first]] = lineRefused
	b.h.refuse(b.sent[first], v.again.Error())
	return true
}

// settle counts the lines of piece up to the first that is not settled, and keeps what
// is known of the others.
func (b *bulkSender) settle(piece []byte, k *batch) (s outcome) {
	i := 0
	for ; i < len(k.lines) && k.lines[i] != lineTodo; i++ {
		s.n += bytes.IndexByte(piece[s.n:], '\n') + 1
		switch k.lines[i] {
		case lineWritten:
			s.written++
		case lineRefused:
			s.refused++
		case lineTooLarge:
			s.oversized++
		}
	}
	k.lines = k.lines[:copy(k.lines, k.lines[i:])]
	k.first += i
	rest := piece[s.n:]
	k.failedLines = failedLines{}
	if len(rest) > 0 {
		k.failedLines = rememberFailed(rest)
	}
	return s
}

func (b *bulkSender) replay(q *spool.Batch, after string, why repeatedStatus, sent func()) {
	b.h.replay(q, after, why, sent)
}

// confirm does nothing: each answer was a confirmation.
func (b *bulkSender) confirm(context.Context) error { return nil }

func (b *bulkSender) close() { b.h.close() }
