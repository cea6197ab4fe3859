// client: sentry-go 0.50.0
// sends: Sentry's envelopes
// to: http

package main

import (
	"os"
	"time"

	"github.com/getsentry/sentry-go"

	"senders/events"
)

func main() {
	events.Check(sentry.Init(sentry.ClientOptions{Dsn: os.Getenv("DSN"), ServerName: "web-1", Integrations: func([]sentry.Integration) []sentry.Integration { return nil }}))
	levels := map[string]sentry.Level{"warn": sentry.LevelWarning}
	for _, e := range events.All() {
		sentry.WithScope(func(scope *sentry.Scope) {
			level, is := levels[e.Level]
			if !is {
				level = sentry.Level(e.Level)
			}
			scope.SetLevel(level)
			scope.SetTag("logger", "shop.cart")
			scope.SetContext("attrs", e.Attrs)
			if e.TraceID != "" {
				scope.SetContext("trace", sentry.Context{"trace_id": e.TraceID, "span_id": e.SpanID})
			}
			if e.Error != nil {
				sentry.CaptureException(e.Error)
				return
			}
			sentry.CaptureMessage(e.Msg)
		})
		sentry.Flush(time.Minute)
	}
}
