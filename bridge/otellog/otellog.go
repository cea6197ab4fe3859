// Package otellog connects rollway and OpenTelemetry's logs in both directions:
//
//   - [NewOutput] is an output of a rollway Logger: every record becomes one of
//     OpenTelemetry, with its values' types and the span of the context.
//   - [NewProvider] is a log.LoggerProvider of OpenTelemetry whose records a rollway
//     Logger writes: for libraries that log through that.
//   - [Trace] is the function for rollway.Options.Trace.
//
// Lines that go through a slab.Writer, or wait on disk while the peer is away, need no SDK:
// package remote sends them to otlp+https://host.
//
// The providers belong to the user, who configures and shuts them down. Their errors
// go to otel.Handle. If that leads back to the Logger of the line in question, the
// two never end.
//
// Levels and severities are the same scale, 9 apart: TRACE (-8) is 1, DEBUG 5, INFO
// 9, WARN 13, ERROR 17, PANIC 19, FATAL 21. A value outside 1 to 24 becomes the
// nearest in it.
package otellog

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/rollway/rollway/internal/levels"
)

// Options configures [NewOutput].
type Options struct {
	// Name is that of the instrumentation scope. Default: rollway.
	Name string

	// Version is that of the instrumentation scope. Default: none.
	Version string
}

// Trace returns the ids of the span in ctx, for rollway.Options.Trace.
func Trace(ctx context.Context) (traceID [16]byte, spanID [8]byte, ok bool) {
	sc := trace.SpanContextFromContext(ctx)
	return sc.TraceID(), sc.SpanID(), sc.IsValid()
}

const severityOfInfo = slog.Level(log.SeverityInfo) - slog.LevelInfo

func severityOf(l slog.Level) log.Severity {
	return log.Severity(min(max(l+severityOfInfo, slog.Level(log.SeverityTrace1)), slog.Level(log.SeverityFatal4)))
}

// levelOf returns INFO for a severity that is not set.
func levelOf(s log.Severity) slog.Level {
	if s == log.SeverityUndefined {
		return slog.LevelInfo
	}
	return slog.Level(s) - severityOfInfo
}

func levelName(l slog.Level) string { return string(levels.Append(nil, l)) }

// Attributes that OpenTelemetry's semantic conventions name.
const (
	keyMessage     = attribute.Key("exception.message")
	keyType        = attribute.Key("exception.type")
	keyStack       = attribute.Key("exception.stacktrace")
	keyStackOfCall = attribute.Key("code.stacktrace")
	keyFile        = attribute.Key("code.file.path")
	keyLine        = attribute.Key("code.line.number")
	keyFunction    = attribute.Key("code.function.name")
	keyService     = attribute.Key("service.name")
)
