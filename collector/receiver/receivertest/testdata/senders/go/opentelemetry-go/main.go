// client: OpenTelemetry 0.23.0 for Go
// sends: OTLP over gRPC
// to: http

package main

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/log"
	sdk "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"

	"senders/events"
)

func main() {
	ctx := context.Background()
	exporter, err := otlploggrpc.New(ctx, otlploggrpc.WithEndpoint(events.Addr()), otlploggrpc.WithInsecure())
	events.Check(err)
	provider := sdk.NewLoggerProvider(sdk.WithProcessor(sdk.NewBatchProcessor(exporter)))
	logger := provider.Logger("shop.cart")
	levels := map[string]log.Severity{"debug": log.SeverityDebug, "info": log.SeverityInfo, "warn": log.SeverityWarn, "error": log.SeverityError, "fatal": log.SeverityFatal}
	for _, e := range events.All() {
		var r log.Record
		r.SetTimestamp(time.Now())
		r.SetSeverity(levels[e.Level])
		r.SetBody(attribute.StringValue(e.Msg))
		for k, v := range e.Attrs {
			r.AddAttributes(attribute.KeyValue{Key: attribute.Key(k), Value: value(v)})
		}
		if e.Error != nil {
			r.SetErr(e.Error)
		}
		trace16, span8 := e.Trace()
		logger.Emit(trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace16, SpanID: span8})), r)
	}
	events.Check(provider.Shutdown(ctx))
}

func value(v any) attribute.Value {
	switch v := v.(type) {
	case string:
		return attribute.StringValue(v)
	case int64:
		return attribute.Int64Value(v)
	case float64:
		return attribute.Float64Value(v)
	case bool:
		return attribute.BoolValue(v)
	case []byte:
		return attribute.ByteSliceValue(v)
	case []any:
		var list []attribute.Value
		for _, one := range v {
			list = append(list, value(one))
		}
		return attribute.SliceValue(list...)
	case map[string]any:
		var list []attribute.KeyValue
		for k, one := range v {
			list = append(list, attribute.KeyValue{Key: attribute.Key(k), Value: value(one)})
		}
		return attribute.MapValue(list...)
	}
	return attribute.Value{}
}
