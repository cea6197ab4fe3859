package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/rollway/rollway/line"
)

// An httpFormat is what a peer of HTTP wants to be sent, and answers.
type httpFormat interface {
	// group returns the same number for lines that may share a request after the
	// peer has refused a part of one.
	group(line []byte) int
	// appendBody returns the body for lines; it may use the memory of dst. span is the
	// text from the first to the last of them, at the time of those without, and id(i)
	// is the same whenever lines[i] is sent again.
	appendBody(dst, span []byte, lines [][]byte, at time.Time, id func(i int) string) []byte
	// readAnswer reads the answer. mixed says that the lines were of several groups.
	// Its error leaves all lines with the caller.
	readAnswer(resp *http.Response, lines int, mixed bool) (verdict, error)
}

// A verdict is what a peer says of the lines of a request.
type verdict struct {
	lines   []lineState  // of each line; nil: all are written, except refused of them
	refused uint64       // somewhere among them
	reason  string       // of the first refused
	again   error        // why those left undecided were not taken
	whole   *statusError // the request was refused as a whole
	certain bool         // ... for what one of its lines holds
	split   bool         // a part was refused, and only each group alone shows which
}

type lineState = byte

const (
	lineTodo lineState = iota
	lineWritten
	lineRefused
	lineTooLarge
)

// A batch is whole lines given to send. What is known of each line is kept until all
// lines before it are settled, also while the caller has them back. So only lines that
// the peer did not accept are sent again, and under the same key.
type batch struct {
	failedLines
	lines []lineState
	key   string // with the number of a line: its id
	first int    // number of the first line
	at    time.Time
	alone bool // each group is sent alone

	// Of the latest request, if the peer may have stored its lines: they have the same
	// key only if they are sent again in the same request.
	tried int // its lines, or 0
	bytes int // of those, or as many as were allowed then
}

func (k *batch) count(state lineState) int { return bytes.Count(k.lines, []byte{state}) }

const (
	maxUnsettled = 16 // batches that are remembered
	// maxReturned is the time after which the same bytes count as new lines. It is
	// longer than a peer can ask a caller to wait.
	maxReturned = 2 * maxRetryAfter
	headBytes   = 128
)

// failedLines are lines that went back to the caller of Write after a request, which the
// peer may have stored, has failed. They are recognized when a Write begins with them.
type failedLines struct {
	size  int // bytes
	sum   [sha256.Size]byte
	head  []byte // their beginning, compared first to save a hash
	since time.Time
}

func rememberFailed(p []byte) failedLines {
	return failedLines{len(p), sha256.Sum256(p), bytes.Clone(p[:min(len(p), headBytes)]), time.Now()}
}

// begins reports whether p begins with the lines of r.
func (r *failedLines) begins(p []byte) bool {
	return r.size <= len(p) && bytes.HasPrefix(p, r.head) && time.Since(r.since) < maxReturned && sha256.Sum256(p[:r.size]) == r.sum
}

// nextBatch returns the beginning of p that send handles, and what is known of it. Lines
// of a failed request go alone, also when the caller has appended others.
func (h *httpSender) nextBatch(p []byte) ([]byte, *batch) {
	q := h.piece
	var k *batch
	for _, u := range h.unsettled {
		if (k == nil || u.size > k.size) && u.begins(p) && (q == nil || u.key == queueKey(q.Segment) && u.first == int(q.Line)) {
			k = u
		}
	}
	if k != nil {
		return p[:k.size], k
	}
	if k, h.spare = h.spare, nil; k == nil {
		k = new(batch)
	}
	piece := firstPiece(p, h.maxLines())
	*k = batch{lines: append(k.lines[:0], make([]lineState, line.Count(piece))...), at: time.Now()}
	if q != nil {
		k.key, k.first = queueKey(q.Segment), int(q.Line)
	} else {
		k.key = h.newKey()
	}
	return piece, k
}

// queueKey begins the ids of lines of the queue on disk, which go on with their numbers.
func queueKey(segment uint64) string { return strconv.FormatUint(segment, 16) }

func (h *httpSender) newKey() string {
	h.keyNum++
	return h.keys + strconv.FormatUint(h.keyNum, 10)
}

// maxLines is how many bytes of lines a request may have.
func (h *httpSender) maxLines() int { return max(h.w.limits.size()/h.w.addr.dialect.growth, 1) }

// send sends the beginning of p in one request, or in ever smaller ones while the peer
// refuses the whole body.
func (h *httpSender) send(ctx context.Context, p []byte) (outcome, error) {
	piece, k := h.nextBatch(p)
	limit := len(k.lines) // lines of a request
	switch size := h.maxLines(); {
	case k.tried > 0 && k.bytes <= size:
		limit = k.tried
	case len(piece) > size:
		limit = max(1, limit*size/len(piece))
	}
	for {
		k.tried = 0
		mixed := h.choose(piece, k, limit)
		if len(h.todo) == 0 {
			return h.settle(piece, k), nil
		}
		size := h.maxLines()
		v, err := h.post(ctx, piece, k, mixed)
		switch {
		case err != nil:
			k.tried, k.bytes = len(h.todo), min(size, len(h.span))
		case v.split:
			h.w.countRetry()
			k.alone = true
			continue
		case v.whole == nil:
			h.apply(k, v)
			if v.again != nil && !h.dropFirst(k, v) {
				err = v.again
			}
		case len(h.todo) > 1:
			h.w.noteRefusal(v.whole)
			h.w.countRetry()
			limit = len(h.todo) / 2
			if v.whole.code == http.StatusRequestEntityTooLarge {
				h.w.limits.tooLarge(len(h.span) / 2 * h.w.addr.dialect.growth)
			}
			continue
		case v.whole.code == http.StatusRequestEntityTooLarge:
			h.drop(k, 0, lineTooLarge, fmt.Sprintf("one line of %d bytes: %v", len(h.span), v.whole))
		case v.certain || h.mayDropLine():
			h.drop(k, 0, lineRefused, v.whole.Error())
		default:
			err = v.whole
		}
		return h.settle(piece, k), err
	}
}

// choose takes the next lines of piece for a request, at most limit, and reports whether
// they are of several groups. It drops blank lines, which are no events.
func (h *httpSender) choose(piece []byte, k *batch, limit int) (mixed bool) {
	h.lines, h.todo, h.span = h.lines[:0], h.todo[:0], nil
	if h.w.addr.dialect == plainLines && limit >= len(k.lines) && k.count(lineTodo) == len(k.lines) && len(bytes.TrimSpace(piece)) > 0 {
		for i := range k.lines { // the piece is the body
			h.todo = append(h.todo, i)
		}
		h.lines, h.span = append(h.lines, piece[:len(piece)-1]), piece
		return false
	}
	group, begin := 0, 0
	for i, at := 0, 0; at < len(piece) && len(h.todo) < limit; i++ {
		end := at + bytes.IndexByte(piece[at:], '\n')
		line := piece[at:end]
		from := at
		at = end + 1
		if k.lines[i] != lineTodo {
			continue
		}
		if len(bytes.TrimSpace(line)) == 0 {
			k.lines[i] = lineRefused
			h.w.noteRefused(1, "a blank line is no event")
			continue
		}
		g := h.form.group(line)
		if len(h.todo) == 0 {
			group, begin = g, from
		} else if g != group {
			if k.alone {
				continue
			}
			mixed = true
		}
		h.lines, h.todo, h.span = append(h.lines, line), append(h.todo, i), piece[begin:at]
	}
	return mixed
}

// post sends the chosen lines in one request.
func (h *httpSender) post(ctx context.Context, piece []byte, k *batch, mixed bool) (v verdict, err error) {
	id := func(i int) string { return k.key + "-" + strconv.Itoa(k.first+h.todo[i]) }
	h.body = h.form.appendBody(h.body[:0], h.span, h.lines, k.at, id)
	// Engines know no idempotency keys. With one, net/http replaces a dead connection.
	key := ""
	if h.w.addr.dialect == plainLines {
		key = id(0) + "-" + strconv.Itoa(h.todo[len(h.todo)-1]-h.todo[0]+1)
	} else {
		key = h.newKey()
	}
	last := h.piece != nil && len(piece) == len(h.piece.Data) && k.count(lineTodo) == len(h.todo)
	err = h.request(ctx, h.body, last, key, func(resp *http.Response) (err error) {
		v, err = h.form.readAnswer(resp, len(h.todo), mixed)
		return err
	})
	if e := h.why.caused(err); e != nil {
		v, err = verdict{whole: e}, nil
	}
	return v, err
}

// apply notes what v says of the lines of the request.
func (h *httpSender) apply(k *batch, v verdict) {
	refused, written := v.refused, false
	var known []byte // refused lines
	for i, n := range h.todo {
		switch {
		case v.lines != nil:
			k.lines[n] = v.lines[i]
			if v.lines[i] == lineRefused {
				refused++
				known = append(append(known, h.lines[i]...), '\n')
			}
		case uint64(i) < v.refused:
			k.lines[n] = lineRefused // which ones is not said
		default:
			k.lines[n] = lineWritten
		}
		written = written || k.lines[n] == lineWritten
	}
	if refused > 0 {
		h.w.noteRefused(refused, v.reason)
	}
	if len(known) > 0 {
		h.addDeadLetters(known, line.Count(known))
	}
	if written {
		h.dropsLeft = maxDrops
	}
}

// dropFirst drops the first line that the peer did not take, if the reason is a
// repeatedStatus.
func (h *httpSender) dropFirst(k *batch, v verdict) bool {
	first := slices.Index(v.lines, lineTodo)
	if first < 0 || h.why.caused(v.again) == nil || !h.mayDropLine() {
		return false
	}
	h.drop(k, first, lineRefused, v.again.Error())
	return true
}

// mayDropLine reports whether a single line may be dropped for the peer's answer.
func (h *httpSender) mayDropLine() bool {
	if h.dropsLeft == 0 {
		return false
	}
	h.dropsLeft--
	return true
}

// drop drops line i of the request for reason. A line of the queue on disk becomes a dead
// letter.
func (h *httpSender) drop(k *batch, i int, state lineState, reason string) {
	k.lines[h.todo[i]] = state
	h.w.noteRefused(1, reason)
	h.addDeadLetters(h.lines[i], 1)
}

// addDeadLetters keeps refused lines of the queue on disk.
func (h *httpSender) addDeadLetters(lines []byte, n uint64) {
	if h.piece != nil {
		h.w.spill.addDeadLetters(lines, n)
	}
}

// settle counts the lines of piece up to the first that is not settled, and keeps what
// is known of the others.
func (h *httpSender) settle(piece []byte, k *batch) (s outcome) {
	left := k.lines
	if i := bytes.IndexByte(left, lineTodo); i < 0 {
		s.n = len(piece)
	} else {
		for range i {
			s.n += bytes.IndexByte(piece[s.n:], '\n') + 1
		}
		k.lines = left[:i]
	}
	s.written, s.refused, s.oversized = uint64(k.count(lineWritten)), uint64(k.count(lineRefused)), uint64(k.count(lineTooLarge))
	k.first += len(k.lines)
	k.lines = left[:copy(left, left[len(k.lines):])]
	h.unsettled = slices.DeleteFunc(h.unsettled, func(u *batch) bool { return u == k })
	if s.n == len(piece) {
		h.spare = k
		return s
	}
	k.failedLines = rememberFailed(piece[s.n:])
	h.unsettled = append(h.unsettled[max(0, len(h.unsettled)+1-maxUnsettled):], k)
	return s
}
