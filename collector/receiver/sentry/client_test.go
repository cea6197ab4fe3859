package sentry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/getsentry/sentry-go"
	"github.com/getsentry/sentry-go/attribute"

	"github.com/rollway/rollway/collector/receiver/receivertest"
	"github.com/rollway/rollway/internal/testkit"
)

// mask is for what tells of the machine and the SDK's insides.
var mask = receivertest.Mask{"contexts", "stacktrace", "sdk", "modules", "breadcrumbs", "mechanism", "thread_id", "thread.id", "process.pid",
	"process.executable.name", "process.runtime.name", "process.runtime.version", "code.file.path", "code.line.number", "sentry.timestamp.sequence"}

func TestReplay(t *testing.T) { receivertest.Replay(t, mask) }

// dsn is where a client sends to.
func dsn(url string) string { return strings.Replace(url, "http://", "http://public@", 1) + "/42" }

func TestPython(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "sentry-sdk", mask, func(url string) {
		receivertest.Python(t, `
import logging
import sentry_sdk
from sentry_sdk.integrations.logging import LoggingIntegration
sentry_sdk.init(dsn="`+dsn(url)+`", release="shop@1.0", environment="test", server_name="web-1", enable_logs=True,
                include_local_variables=False, default_integrations=False, integrations=[LoggingIntegration()])
sentry_sdk.set_tag("team", "cart")
log = logging.getLogger("shop.cart")
try:
    {}["price"]
except KeyError:
    log.exception("no price for %s", "cart 3")
sentry_sdk.flush(60)
sentry_sdk.capture_message("cart is large", level="warning")
sentry_sdk.flush(60)
sentry_sdk.logger.warning("cart {cart} is large", cart=3, attributes={"items": 7})
sentry_sdk.flush(60)
`, "sentry-sdk==2.75.0")
	})
}

// With a brotli module beside it, as other packages bring one, the SDK packs by that.
func TestPythonBrotli(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "sentry-sdk-brotli", mask, func(url string) {
		receivertest.Python(t, `
import sentry_sdk
sentry_sdk.init(dsn="`+dsn(url)+`", release="shop@1.0", environment="test", server_name="web-1", default_integrations=False)
sentry_sdk.capture_message("cart is large", level="warning")
sentry_sdk.flush(60)
`, "sentry-sdk==2.75.0", "brotli==1.2.0")
	})
}

func TestNode(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "sentry-node", mask, func(url string) {
		receivertest.Node(t, `
const Sentry = require('@sentry/node')
Sentry.init({ dsn: '`+dsn(url)+`', release: 'shop@1.0', environment: 'test', serverName: 'web-1', enableLogs: true, defaultIntegrations: false })
async function main () {
  const err = new TypeError('no price')
  err.stack = 'TypeError: no price\n    at pay (/srv/shop.js:9:11)'
  Sentry.captureException(err, { tags: { team: 'cart' } })
  await Sentry.flush(60000)
  Sentry.captureMessage('cart is large', 'warning')
  await Sentry.flush(60000)
  Sentry.logger.error('payment failed', { cart: 3, dear: true })
  Sentry.logger.info('done')
  await Sentry.flush(60000)
}
main()
`, "@sentry/node@10.78.0")
	})
}

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
	receivertest.Client(t, "sentry-go", mask, func(url string) {
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
