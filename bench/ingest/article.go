package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// logEvent is decoded as the article decodes: metadata becomes a map.
type logEvent struct {
	Service   string         `json:"service"`
	Level     string         `json:"level"`
	Message   string         `json:"message"`
	Timestamp string         `json:"timestamp"`
	TraceID   string         `json:"trace_id"`
	Metadata  map[string]any `json:"metadata"`
}

func (e logEvent) normalized() logEvent {
	if e.Level == "" {
		e.Level = "info"
	}
	if e.Metadata == nil {
		e.Metadata = map[string]any{}
	}
	return e
}

// An article is one of its two pipelines. Where the article has sendToQueue,
// which it leaves out, the payload goes to queue, which must not keep it.
type article struct {
	pooled bool
	queue  func(payload []byte)
}

// ServeHTTP answers 202 once the events are decoded, normalized and encoded.
func (a *article) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	if err := a.process(data); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// process is what the article's benchmark calls for a body that is in memory.
func (a *article) process(data []byte) error {
	var events []logEvent
	if err := json.Unmarshal(data, &events); err != nil {
		return fmt.Errorf("decode the events: %w", err)
	}
	encode := a.encode
	if a.pooled {
		encode = a.encodePooled
	}
	if err := encode(events); err != nil {
		return fmt.Errorf("encode the events: %w", err)
	}
	return nil
}

func normalizeAll(events []logEvent) []logEvent {
	all := make([]logEvent, 0, len(events))
	for _, e := range events {
		all = append(all, e.normalized())
	}
	return all
}

// encode makes a builder for each event, and a buffer.
func (a *article) encode(events []logEvent) error {
	all := normalizeAll(events)
	for _, e := range all {
		newBuilder().fill(e)
	}
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(all); err != nil {
		return err
	}
	a.queue(buf.Bytes())
	return nil
}

// encodePooled takes the buffer, and for each event a builder, from a pool, and
// copies the payload before the buffer goes back.
func (a *article) encodePooled(events []logEvent) error {
	all := normalizeAll(events)
	for _, e := range all {
		b := builders.Get().(*builder)
		b.reset()
		b.fill(e)
		b.reset()
		builders.Put(b)
	}
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer func() {
		buf.Reset()
		buffers.Put(buf)
	}()
	if err := json.NewEncoder(buf).Encode(all); err != nil {
		return err
	}
	a.queue(append([]byte(nil), buf.Bytes()...))
	return nil
}

var (
	buffers  = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	builders = sync.Pool{New: func() any { return newBuilder() }}
)

// builder is the article's EventBuilder. What it does with one that is built is
// not in its text.
type builder struct {
	service, level, message, traceID string
	fields                           map[string]string
}

func (b *builder) reset() {
	clear(b.fields)
	*b = builder{fields: b.fields}
}

// newBuilder is not inlined: the article hands its builder from one stage to the
// next, so that it is on the heap. Inlined here it would be on the stack.
//
//go:noinline
func newBuilder() *builder { return &builder{fields: make(map[string]string, 16)} }

func (b *builder) fill(e logEvent) {
	b.service, b.level, b.message, b.traceID = e.Service, e.Level, e.Message, e.TraceID
	for k, v := range e.Metadata {
		b.fields[k] = text(v)
	}
}

// text spells a value as the article does, whose %f makes 2.000000 of a 2.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return fmt.Sprintf("%f", v)
	case bool:
		return fmt.Sprintf("%t", v)
	default:
		return fmt.Sprintf("%v", v)
	}
}
