package rollwaytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/internal/levels"
)

// Record is one decoded canonical line. Fields that the line lacks are zero.
type Record struct {
	Time    time.Time      `json:"time"`
	Level   slog.Level     `json:"-"`
	Msg     string         `json:"msg"`
	Service string         `json:"service"`
	Logger  string         `json:"logger"`
	Source  any            `json:"source"` // a string, or a map[string]any if the line has an object
	TraceID string         `json:"trace_id"`
	SpanID  string         `json:"span_id"`
	Error   any            `json:"error"`
	Attrs   map[string]any `json:"attrs"` // numbers are int64 where they fit, else float64

	Line string `json:"-"` // as written, without the newline
}

// Recorder is an io.Writer that keeps canonical lines as records. [New] makes one with
// a Logger. The zero value works, and all methods are safe for concurrent use. A type
// that embeds it and has its own Write needs a WriteLevel too.
type Recorder struct {
	mu      sync.Mutex
	records []Record
	invalid []string
}

// New returns a Logger that records everything, and its Recorder. The Logger is closed
// when tb ends.
func New(tb testing.TB) (*rollway.Logger, *Recorder) {
	tb.Helper()
	r := new(Recorder)
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: r, Level: rollway.LevelTrace}}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { log.Close() })
	return log, r
}

// Write takes one or more whole lines. It keeps a line that is not canonical for
// Invalid and returns an error.
func (r *Recorder) Write(p []byte) (int, error) {
	var first error
	var records []Record
	var invalid []string
	for line := range bytes.Lines(p) {
		text := strings.TrimSuffix(string(line), "\n")
		rec, err := decode(text)
		if err != nil {
			invalid = append(invalid, text)
			if first == nil {
				first = fmt.Errorf("rollwaytest: record line %q: %w", text, err)
			}
			continue
		}
		records = append(records, rec)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, records...)
	r.invalid = append(r.invalid, invalid...)
	return len(p), first
}

// WriteLevel is Write. With it a Logger neither waits for other calls nor drops a line
// because one of them is slow on a busy machine.
func (r *Recorder) WriteLevel(_ slog.Level, p []byte) (int, error) { return r.Write(p) }

// Records returns all records in the order in which they were written.
func (r *Recorder) Records() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.records)
}

// Invalid returns the lines that were not canonical.
func (r *Recorder) Invalid() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.invalid)
}

// Find returns the first record with the message msg.
func (r *Recorder) Find(msg string) (Record, bool) {
	for _, rec := range r.Records() {
		if rec.Msg == msg {
			return rec, true
		}
	}
	return Record{}, false
}

// Want returns the first record with that level, message and attributes, which may
// have more. It fails tb if there is none.
func (r *Recorder) Want(tb testing.TB, level slog.Level, msg string, attrs ...slog.Attr) Record {
	tb.Helper()
	var lines strings.Builder
	for _, rec := range r.Records() {
		if rec.Level == level && rec.Msg == msg && rec.has(attrs) {
			return rec
		}
		lines.WriteString("\n" + rec.Line)
	}
	tb.Errorf("no record at %s with the message %q and %v; there are:%s", levels.Append(nil, level), msg, attrs, lines.String())
	return Record{}
}

// has reports whether the line has each of attrs.
func (rec *Record) has(attrs []slog.Attr) bool {
	fields := map[string]any{"service": rec.Service, "trace_id": rec.TraceID, "span_id": rec.SpanID, "error": rec.Error}
	for _, a := range attrs {
		d := json.NewDecoder(bytes.NewReader(rollway.AppendJSON(nil, a.Value)))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			return false
		}
		want = numbers(want)
		if !reflect.DeepEqual(rec.Attrs[a.Key], want) && !reflect.DeepEqual(fields[a.Key], want) {
			return false
		}
	}
	return true
}

// Reset removes all records.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records, r.invalid = nil, nil
}

// decode reads one canonical line.
func decode(line string) (Record, error) {
	var raw struct {
		Record
		Level *string `json:"level"`
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&raw); err != nil {
		return Record{}, err
	}
	if d.InputOffset() != int64(len(line)) {
		return Record{}, fmt.Errorf("%d bytes after the object", int64(len(line))-d.InputOffset())
	}
	rec := raw.Record
	rec.Line = line
	rec.Source, rec.Error = numbers(rec.Source), numbers(rec.Error)
	for k, v := range rec.Attrs {
		rec.Attrs[k] = numbers(v)
	}
	if raw.Level != nil {
		level, ok := levels.Parse([]byte(*raw.Level))
		if !ok {
			return Record{}, fmt.Errorf("unknown level %q", *raw.Level)
		}
		rec.Level = level
	}
	return rec, nil
}

// numbers replaces each json.Number in v, at any depth.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return string(v) // out of a float64's range
		}
		return f
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	}
	return v
}

// TB returns a writer that passes lines to tb.Log, so that they are shown with their
// test, and only if it fails or -v is set. It drops lines that come after the test has
// ended, on which tb.Log would panic. It is safe for concurrent use.
func TB(tb testing.TB) *TBWriter {
	w := &TBWriter{tb: tb}
	tb.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = true
	})
	return w
}

// TBWriter is the type of writers that [TB] returns.
type TBWriter struct {
	tb    testing.TB
	mu    sync.Mutex
	ended bool // guarded by mu
}

// Write logs the lines of p.
func (w *TBWriter) Write(p []byte) (int, error) {
	w.tb.Helper()
	return w.WriteLevel(slog.LevelInfo, p)
}

// WriteLevel logs the lines of p; the level is in them.
func (w *TBWriter) WriteLevel(_ slog.Level, p []byte) (int, error) {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.tb.Log(string(bytes.TrimSuffix(p, []byte{'\n'})))
	}
	return len(p), nil
}
