package rollway_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"regexp"

	"github.com/rollway/rollway"
)

// stableTime is an io.Writer that puts the same time into every line, so that
// the examples' output can be checked.
type stableTime struct{}

var timeOf = regexp.MustCompile(`"time":"[^"]*"`)

func (stableTime) Write(p []byte) (int, error) {
	if _, err := os.Stdout.Write(timeOf.ReplaceAll(p, []byte(`"time":"2026-05-28T12:40:00.123456789Z"`))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func Example() {
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: stableTime{}}}})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	log = log.With(slog.String("service", "payment-api"))
	log.Info(ctx, "charged", slog.String("customer", "cus_123"), slog.Int("retry", 2))
	log.Debug(ctx, "below the output's level, so not written")
	// Output:
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"charged","service":"payment-api","attrs":{"customer":"cus_123","retry":2}}
}

// Two formats, two levels: each record is encoded once per format.
func Example_router() {
	var file bytes.Buffer // in place of a *file.File or a slab.Writer
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{
		{Writer: &file, Level: slog.LevelInfo, Encoder: rollway.JSON{}},
		{Writer: os.Stdout, Level: slog.LevelWarn, Encoder: rollway.Console{TimeFormat: "[demo]"}},
	}, Caller: rollway.LevelOff})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	log.Info(ctx, "for the file alone")
	log.Warn(ctx, "for both", slog.String("reason", "card declined"))
	stableTime{}.Write(file.Bytes())
	// Output:
	// [demo] WARN  for both reason="card declined"
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"for the file alone"}
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"WARN","msg":"for both","attrs":{"reason":"card declined"}}
}

func ExampleLogger_Handler() {
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: stableTime{}}}})
	if err != nil {
		panic(err)
	}
	slog.New(log.Handler()).WithGroup("http").Info("request", "status", 200, "path", "/pay")
	// Output:
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"request","attrs":{"http":{"status":200,"path":"/pay"}}}
}
