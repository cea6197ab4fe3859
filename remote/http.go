package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/spool"
)

// An httpSender sends lines in POST requests over one kept connection. All fields are
// owned by the holder of the sender's semaphore.
type httpSender struct {
	w      *Writer
	form   httpFormat
	client *http.Client
	header http.Header

	timeouts  int // requests in a row without a full answer in time
	dropsLeft int // single lines that may still be dropped before a 2xx has to come

	replaying

	packed bytes.Buffer
	body   []byte

	// the request under way
	lines [][]byte // without line ends
	todo  []int    // their numbers in the batch
	span  []byte   // the part of the batch from the first to the last

	keys      string   // begins the keys of batches that are not of the queue on disk
	keyNum    uint64   // of the latest
	unsettled []*batch // those with lines that went back to the caller, the latest last
	spare     *batch   // nil, or to be used again
}

// replaying makes a request of the queue on disk the same whenever it is sent again. It
// is zero for other requests.
type replaying struct {
	piece *spool.Batch   // whose beginning is sent; it moves on when lines are settled
	after string         // key of a request under way that is to be stored before
	why   repeatedStatus // single lines may be the cause of it
	sent  func()         // called when all of piece is on the way
}

// minLimit is the smallest body size, in bytes, that answers with 413 lead to.
// Below it a single line is the cause, not the batch.
const minLimit = 64 << 10

// askLimit is the size of a body in bytes beyond which the peer is asked first whether it
// accepts it ("Expect: 100-continue"). A peer that refuses a large body and closes at
// once often resets the connection before its answer is read: of 50 such answers to 4 MiB
// on a loopback 31 were lost.
const askLimit = 256 << 10

// maxDrops is how many single lines in a row are dropped because of the peer's answers.
// If a peer refuses more, or has accepted nothing before, it is the wrong one or
// misconfigured: the lines stay with the caller.
const maxDrops = 16

// minTimely is the smallest body size, in bytes, that timeouts lead to.
const minTimely = 64 << 10

// peerLimits are the largest bodies, in bytes, that the peer and the link to it allow.
// All senders of a Writer share them.
type peerLimits struct {
	accepted atomic.Int64 // by the peer; lowered by 413
	timely   atomic.Int64 // what the link carries within RequestTimeout
}

// size is how many bytes a body may have.
func (l *peerLimits) size() int { return int(min(l.accepted.Load(), l.timely.Load())) }

// tooLarge records that the peer refused a body larger than limit.
func (l *peerLimits) tooLarge(limit int) {
	was := l.accepted.Load()
	l.accepted.Store(max(min(was, int64(limit)), min(was, minLimit)))
}

// tooSlow records that a body of size bytes could not be sent in time, inTime that one
// was.
func (l *peerLimits) tooSlow(size int) { l.timely.Store(max(int64(size)/2, minTimely)) }
func (l *peerLimits) inTime(size int)  { l.timely.Store(max(l.timely.Load(), 2*int64(size))) }

// A repeatedStatus is the status with which the peer answers a piece again and again
// while it accepts others, so that single lines may be the cause; 0 for none.
type repeatedStatus int

// caused returns err if it has that status, otherwise nil.
func (s repeatedStatus) caused(err error) *statusError {
	if e, ok := errors.AsType[*statusError](err); ok && e.code == int(s) {
		return e
	}
	return nil
}

func newHTTPSender(w *Writer) *httpSender {
	transport := &http.Transport{
		DialContext:            w.dialer.dial,
		TLSClientConfig:        w.opt.TLSConfig,
		TLSHandshakeTimeout:    w.opt.dial,
		ExpectContinueTimeout:  time.Second, // for a peer that does not know the question
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		WriteBufferSize:        64 << 10,
		DisableCompression:     true, // of answers
		// One request at a time gains nothing from HTTP/2. A request that times
		// out ends its HTTP/1 connection, so that the next one does not wait for
		// a dead peer again.
		Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	if w.opt.ProxyFromEnvironment {
		transport.Proxy = http.ProxyFromEnvironment
	}
	var id [12]byte
	rand.Read(id[:])
	h := &httpSender{
		w:    w,
		form: w.addr.dialect.http(&w.opt),
		client: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		header: w.opt.Header.Clone(),
		keys:   hex.EncodeToString(id[:]) + "-",
	}
	if h.header == nil {
		h.header = http.Header{}
	}
	if w.addr.dialect != plainLines || h.header.Get("Content-Type") == "" {
		h.header.Set("Content-Type", w.addr.dialect.contentType)
	}
	if h.header.Get("User-Agent") == "" {
		h.header.Set("User-Agent", userAgent())
	}
	if w.opt.Token != "" {
		h.header.Set("Authorization", "Bearer "+w.opt.Token)
	}
	if c := w.opt.Compress; c != nil {
		h.header.Set("Content-Encoding", c.Encoding())
	}
	return h
}

var userAgent = sync.OnceValue(func() string {
	const path = "github.com/rollway/rollway"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == path && m.Version != "" && m.Version != "(devel)" {
				return "rollway/" + m.Version
			}
		}
	}
	return "rollway/devel"
})

// request makes one request with the idempotency key, if there is one, and
// hands its answer to judge. last says that nothing of h.piece is sent after it.
func (h *httpSender) request(ctx context.Context, body []byte, last bool, key string, read func(*http.Response) error) error {
	ctx, cancel := withTimeout(ctx, h.w.opt.attempt, "full answer")
	defer cancel()
	size := len(body)
	body, err := h.compress(body)
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}

	conns := 0
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		// The transport takes another connection within one request when the
		// kept one proved dead before any byte of the answer.
		if conns++; conns > 1 {
			h.w.countRetry()
		}
	}})
	content := &requestBody{p: body}
	if last {
		content.sent = h.sent
	}
	defer content.revoke()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.w.addr.url.String(), content.reader())
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return content.reader(), nil }
	req.Header = h.header.Clone()
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if h.after != "" {
		req.Header.Set("Idempotency-After", h.after)
	}
	if len(body) > askLimit {
		req.Header.Set("Expect", "100-continue")
	}

	h.w.countRequest()
	resp, err := h.client.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // its text repeats the URL, with the query
		}
		if size > minTimely && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			// The part of the body that was read may still be on this side of the link.
			if h.timeouts++; content.unread() || h.timeouts > 2 {
				h.w.limits.tooSlow(size)
			}
		}
		if ctx.Err() == nil && notHTTP1(err) {
			err = fmt.Errorf("the peer closed the connection before it answered, or does not speak HTTP/1.1: %w", err)
		}
		return fmt.Errorf("post: %w", withCause(ctx, err))
	}
	defer resp.Body.Close()
	if err := read(resp); err != nil {
		return withCause(ctx, err)
	}
	h.timeouts = 0
	h.w.limits.inTime(size)
	return nil
}

// notHTTP1 reports whether the cause of err may be a peer that speaks HTTP/2 only, or
// another protocol.
func notHTTP1(err error) bool {
	const noApplicationProtocol = tls.AlertError(120)
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, noApplicationProtocol) ||
		strings.Contains(err.Error(), "malformed HTTP") || strings.Contains(err.Error(), "server closed idle connection")
}

// compress returns p compressed. The result is valid until the next call.
func (h *httpSender) compress(p []byte) ([]byte, error) {
	c := h.w.opt.Compress
	if c == nil {
		return p, nil
	}
	if c != (Gzip{}) { // a user's is for one request at a time
		h.w.compressing.Lock()
		defer h.w.compressing.Unlock()
	}
	h.packed.Reset()
	z, err := c.NewWriter(&h.packed)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(p); err != nil {
		z.Close()
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return h.packed.Bytes(), nil
}

func (h *httpSender) replay(r replaying) {
	h.replaying = r
	if r.why != 0 {
		h.dropsLeft = max(h.dropsLeft, 1) // others were accepted
	}
}

// confirm does nothing: each answer was a confirmation.
func (h *httpSender) confirm(context.Context) error { return nil }

func (h *httpSender) close() { h.client.CloseIdleConnections() }

// A requestBody is the body of a request. net/http may go on reading it after it has
// returned the answer, but not after revoke.
type requestBody struct {
	mu   sync.Mutex
	sent func() // called when all of p was read; may be nil

	p    []byte // nil when revoked; guarded by mu
	read int    // how many bytes were; guarded by mu
}

var errRevoked = errors.New("request has ended")

func (b *requestBody) revoke() {
	b.mu.Lock()
	b.p = nil
	b.mu.Unlock()
}

// unread reports whether a part of p was never read.
func (b *requestBody) unread() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read < len(b.p)
}

func (b *requestBody) reader() io.ReadCloser { return &bodyReader{body: b} }

type bodyReader struct {
	body *requestBody
	off  int
}

func (r *bodyReader) Read(dst []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.p == nil {
		return 0, errRevoked
	}
	if r.off == len(r.body.p) {
		return 0, io.EOF
	}
	n := copy(dst, r.body.p[r.off:])
	r.off += n
	if r.body.read = max(r.body.read, r.off); r.body.read == len(r.body.p) && r.body.sent != nil {
		r.body.sent()
	}
	return n, nil
}

func (r *bodyReader) Close() error { return nil }
