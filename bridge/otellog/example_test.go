package otellog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/otellog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"
)

// printer is an exporter of OpenTelemetry's SDK that prints.
type printer struct{}

func (printer) Export(_ context.Context, records []sdklog.Record) error {
	for _, r := range records {
		fmt.Println(r.InstrumentationScope().Name, r.Severity(), r.Body().AsString(), r.TraceID())
		r.WalkAttributes(func(kv attribute.KeyValue) bool {
			if kv.Key == "code.file.path" || kv.Key == "code.line.number" || kv.Key == "code.function.name" {
				kv.Value = attribute.StringValue("…") // differs from machine to machine
			}
			fmt.Println(" ", kv.Key, kv.Value.String())
			return true
		})
	}
	return nil
}

func (printer) Shutdown(context.Context) error   { return nil }
func (printer) ForceFlush(context.Context) error { return nil }

func ExampleNewOutput() {
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(printer{})))
	defer provider.Shutdown(context.Background())
	l, err := rollway.New(rollway.Options{
		Outputs: []rollway.Output{otellog.NewOutput(provider, otellog.Options{})},
		Trace:   otellog.Trace,
		Caller:  rollway.LevelOff,
	})
	if err != nil {
		panic(err)
	}
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	ctx := trace.ContextWithSpanContext(context.Background(), span)
	l.Named("billing").Error(ctx, "not charged", slog.String("customer", "cus_123"), slog.Any("error", context.DeadlineExceeded))
	// Output:
	// billing ERROR not charged 01000000000000000000000000000000
	//   customer cus_123
	//   exception.message context deadline exceeded
	//   exception.type context.deadlineExceededError
}

func ExampleNewProvider() {
	l, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: stable{}}}})
	if err != nil {
		panic(err)
	}
	library := otellog.NewProvider(l).Logger("library")
	var r log.Record
	r.SetSeverity(log.SeverityWarn)
	r.SetBody(attribute.StringValue("cache is full"))
	r.AddAttributes(attribute.Int("entries", 4096))
	library.Emit(context.Background(), r)
	// Output:
	// {"time":…,"level":"WARN","msg":"cache is full","logger":"library","attrs":{"entries":4096}}
}

// stable is an io.Writer that replaces what differs from run to run, so that
// the example's output can be checked.
type stable struct{}

var varies = regexp.MustCompile(`"time":"[^"]*"`)

func (stable) Write(p []byte) (int, error) {
	if _, err := os.Stdout.Write(varies.ReplaceAll(p, []byte(`"time":…`))); err != nil {
		return 0, err
	}
	return len(p), nil
}
