// Package events has the events that every client sends.
package events

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// An Event is what a client is to send.
type Event struct {
	Level, Msg string
	Attrs      map[string]any
	TraceID    string // of the event that has one
	SpanID     string
	Error      error
}

// PaymentError is caused by a DatabaseError.
type PaymentError struct{ Cause error }

func (e *PaymentError) Error() string { return "no payment for order 7" }
func (e *PaymentError) Unwrap() error { return e.Cause }

// DatabaseError is the cause.
type DatabaseError struct{}

func (*DatabaseError) Error() string { return "connection refused" }

// Extra is the attributes with the ids of the trace.
func (e Event) Extra() map[string]any {
	m := map[string]any{}
	for k, v := range e.Attrs {
		m[k] = v
	}
	if e.TraceID != "" {
		m["trace_id"], m["span_id"] = e.TraceID, e.SpanID
	}
	return m
}

// Trace is the ids as bytes.
func (e Event) Trace() (trace [16]byte, span [8]byte) {
	hex.Decode(trace[:], []byte(e.TraceID))
	hex.Decode(span[:], []byte(e.SpanID))
	return trace, span
}

// All returns them.
func All() (list []Event) {
	text, err := os.ReadFile(os.Getenv("EVENTS"))
	Check(err)
	var raw []struct {
		Level     string
		Msg       any
		Attrs     map[string]any
		Exception bool
		TraceID   string `json:"trace_id"`
		SpanID    string `json:"span_id"`
	}
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	Check(dec.Decode(&raw))
	for _, r := range raw {
		e := Event{Level: r.Level, Attrs: map[string]any{}, TraceID: r.TraceID, SpanID: r.SpanID}
		switch m := r.Msg.(type) {
		case string:
			e.Msg = m
		case map[string]any:
			of := m["repeat"].([]any)
			n, _ := of[1].(json.Number).Int64()
			e.Msg = strings.Repeat(of[0].(string), int(n))
		}
		for k, v := range r.Attrs {
			e.Attrs[k] = value(v)
		}
		if r.Exception {
			e.Error = &PaymentError{new(DatabaseError)}
		}
		list = append(list, e)
	}
	return list
}

func value(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = value(v[i])
		}
	case map[string]any:
		if s, is := v["bytes"].(string); is {
			b, err := base64.StdEncoding.DecodeString(s)
			Check(err)
			return b
		}
		for k := range v {
			v[k] = value(v[k])
		}
	}
	return v
}

// Addr is where to send.
func Addr() string { return net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")) }

// Output is what a program prints, as an agent passes it on.
func Output() io.Writer {
	c, err := net.Dial("tcp", Addr())
	Check(err)
	return c
}

// Check ends the program.
func Check(err error) {
	if err != nil {
		panic(fmt.Sprintf("%v (%T)", err, errors.Unwrap(err)))
	}
}

var count = regexp.MustCompile(`(?m)^rollway_events_stored_total (\d+)`)

// Await waits until all are stored, for clients that do not.
func Await() {
	for range 200 {
		resp, err := http.Get(os.Getenv("COLLECTOR") + "/metrics")
		Check(err)
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if m := count.FindSubmatch(text); m != nil {
			if n, _ := strconv.Atoi(string(m[1])); n >= 12 {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}
