// Package reread reads events again that were rejected.
package reread

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strings"
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
	"github.com/rollway/rollway/collector/ulid"
)

// Lines reads an event that was rejected, the way the receiver that it came by
// does, with what it shared with others there, but within other limits. It returns
// canonical lines, each ended by '\n'; none if the event cannot be read even so, or
// the receiver takes lines as they are.
func Lines(l *deadletter.Entry, limits normalize.Limits) []byte {
	text, err := l.Text()
	if err != nil {
		return nil
	}
	around, err := l.ContextBytes()
	if err != nil {
		return nil
	}
	e := &event{text: text, around: around, whole: l.Whole, at: l.Time, limits: limits, batch: new(normalize.Batch)}
	switch l.Receiver {
	case syslog.Protocol{}.Name():
		syslog.Protocol{}.Reread(e.chunk(text), around)
	case gelf.Protocol{}.Name():
		gelf.Protocol{MaxMessage: limits.MaxEventBytes}.DecodePacket(e.chunk(text))
	case forward.Protocol{}.Name():
		e.forward()
	default:
		req, err := http.NewRequest(http.MethodPost, l.Receiver, http.NoBody)
		if err != nil {
			return nil
		}
		if p, req := endpoints.Find(req); p != nil {
			e.decode(p, req)
		}
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
	limits normalize.Limits
	batch  *normalize.Batch
	failed bool
}

// NoLimits are the limits of what was received within them.
var NoLimits = normalize.Limits{
	MaxEventBytes: 1 << 30, MaxDepth: 10_000, MaxFields: math.MaxInt32, MaxKeyBytes: 1 << 30, MaxValueBytes: 1 << 30,
	MaxEvents: math.MaxInt32, MaxRejections: 1, MaxFuture: -1, MaxPast: -1,
}

func (e *event) chunk(data []byte) *receiver.Chunk {
	return &receiver.Chunk{Data: bytes.Clone(data), Received: e.at, Norm: normalize.New(e.limits), Batch: e.batch}
}

// decode has p read the least request that holds the event.
func (e *event) decode(p receiver.Protocol, req *http.Request) {
	q := &receiver.Request{HTTP: req, Body: e.text, Received: e.at, Norm: normalize.New(e.limits), Batch: e.batch}
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
		n, err := forward.Protocol{MaxUnpacked: e.limits.MaxEventBytes}.Open().Decode(e.chunk(e.text))
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

// Line returns the line to send for a dead letter: what its receiver reads in it or, where it cannot
// be read, an event with it as text.
func Line(l *deadletter.Entry, limits normalize.Limits) (line []byte, isText bool, err error) {
	text, err := l.Text()
	if err != nil {
		return nil, false, err
	}
	if !l.Cut {
		if lines := Lines(l, limits); len(lines) > 0 {
			return bytes.TrimSuffix(lines, []byte("\n")), false, nil
		}
	}
	trimmed := bytes.TrimSpace(text)
	if !l.Cut && len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		var compact bytes.Buffer
		if json.Compact(&compact, trimmed) == nil {
			return compact.Bytes(), false, nil
		}
	}
	line, err = json.Marshal(map[string]any{"msg": string(text), "attrs": map[string]string{"rejected": l.Reason}})
	return line, true, err
}

// Key returns the idempotency key under which a dead letter is sent; "": it has no usable id.
func Key(l *deadletter.Entry) string {
	if len(l.ID) != ulid.Len || strings.ContainsFunc(l.ID, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	return "dead-letter/" + l.ID
}
