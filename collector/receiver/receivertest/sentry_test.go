package receivertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/getsentry/sentry-go"
	"github.com/getsentry/sentry-go/attribute"
)

// dsn is where a client sends to.
func dsn(url string) string { return strings.Replace(url, "http://", "http://public@", 1) + "/42" }

// noPaths keeps where this test is compiled out of what is recorded.
func noPaths(event *sentry.Event, _ *sentry.EventHint) *sentry.Event {
	for _, e := range event.Exception {
		for i := range e.Stacktrace.Frames {
			e.Stacktrace.Frames[i].AbsPath = "/srv/shop.go"
		}
	}
	return event
}

func TestGo(t *testing.T) {
	Client(t, "sentry/sentry-go", func(url string) {
		client, err := sentry.NewClient(sentry.ClientOptions{Dsn: dsn(url), Release: "shop@1.0", Environment: "test", ServerName: "web-1",
			Integrations: func([]sentry.Integration) []sentry.Integration { return nil }, BeforeSend: noPaths})
		if err != nil {
			t.Fatal(err)
		}
		hub := sentry.NewHub(client, sentry.NewScope())
		flush := func() {
			if !client.Flush(time.Minute) {
				t.Error("not flushed")
			}
		}
		hub.CaptureException(errors.New("no price"))
		flush()
		hub.CaptureMessage("cart is large")
		flush()
		ctx := sentry.SetHubOnContext(context.Background(), hub)
		logger := sentry.NewLogger(ctx)
		logger.SetAttributes(attribute.Int("cart", 3))
		logger.Warn().Emit("cart is large")
		logger.Info().Emitf("%d items", 7)
		flush()
		client.Close()
	})
}
