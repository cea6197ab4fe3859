package splunk_test

import (
	"net"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver/receivertest"
	"github.com/rollway/rollway/internal/testkit"
)

var mask receivertest.Mask

func TestReplay(t *testing.T) { receivertest.Replay(t, mask) }

func TestSplunkHandler(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "splunk-handler", mask, func(url string) {
		host, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		receivertest.Python(t, `
import logging
from splunk_handler import SplunkHandler
handler = SplunkHandler(host="`+host+`", port=`+port+`, protocol="http", token="secret", index="main", hostname="web-1",
                        source="shop", sourcetype="app", flush_interval=0, retry_count=0)
log = logging.getLogger("shop")
log.addHandler(handler)
log.setLevel(logging.INFO)
log.info("first line")
log.warning("second %s", "line", extra={"_time": 1779972000.25})
`, "splunk-handler==3.0.0")
	})
}

func TestSplunkLogging(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "splunk-logging", mask, func(url string) {
		receivertest.Node(t, `
const { Logger } = require('splunk-logging')
const log = new Logger({ token: 'secret', url: '`+url+`', maxBatchCount: 3 })
log.error = (err) => { console.error(err); process.exit(1) }
const metadata = { source: 'shop', sourcetype: 'app', index: 'main', time: 1779972000.5 }
log.send({ message: 'first', severity: 'warn', metadata })
log.send({ message: { message: 'second', cart: { items: 3 } }, metadata })
log.send({ message: 'third' }, (err, res, body) => {
  if (err || body.code !== 0 || body.text !== 'Success') { console.error(err, body); process.exit(1) }
  console.log(JSON.stringify(body))
})
`, "splunk-logging@0.11.1")
	})
}

func TestWinston(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "winston-splunk-httplogger", mask, func(url string) {
		receivertest.Node(t, `
const winston = require('winston')
const SplunkStreamEvent = require('winston-splunk-httplogger')
const transport = new SplunkStreamEvent({ splunk: { token: 'secret', url: '`+url+`', index: 'main' } })
const log = winston.createLogger({ transports: [transport] })
log.warn('cart is large', { cart: { items: 3 } })
log.info('done')
`, "winston-splunk-httplogger@3.1.8", "winston@3.19.0")
	})
}

// TestFluentBit has Fluent Bit send, or where it is not, what it once sent.
func TestFluentBit(t *testing.T) {
	const head = "    name splunk\n    host HOST\n    port PORT\n    splunk_token secret\n"
	receivertest.Agents(t, mask, receivertest.FluentBit, map[string]string{
		"fluent-bit": head,
		"fluent-bit-fields": head + "    event_host web-1\n    event_source shop\n    event_sourcetype app\n    event_index main\n    event_field number $n\n" +
			"    channel 0123\n    compress gzip\n",
	})
}
