package receiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/collector/pool"
)

// ServeHTTP answers one request, as the package comment tells.
func (r *Receiver) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	d := endpoint{Receiver: r, protocol: plain{}, methods: onlyPost}
	d.ServeHTTP(rw, req)
}

// ServeHTTP answers one request.
func (r *endpoint) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	w := r.get()
	done := &w.outcome
	defer func() {
		p := recover()
		if p == nil {
			r.put(w)
			return
		}
		// What a panic has left does not go back to the pool.
		r.release(w)
		if !done.written {
			done.failed = w.batch.Records - done.stored
		}
		if p == http.ErrAbortHandler {
			if !done.written {
				r.count.request(w, done)
			}
			panic(p)
		}
		r.opts.Log.Error("request failed", "panic", p, "stack", string(debug.Stack()))
		done.panicked = true
		done.code = http.StatusInternalServerError
		if !done.written {
			answer := appendError(nil, "the collector failed on this request; its log says why")
			rw.Header()["Content-Type"] = contentType
			writeAnswer(rw, done.code, true, answer)
		}
		if done.written {
			r.count.add(func(s *Stats) { s.Panics++ })
		} else {
			r.count.request(w, done)
		}
	}()
	f := r.handle(rw, w, req, done)
	if f.code == 0 {
		done.code = http.StatusOK
		if done.stored == 0 && w.batch.DroppedTotal == 0 && w.batch.RejectedTotal > 0 {
			f = failure{code: http.StatusBadRequest, text: nothingAccepted(&w.batch)}
		}
	}
	if f.code != 0 {
		done.code, done.aborted = f.code, f.aborted
	}
	header := rw.Header()
	header["Content-Type"] = contentType
	switch f.code {
	case http.StatusMethodNotAllowed:
		header.Set("Allow", strings.Join(r.methods, ", "))
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		header.Set("Retry-After", strconv.Itoa(seconds(cmp.Or(f.wait, time.Second))))
	case 0:
		setStoredHeaders(header, w)
	}
	r.answer(w, req, header, done, f)
	if done.failed == 0 {
		r.keepRejected(w, req.URL.Path, req, netip.Addr{})
	}
	r.count.request(w, done)
	w.seenRequest(rw, f)
	done.written = true
	code := done.code
	if r.grpc {
		code = http.StatusOK
	}
	// In HTTP/2 what is left of a body ends with its stream.
	pool.CheckBytes(w.answer)
	writeAnswer(rw, code, f.close && req.ProtoMajor < 2, w.answer)
}

// outcome says how a request ended.
type outcome struct {
	total    clients.Seen // of a body that was stored as it came
	code     int
	stored   int // events
	failed   int // events
	aborted  bool
	panicked bool
	written  bool
}

// handle reads, normalizes and stores one request.
func (r *endpoint) handle(rw http.ResponseWriter, w *workspace, req *http.Request, done *outcome) failure {
	encoding, f := r.enter(w, req)
	if f.code != 0 {
		return f
	}
	if p, lasts := r.protocol.(BodyProtocol); lasts {
		return r.serveBody(rw, w, req, p, encoding)
	}
	if w.options.Key != "" {
		defer r.pending.begin(w.options.Key)()
	}
	r.chargeSpare(w)
	f = r.read(rw, w, req, encoding)
	if f.code == 0 {
		w.turn.Begin()
		f = r.decode(w, req)
		if w.sender != nil {
			w.sender.Charge(time.Now(), len(w.buf), w.batch.Events())
		}
	}
	if f.code == 0 {
		w.hashKey(req)
	}
	w.turn.End()
	if f.code != 0 {
		return f
	}
	// When the request first came, rules may not have dropped what they drop now.
	if w.batch.Records == 0 && (w.batch.DroppedTotal == 0 || w.options.Key == "") {
		return f
	}
	if w.after != "" {
		r.pending.wait(req.Context(), w.after)
	}
	return r.store(w, done)
}

// enter checks the header of a request, before any of its body is read, and returns
// the coding that it declares.
func (r *endpoint) enter(w *workspace, req *http.Request) (encoding string, f failure) {
	if !slices.Contains(r.methods, req.Method) {
		return "", failure{code: http.StatusMethodNotAllowed, close: req.ContentLength != 0,
			text: fmt.Sprintf("method %.20q is not allowed here; send events with %s", req.Method, strings.Join(r.methods, " or "))}
	}
	w.policy = r.backend.Policy()
	if (len(req.Header["Origin"]) > 0 || len(req.Header["Sec-Fetch-Site"]) > 0) && !w.policy.page(req.Header) && r.origins.Check(req) != nil {
		return "", closing(http.StatusForbidden, "a web page of another origin may not send events here; send them to the page's own server, and from there to the collector")
	}
	field := contentEncoding
	if r.grpc {
		field = grpcEncoding
	}
	if encoding, f = declared(req.Header, field); f.code != 0 {
		return "", f
	}
	if f := readStoreOptions(w, req.Header); f.code != 0 {
		return "", f
	}
	return encoding, r.admit(w, req)
}

// read reads and unpacks the body in time.
func (r *endpoint) read(rw http.ResponseWriter, w *workspace, req *http.Request, encoding string) (f failure) {
	// The deadline bounds slow bodies. A ResponseWriter without deadlines,
	// as in tests, has no slow bodies either.
	deadline := http.NewResponseController(rw)
	deadline.SetReadDeadline(time.Now().Add(r.opts.BodyTimeout))
	if r.grpc {
		f = r.readMessage(w, req, encoding)
	} else {
		usual := ""
		if p, is := r.protocol.(Packer); is {
			usual = p.Packing(req.Header)
		}
		f = r.readBody(w, req, encoding, usual)
	}
	if f.code == 0 {
		deadline.SetReadDeadline(time.Time{})
	}
	return f
}

// store stores the events of a request.
func (r *endpoint) store(w *workspace, done *outcome) failure {
	done.failed = w.batch.Records // until it is stored
	w.checkLines()
	// A client that goes away now does not interrupt the journal.
	err := r.storeBatch(context.Background(), w)
	f, stored := r.judge(err, w)
	if stored {
		done.failed, done.stored = 0, w.batch.Records
	}
	return f
}

// judge turns the error of Backend.Store into the answer to a request, and reports
// whether its events are stored.
func (r *Receiver) judge(err error, w *workspace) (f failure, stored bool) {
	switch {
	case err == nil:
		return failure{}, true
	case errors.Is(err, os.ErrClosed):
		return refuse(http.StatusServiceUnavailable, "the collector is stopping; nothing of this request was stored, send it again"), false
	case errors.Is(err, ErrKeyReused):
		return failure{code: http.StatusUnprocessableEntity, text: "this " + KeyHeader + " was given to another request, of another number of events; nothing of this one was stored"}, false
	case errors.Is(err, ErrFull):
		r.logSome(slog.LevelWarn, "store is full, requests are refused", "error", err)
		return refuse(http.StatusServiceUnavailable, "the journal is full; nothing of this request was stored, send it again after 1 s"), false
	case errors.Is(err, ErrUnavailable):
		r.logSome(slog.LevelError, "nothing can be stored, requests are refused", "error", err)
		return refuse(http.StatusServiceUnavailable, "the collector cannot store lines now; nothing of this request was stored, send it again; /readyz says why"), false
	}
	r.logSome(slog.LevelError, "store events", "events", w.batch.Records, "error", err)
	if !errors.Is(err, ErrNotSynced) {
		return refuse(http.StatusInternalServerError, "the events could not be stored; the collector's log says why"), false
	}
	again := "to send them again stores them twice"
	if w.options.Key != "" {
		again = "to send them again under their " + KeyHeader + " changes nothing"
	}
	return failure{code: http.StatusInternalServerError, text: "the events are stored but could not be made durable, so they may not survive a failure of the machine; " + again}, true
}

// contentType is shared by all answers; nobody changes header values in place.
var contentType = []string{"application/json"}

func writeAnswer(rw http.ResponseWriter, code int, close bool, answer []byte) {
	header := rw.Header()
	if len(answer) > 2000 { // net/http counts shorter ones itself
		header.Set("Content-Length", strconv.Itoa(len(answer)))
	}
	if close {
		header.Set("Connection", "close")
	}
	rw.WriteHeader(code)
	rw.Write(answer) // a client that is gone needs no answer
}
