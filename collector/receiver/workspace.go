package receiver

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/netip"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
)

// workspace is the pooled memory of one request or connection. The goroutine that took
// it owns it; nothing in it outlives the request.
type workspace struct {
	r       *Receiver
	buf     []byte // the unpacked body; for TCP, bytes read
	batch   normalize.Batch
	norm    *normalize.Normalizer
	answer  []byte
	note    []byte // of a protocol, from Decode to Answer
	packed  []byte // the body as it was sent, of codings that need it whole
	held    int64  // bytes taken from the budget for principal
	base    int64  // of them, those for packed and for unpacking it
	lines   int64  // of them, those for the batch
	scratch int64  // of them, those for the protocol

	principal *admission.Principal // who pays for it
	lent      *admission.Principal // the same if it is to be given back; else nil
	conn      *admission.Conn      // that the request comes over; nil: none

	options StoreOptions // of the batch
	stored  Stored       // what the backend has said of it
	outcome outcome      // of the request
	storing int          // events that Stats.Storing has

	wire wireReader
	peek *bufio.Reader // reads wire; nil until needed
	unpackers

	policy  *Policy // of the request or of what has arrived together
	sender  Sender  // nil: unknown
	turn    admission.Turn
	hashed  bool     // the body is to be the key
	after   string   // key of the request that is to be stored before; empty: none
	refused *Refusal // of room for lines
	request Request  // while Decode runs
	reply   Answer   // while Answer runs
	chunk   Chunk    // while a Session decodes
}

const (
	keepBuffer = pool.MaxKept // larger buffers do not go back to the pool
	peekBuffer = 16 << 10     // between the wire and what unpacks
)

func (r *Receiver) get() *workspace {
	w := r.spaces.Get() // which put has reset
	w.charge(r.nobody)
	return w
}

// charge has p pay for w, which holds nothing.
func (w *workspace) charge(p *admission.Principal) {
	w.principal = p
	w.turn.Use(w.r.opts.Admission.CPU, p)
}

func (r *Receiver) newWorkspace() *workspace {
	w := &workspace{r: r, norm: normalize.New(r.opts.Limits)}
	w.batch.KeepDeadLetters(r.opts.KeepRejected)
	w.norm.Pause(w.turn.Yield)
	return w
}

// put gives w and what it held of the budget back.
func (r *Receiver) put(w *workspace) {
	r.release(w)
	w.reset()
	r.spaces.Put(w)
}

func (r *Receiver) release(w *workspace) {
	w.turn.End()
	r.memory.Release(w.principal, w.held)
	w.held = 0
	if w.lent != nil {
		r.opts.Admission.Release(w.lent)
		w.lent = nil
	}
}

// acquire raises what w holds of the budget to n bytes.
func (r *Receiver) acquire(w *workspace, n int64) bool {
	if n > w.held {
		if !r.memory.Acquire(w.principal, n-w.held) {
			return false
		}
		w.held = n
	}
	return true
}

// freeLines is how many bytes the lines of a request may take up beyond what was taken
// from the budget with its body: most never ask for more.
const freeLines = 4 << 10

// largeBody is the size of a body from which the lines get their memory at once: to
// grow in steps takes a multiple.
const largeBody = 16 << 10

// startLines has the batch take what was taken from the budget with the body, and ask
// for more.
func (w *workspace) startLines() {
	w.lines, w.scratch = max(0, w.held-w.base-int64(cap(w.buf))), 0
	w.batch.Within(w, int(w.lines)+freeLines)
	if n := len(w.buf); n > largeBody {
		w.batch.Expect(n + n/8)
	}
}

// Grow implements normalize.Room. The lines of short events, and of those that share
// much, take many times the bytes of their request.
func (w *workspace) Grow(memory, lines int) bool {
	w.lines = max(w.lines, int64(memory))
	if w.refused = w.reserve(); w.refused == nil && int64(lines) > w.r.opts.InFlight {
		w.refused = tooMuch(w.r.opts.InFlight)
	}
	return w.refused == nil
}

// reserve takes from the budget what the body, the lines and the protocol's scratch
// memory take together.
func (w *workspace) reserve() *Refusal {
	r, total := w.r, w.base+int64(cap(w.buf))+w.lines+w.scratch
	if most := min(r.opts.InFlight, r.memory.Most(w.principal)); total > most {
		return tooMuch(most)
	}
	if !r.acquire(w, total) {
		return &Refusal{Code: http.StatusServiceUnavailable, Text: r.busy().text}
	}
	return nil
}

// tooMuch refuses a request that takes more than there is for it, in memory or in lines.
func tooMuch(most int64) *Refusal {
	return &Refusal{Code: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("with what its events share or get in each line this request takes more than %d bytes; nothing was stored, send smaller requests", most)}
}

// Memory is for the pool.
func (w *workspace) Memory() pool.Memory {
	n, b := w.norm.Memory(), w.batch.Memory()
	m := pool.Memory{w.buf, w.answer, w.note, w.packed, b[0], b[1]}
	if copy(m[6:], n[:]) < len(n) {
		panic("receiver: pool.Memory is too short")
	}
	return m
}

func (w *workspace) reset() {
	w.buf = reuse(w.buf)
	w.answer = reuse(w.answer)
	w.note = reuse(w.note)
	w.packed = reuse(w.packed)
	w.base, w.lines, w.scratch = 0, 0, 0
	w.unpackers.release()
	w.options, w.stored, w.outcome = StoreOptions{}, Stored{}, outcome{}
	w.request, w.reply, w.chunk, w.policy, w.sender, w.conn, w.hashed, w.after, w.refused = Request{}, Answer{}, Chunk{}, nil, nil, nil, false, "", nil
	w.norm.SetExtras(nil)
	w.norm.SetEnricher(nil, netip.Addr{})
	w.batch.Lines = reuse(w.batch.Lines)
	w.batch.Reset()
	w.wire = wireReader{}
	if w.peek != nil {
		w.peek.Reset(nil)
	}
}

// spareBuffers is how much memory of an earlier request one may have from the pool
// without it being counted.
const spareBuffers = 64 << 10

// chargeSpare counts the buffers that w brought from the pool, as it may wait long for a
// sender that needs none of them. If they would take from the budget's second half, w
// drops them.
func (r *Receiver) chargeSpare(w *workspace) {
	spare := int64(cap(w.buf) + cap(w.batch.Lines) + cap(w.packed) + cap(w.answer) + cap(w.note) + w.norm.Kept())
	if spare <= spareBuffers || r.memory.Used()+spare <= r.memory.Limit()/2 && r.acquire(w, spare) {
		return
	}
	w.dropBuffers()
}

// dropBuffers throws away the buffers that come from an earlier request.
func (w *workspace) dropBuffers() {
	w.buf, w.packed, w.answer, w.note = nil, nil, nil, nil
	w.batch.Drop()
	w.norm.Drop()
}

// checkLines looks for memory that was used too long.
func (w *workspace) checkLines() {
	for _, c := range w.batch.Chunks() {
		if !c.Packed {
			pool.CheckText(c.Bytes)
		}
	}
	pool.CheckText(w.batch.Lines)
}

func reuse(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}

// open prepares w to read a body.
func (w *workspace) open(src io.Reader, limit int64) {
	w.wire = wireReader{src: src, max: limit, turn: &w.turn, conn: w.conn}
	if w.peek == nil {
		w.peek = bufio.NewReaderSize(nil, peekBuffer)
	}
	w.peek.Reset(&w.wire)
}

// wireReader counts and bounds what comes from the wire and remembers how that
// ended, so that a broken connection can be told from a broken coding.
type wireReader struct {
	src  io.Reader
	turn *admission.Turn // given back while src may block
	conn *admission.Conn // that src comes over; nil: none
	n    int64
	max  int64
	over bool  // there is more than max
	err  error // of src, but not io.EOF
}

func (w *wireReader) Read(p []byte) (int, error) {
	if w.over || w.err != nil {
		return 0, errBody
	}
	if int64(len(p)) > w.max-w.n {
		p = p[:w.max-w.n+1]
	}
	held := w.turn.Suspend()
	n, err := w.await(p)
	if held {
		w.turn.Begin()
	}
	w.n += int64(n)
	if w.n > w.max {
		w.over = true
		return n - 1, errBody
	}
	if err != nil && err != io.EOF {
		w.err = err
		return n, errBody
	}
	return n, err
}

// await reads from src, which may take long: meanwhile the connection may lose its place.
func (w *wireReader) await(p []byte) (int, error) {
	if w.conn != nil {
		w.conn.Await()
		defer w.conn.Arrived()
	}
	return w.src.Read(p)
}
