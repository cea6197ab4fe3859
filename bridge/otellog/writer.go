package otellog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/rollway/rollway/internal/levels"
)

// Writer takes canonical lines, those of rollway's JSON encoder without options, and
// emits a record for each. It is safe for concurrent use. It buffers nothing, and
// Write waits as long as the provider does; for a Logger it is a plain writer, for
// which calls wait at most rollway.Options.MaxWait while another is in it. The Logger
// does not count what the provider does afterwards.
//
//   - time and level are the timestamp, the severity and its text, msg the body.
//   - logger is the name of the instrumentation scope.
//   - trace_id and span_id are the record's; a line does not say whether the trace is
//     sampled.
//   - error is exception.message; if it is an object, also exception.type and
//     exception.stacktrace, and its other members stay error.
//   - source is code.file.path and code.line.number, service is service.name.
//   - attrs are attributes, groups and objects maps, arrays slices. Times,
//     durations and bytes are as in the line. An integer beyond an int64 is a string of
//     digits.
//   - Any other key, and one of these with a value of another type, is an
//     attribute of its name.
type Writer struct {
	Options
	provider log.LoggerProvider
	mu       sync.Mutex
	loggers  map[string]log.Logger // guarded by mu; by scope name
}

// maxScopes bounds the loggers that are kept, here and by the provider, which never
// removes one. Lines of further loggers have the name in an attribute.
const maxScopes = 256

// NewWriter returns a Writer that emits through p. It never closes p.
func NewWriter(p log.LoggerProvider, o Options) *Writer {
	return &Writer{Options: o, provider: p, loggers: make(map[string]log.Logger)}
}

// Write emits a record for each line of p. It returns an error at a line that is not
// a JSON object, with n the length of the lines before it.
func (w *Writer) Write(p []byte) (n int, err error) {
	for line := range bytes.Lines(p) {
		if err := w.emit(line); err != nil {
			return n, fmt.Errorf("otellog: read line: %w", err)
		}
		n += len(line)
	}
	return n, nil
}

// Flush makes the provider export its records, if it has ForceFlush.
func (w *Writer) Flush(ctx context.Context) error {
	if p, ok := w.provider.(interface{ ForceFlush(context.Context) error }); ok {
		return p.ForceFlush(ctx)
	}
	return nil
}

// entry is one record that is being built.
type entry struct {
	record log.Record
	logger string
	span   trace.SpanContextConfig
}

func (w *Writer) emit(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if open, err := d.Token(); err != nil {
		return err
	} else if open != json.Delim('{') {
		return fmt.Errorf("it begins with %v and is not a JSON object: the output's encoder must be rollway.JSON{}", open)
	}
	var e entry
	if err := readMembers(d, 0, e.add); err == io.EOF {
		return io.ErrUnexpectedEOF
	} else if err != nil {
		return err
	}
	if rest := bytes.Trim(line[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return fmt.Errorf("there are %d bytes after the JSON object", len(rest))
	}
	w.loggerFor(&e).Emit(e.context(context.Background()), e.record)
	return nil
}

func (w *Writer) loggerFor(e *entry) log.Logger {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, ok := w.loggers[e.logger]
	if !ok && len(w.loggers) >= maxScopes {
		e.record.AddAttributes(attribute.String("logger", e.logger))
		e.logger = ""
		l, ok = w.loggers[""]
	}
	if !ok {
		l = w.Options.logger(w.provider, e.logger)
		w.loggers[e.logger] = l
	}
	return l
}

func (e *entry) add(kv attribute.KeyValue) {
	switch {
	case kv.Value.Type() == attribute.STRING && e.addString(string(kv.Key), kv.Value.AsString()):
	case kv.Value.Type() == attribute.MAP && kv.Key == "attrs":
		e.record.AddAttributes(kv.Value.AsMap()...)
	case kv.Value.Type() == attribute.MAP && kv.Key == "error":
		e.addError(kv.Value.AsMap())
	default:
		e.record.AddAttributes(kv)
	}
}

// addString adds a string, and reports whether it is a valid field of the canonical
// line.
func (e *entry) addString(key, s string) bool {
	var err error
	switch key {
	case "time":
		var t time.Time
		if t, err = time.Parse(time.RFC3339Nano, s); err == nil {
			e.record.SetTimestamp(t)
		}
	case "level":
		level, ok := levels.Parse([]byte(s))
		if !ok {
			return false
		}
		e.record.SetSeverity(severityOf(level))
		e.record.SetSeverityText(s)
	case "msg":
		e.record.SetBody(attribute.StringValue(s))
	case "logger":
		e.logger = s
	case "service":
		e.record.AddAttributes(keyService.String(s))
	case "trace_id":
		e.span.TraceID, err = trace.TraceIDFromHex(s)
	case "span_id":
		e.span.SpanID, err = trace.SpanIDFromHex(s)
	case "error":
		e.record.AddAttributes(keyMessage.String(s))
	case "source":
		i := strings.LastIndexByte(s, ':')
		line, err := strconv.Atoi(s[i+1:])
		if i < 0 || err != nil {
			return false
		}
		e.record.AddAttributes(keyFile.String(s[:i]), keyLine.Int(line))
	default:
		return false
	}
	return err == nil
}

func (e *entry) addError(members []attribute.KeyValue) {
	names := map[attribute.Key]attribute.Key{"message": keyMessage, "type": keyType, "stack": keyStack}
	var rest []attribute.KeyValue
	for _, kv := range members {
		if name, ok := names[kv.Key]; ok && kv.Value.Type() == attribute.STRING {
			e.record.AddAttributes(attribute.KeyValue{Key: name, Value: kv.Value})
		} else {
			rest = append(rest, kv)
		}
	}
	if len(rest) > 0 {
		e.record.AddAttributes(attribute.Map("error", rest...))
	}
}
