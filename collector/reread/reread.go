// Package reread reads events again that were rejected.
package reread

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/endpoints"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/elastic"
	"github.com/rollway/rollway/collector/receiver/forward"
	"github.com/rollway/rollway/collector/receiver/gelf"
	"github.com/rollway/rollway/collector/receiver/loki"
	"github.com/rollway/rollway/collector/receiver/otlp"
	"github.com/rollway/rollway/collector/receiver/sentry"
	"github.com/rollway/rollway/collector/receiver/syslog"
)

// Lines reads an event that was rejected, the way the receiver that it came by
// does, with what it shared with others there, but without limits. It returns
// canonical lines, each ended by '\n'; none if the event cannot be read even so, or
// the receiver takes lines as they are.
func Lines(l *deadletter.Entry) []byte {
	text, err := l.Text()
	if err != nil {
		return nil
	}
	around, err := l.ContextBytes()
	if err != nil {
		return nil
	}
	e := &event{text: text, around: around, whole: l.Whole, at: l.Time, batch: new(normalize.Batch)}
	switch l.Receiver {
	case syslog.Protocol{}.Name():
		syslog.Protocol{}.Reread(e.chunk(text), around)
	case gelf.Protocol{}.Name():
		gelf.Protocol{MaxMessage: NoLimits.MaxEventBytes}.DecodePacket(e.chunk(text))
	case forward.Protocol{}.Name():
		e.forward()
	default:
		req, err := http.NewRequestWithContext(context.WithValue(context.Background(), eventKey{}, e), http.MethodPost, l.Receiver, http.NoBody)
		if err != nil {
			return nil
		}
		byPath().ServeHTTP(noAnswer{}, req)
	}
	if e.failed || e.batch.RejectedTotal > 0 {
		return nil
	}
	return e.batch.AppendTo(nil)
}

// event is what Read reads.
type event struct {
	text   []byte
	around []byte // its context; nil: none
	whole  bool   // text is a request
	at     time.Time
	batch  *normalize.Batch
	failed bool
}

type eventKey struct{}

// NoLimits are the limits of what was received within them.
var NoLimits = normalize.Limits{
	MaxEventBytes: 1 << 30, MaxDepth: 10_000, MaxFields: math.MaxInt32, MaxKeyBytes: 1 << 30, MaxValueBytes: 1 << 30,
	MaxEvents: math.MaxInt32, MaxRejections: 1, MaxFuture: -1, MaxPast: -1,
}

func (e *event) chunk(data []byte) *receiver.Chunk {
	return &receiver.Chunk{Data: bytes.Clone(data), Received: e.at, Norm: normalize.New(NoLimits), Batch: e.batch}
}

// byPath decodes by the path of a receiver.
var byPath = sync.OnceValue(func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, d := range endpoints.All {
		if d.Protocol == nil {
			continue
		}
		p := d.Protocol
		mux.HandleFunc(d.Path, func(_ http.ResponseWriter, req *http.Request) {
			e := req.Context().Value(eventKey{}).(*event)
			e.decode(p, req)
		})
	}
	return mux
})

// decode has p read the least request that holds the event.
func (e *event) decode(p receiver.Protocol, req *http.Request) {
	q := &receiver.Request{HTTP: req, Body: e.text, Received: e.at, Norm: normalize.New(NoLimits), Batch: e.batch}
	if p == otlp.GRPC {
		p = otlp.Protocol // which takes records alike, without frames
	}
	again, rereads := p.(receiver.Rereader)
	switch {
	case e.whole:
		if bytes.HasPrefix(bytes.TrimSpace(e.text), []byte("{")) {
			req.Header.Set("Content-Type", "application/json")
		}
		e.failed = p.Decode(q) != nil
		return
	case rereads && (e.around != nil || p == otlp.Protocol):
		q.Body = bytes.Clone(e.text)
		e.failed = again.Reread(q, e.around) != nil
		return
	}
	body := e.text
	switch p {
	case loki.Protocol: // an entry's line, without its labels
		return
	case elastic.Bulk:
		body = append(append([]byte("{\"create\":{}}\n"), oneLine(body)...), '\n')
	case sentry.Envelope:
		body = oneLine(body)
		if bytes.Contains(body, []byte(`"body":`)) { // what logs have and events do not
			body = append(append([]byte("{}\n{\"type\":\"log\"}\n{\"items\":["), body...), "]}"...)
		} else {
			body = append([]byte("{}\n{\"type\":\"event\"}\n"), body...)
		}
	}
	q.Body = body
	e.failed = p.Decode(q) != nil
}

// forward reads a time and a record, with the tag that they came with, or else
// without one, or a message that could not be read.
func (e *event) forward() {
	if isMessage := len(e.text) > 0 && e.text[0] > 0x90 && e.text[0] < 0xA0; isMessage { // an array, which no time is
		n, err := forward.Protocol{MaxUnpacked: NoLimits.MaxEventBytes}.Open().Decode(e.chunk(e.text))
		e.failed = err != nil || n < len(e.text)
		return
	}
	e.failed = forward.Reread(e.chunk(e.text), e.around) != nil
}

// oneLine is JSON without the line ends between its tokens; within strings there
// are none.
func oneLine(b []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\n"), nil), []byte("\r"), nil)
}

// noAnswer is where the answer goes when no receiver has the path.
type noAnswer struct{}

func (noAnswer) Header() http.Header         { return http.Header{} }
func (noAnswer) Write(b []byte) (int, error) { return len(b), nil }
func (noAnswer) WriteHeader(int)             {}
