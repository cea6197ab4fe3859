package receiver

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

// A Protocol is what one kind of client speaks over HTTP: how the events of a
// request are read, and how its outcome is told. The Receiver does the rest. One value
// serves all requests at once and keeps nothing of any.
type Protocol interface {
	// Decode puts the events of q.Body into q.Batch. An error rejects the
	// request with 400, or with the code of a *Refusal; then nothing of the
	// batch is stored, and what Decode has not counted as rejected itself
	// counts as one event. What goes wrong with single events is for the
	// batch.
	Decode(q *Request) error
	// Answer turns the outcome into the protocol's own words: it may change
	// Code and Header, and appends to Body.
	Answer(a *Answer)
}

// A Rereader is a Protocol whose events share something with others of their
// request, which is kept with an event that is rejected (normalize.Batch.Context).
type Rereader interface {
	// Reread is Decode for q.Body being such an event, as it was given to
	// Builder.Raw, and its context, either as they were kept.
	Reread(q *Request, context []byte) error
}

// Request is one request that has arrived whole. All of it is the Receiver's
// again once Decode has returned.
type Request struct {
	HTTP     *http.Request // whose body was read
	Body     []byte        // unpacked
	Received time.Time
	Norm     *normalize.Normalizer
	Batch    *normalize.Batch
	Note     []byte // empty; Answer gets what Decode leaves here

	receiver *Receiver // nil: memory is not counted
	space    *workspace
}

// Reserve takes memory from the budget for n bytes of scratch, which count from the
// beginning of the request. Lines are not for the protocol to count. Decode returns the
// error.
func (q *Request) Reserve(n int64) error {
	r := q.receiver
	if r == nil {
		return nil
	}
	q.space.scratch = max(q.space.scratch, n)
	if refused := q.space.reserve(); refused != nil {
		return refused // not a nil *Refusal
	}
	return nil
}

// Discard returns err, why Decode could not read the request to its end. Nothing that was
// read counts then, unless err is a *Refusal.
func (q *Request) Discard(err error) error {
	if err != nil && !errors.As(err, new(*Refusal)) {
		q.Batch.Reset()
	}
	return err
}

// SetKey names the request to the store by something in it that no other request
// of its sender has, such as an id of the protocol: with the same name again it
// is answered as the first and stored once. A name that the sender has chosen
// goes before it. At most 255 bytes. A Request that no Receiver made has no key.
func (q *Request) SetKey(name string) {
	if w := q.space; w != nil && w.options.Key == "" {
		w.options.Key = w.scoped(ownKey + name)
	}
}

// Answer is what a request came to, and the answer that is made of it. It is
// the Receiver's again once Protocol.Answer has returned.
type Answer struct {
	HTTP    *http.Request    // its body may not have been read
	Code    int              // of HTTP
	Text    string           // for a human, what went wrong; "" if Code is 200
	Stored  int              // events
	First   uint64           // offset of the first of them
	Dropped int              // events that rules have left out; of a request that has come again, when it came first
	Batch   *normalize.Batch // its rejections
	Note    []byte           // by Decode
	Header  http.Header      // Content-Type is application/json unless changed
	Body    []byte           // to be appended to
}

// ToFluentBit reports whether Fluent Bit will read the answer. It sends all events again
// after one that is longer than its buffer: 4 KiB with the header, or 512 KiB at its
// outputs to Elasticsearch and OpenSearch.
func (a *Answer) ToFluentBit() bool {
	agent := a.HTTP.Header["User-Agent"]
	return len(agent) > 0 && (strings.HasPrefix(agent[0], "Fluent-Bit") || strings.HasPrefix(agent[0], "aws-fluent-bit"))
}

// Refusal is an error of Decode with a status of its own.
type Refusal struct {
	Code  int // 4xx, or 503
	Text  string
	Empty bool // there was no event in the request, so none is counted
}

func (e *Refusal) Error() string { return e.Text }

// Handler returns a handler for requests with one of the methods, POST if none
// is named, in protocol p.
func (r *Receiver) Handler(p Protocol, methods ...string) http.Handler {
	if len(methods) == 0 {
		methods = onlyPost
	}
	return &endpoint{Receiver: r, protocol: p, methods: methods}
}

var onlyPost = []string{http.MethodPost}

// endpoint is the Handler of one protocol.
type endpoint struct {
	*Receiver
	protocol Protocol
	methods  []string
	grpc     bool // see GRPC
}

// decode has the protocol read the events of a body that has arrived.
func (r *endpoint) decode(w *workspace, req *http.Request) failure {
	w.request = Request{HTTP: req, Body: w.buf, Received: time.Now(), Norm: w.norm, Batch: &w.batch, Note: w.note[:0], receiver: r.Receiver, space: w}
	w.enrichFrom(req)
	w.startLines()
	err := r.protocol.Decode(&w.request)
	if w.batch.Overflowed() {
		err = w.refused
		w.batch.Reset() // the body may be kept
	}
	w.note = w.request.Note
	w.request = Request{}
	if err == nil {
		return failure{}
	}
	f := failure{code: http.StatusBadRequest, text: err.Error()}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		f.code = refusal.Code
	}
	if f.code == http.StatusServiceUnavailable { // all of it is sent again
		w.batch.Reset()
		return f
	}
	empty := refusal != nil && refusal.Empty
	if w.batch.RejectedTotal == 0 && !empty {
		w.batch.AddBody(normalize.ReasonSyntax, f.text, w.buf)
	}
	w.batch.Discard(empty)
	return f
}

// answer has the protocol make the answer.
func (r *endpoint) answer(w *workspace, req *http.Request, h http.Header, done *outcome, f failure) {
	stored, dropped := done.stored, w.batch.DroppedTotal
	if s := &w.stored; s.Duplicate && done.code == http.StatusOK {
		stored, dropped = s.Records, stored+dropped-s.Records
	}
	w.reply = Answer{HTTP: req, Code: done.code, Text: f.text, Stored: stored, First: w.stored.First, Dropped: dropped, Batch: &w.batch, Note: w.note, Header: h, Body: w.answer[:0]}
	r.protocol.Answer(&w.reply)
	w.answer, done.code = w.reply.Body, w.reply.Code
	w.reply = Answer{}
}
