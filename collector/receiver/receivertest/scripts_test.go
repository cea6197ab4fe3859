package receivertest

import (
	"net"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// TestScripts has clients from registries send. In a script $URL, $HOST and $PORT
// are the collector's, and $DSN is what Sentry's clients are given.
func TestScripts(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	for _, c := range scripts {
		t.Run(c.client, func(t *testing.T) {
			Client(t, c.client, func(url string) {
				host, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				c.run(t, strings.NewReplacer("$URL", url, "$DSN", dsn(url), "$HOST", host, "$PORT", port).Replace(c.script), c.packages...)
			})
		})
	}
}

var scripts = []struct {
	client   string
	run      func(t testing.TB, script string, packages ...string)
	packages []string
	script   string
}{
	{"elastic/elasticsearch-py", Python, []string{"elasticsearch==9.5.1"}, `
from elasticsearch import Elasticsearch, helpers
es = Elasticsearch("$URL", http_compress=True)
assert es.ping()
assert es.info()["version"]["number"] == "8.17.0"
assert es.cluster.health()["status"] == "green"
es.indices.put_index_template(name="logs-shop", index_patterns=["logs-shop-*"], data_stream={})
assert es.indices.exists(index="logs-shop-default")
docs = [{"_op_type": "create", "_index": "logs-shop-default",
         "@timestamp": "2026-05-28T12:40:00Z", "message": "line %d" % i,
         "log": {"level": "error", "logger": "shop.cart"}, "labels": {"n": i}} for i in range(3)]
docs.append({"_op_type": "delete", "_index": "logs-shop-default", "_id": "x"})
ok, errors = helpers.bulk(es, docs, raise_on_error=False)
assert ok == 3 and len(errors) == 1 and errors[0]["delete"]["status"] == 400, (ok, errors)
es.indices.refresh(index="logs-shop-default")
`},
	{"elastic/pino-elasticsearch", Node, []string{"pino-elasticsearch@9.0.0", "pino@10.4.0"}, `
const pino = require('pino')
const to = require('pino-elasticsearch')({ index: 'logs-shop-default', node: '$URL', esVersion: 8, opType: 'create', flushBytes: 1e6 })
const fail = (what) => (err) => { console.error(what, err); process.exit(1) }
to.on('unknown', fail('unknown')); to.on('error', fail('error')); to.on('insertError', fail('insertError'))
to.on('insert', (stats) => { console.log(JSON.stringify(stats)); if (stats.failed) process.exit(1) })
const log = pino({ level: 'debug', base: { pid: 7, hostname: 'web-1' } }, to)
const err = new TypeError('no price')
err.stack = 'TypeError: no price\n    at pay (shop.js:9:11)'
log.warn({ cart: { items: 3 } }, 'cart is large')
log.error(err, 'payment failed')
log.debug('done')
to.end()
`},
	{"loki/pino-loki", Node, []string{"pino@10.4.0", "pino-loki@3.0.0"}, `
const pino = require('pino');
const transport = pino.transport({ target: 'pino-loki', options: { host: '$URL', batching: false, labels: { app: 'shop' } } });
const log = pino(transport);
transport.on('ready', () => {
  log.warn({ ms: 812, nested: { k: true } }, 'slow');
  // At its end the transport does not wait for what it is sending.
  const stored = setInterval(async () => {
    const answer = await fetch('$URL/metrics');
    if (/rollway_events_stored_total [1-9]/.test(await answer.text())) { clearInterval(stored); transport.end(); }
  }, 100);
});
`},
	{"loki/winston-loki", Node, []string{"winston@3.19.0", "winston-loki@6.1.7"}, `
const winston = require('winston');
const LokiTransport = require('winston-loki');
const transport = new LokiTransport({ host: '$URL', labels: { app: 'shop' }, batching: true, interval: 1, onConnectionError: (e) => { console.error(e); process.exit(1); } });
const log = winston.createLogger({ transports: [transport] });
log.warn('slow', { ms: 812, labels: { region: 'eu' } });
log.error('failed');
setTimeout(() => transport.flush().then(() => process.exit(0)), 100);
`},
	{"loki/python-logging-loki", Python, []string{"python-logging-loki==0.3.1"}, `
import logging, logging_loki
log = logging.getLogger("checkout")
log.addHandler(logging_loki.LokiHandler(url="$URL/loki/api/v1/push", tags={"app": "shop"}, version="1"))
log.warning("slow", extra={"tags": {"ms": "812"}})
log.error("failed \"here\"\n")
`},
	{"otlp/opentelemetry-python", Python, []string{"opentelemetry-sdk==1.45.2", "opentelemetry-exporter-otlp-proto-http==1.45.2"}, `
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.sdk.resources import Resource
from opentelemetry._logs import LogRecord, SeverityNumber
provider = LoggerProvider(resource=Resource.create({"service.name": "shop", "host.name": "web-1"}))
provider.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(endpoint="$URL/v1/logs", compression=Compression.Gzip)))
logger = provider.get_logger("checkout", "1.2.3")
logger.emit(LogRecord(timestamp=1779972000123456789, severity_number=SeverityNumber.WARN, severity_text="WARN", body="slow",
    attributes={"ms": 812, "ratio": 0.5, "tags": ["a", "b"], "ok": True, "raw": b"\x01\x02"}))
logger.emit(LogRecord(timestamp=1779972000123456790, severity_number=SeverityNumber.ERROR2, body={"event": "declined", "codes": [1, 2]}))
provider.shutdown()
`},
	{"otlp/opentelemetry-js", Node, []string{"@opentelemetry/sdk-logs@0.223.0", "@opentelemetry/exporter-logs-otlp-http@0.223.0", "@opentelemetry/api-logs@0.223.0", "@opentelemetry/resources@2.11.0"}, `
const { LoggerProvider, SimpleLogRecordProcessor } = require('@opentelemetry/sdk-logs');
const { OTLPLogExporter } = require('@opentelemetry/exporter-logs-otlp-http');
const { resourceFromAttributes } = require('@opentelemetry/resources');
async function main() {
  const exporter = new OTLPLogExporter({ url: '$URL/v1/logs' });
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({ 'service.name': 'shop', 'host.name': 'web-1' }),
    processors: [new SimpleLogRecordProcessor({ exporter })],
  });
  const logger = provider.getLogger('checkout', '1.2.3');
  logger.emit({ timestamp: new Date('2026-05-28T12:40:00.123Z'), severityNumber: 13, severityText: 'WARN', body: 'slow',
    attributes: { ms: 812, ratio: 0.5, tags: ['a', 'b'], nested: { k: true }, raw: new Uint8Array([1, 2]) } });
  await provider.forceFlush();
  await provider.shutdown();
}
main();
`},
	{"otlp/pino-opentelemetry-transport", Node, []string{"pino@10.4.0", "pino-opentelemetry-transport@4.0.2"}, `
const pino = require('pino');
process.env.OTEL_EXPORTER_OTLP_LOGS_ENDPOINT = '$URL/v1/logs';
const transport = pino.transport({ target: 'pino-opentelemetry-transport', options: {
  loggerName: 'checkout', serviceVersion: '1.2.3', resourceAttributes: { 'service.name': 'shop' },
  logRecordProcessorOptions: { recordProcessorType: 'simple', exporterOptions: { protocol: 'http/protobuf' } },
} });
const log = pino(transport);
transport.on('ready', () => {
  log.warn({ ms: 812, nested: { k: true } }, 'slow');
  // At its end the transport does not wait for what it is sending.
  const stored = setInterval(async () => {
    const answer = await fetch('$URL/metrics');
    if (/rollway_events_stored_total [1-9]/.test(await answer.text())) { clearInterval(stored); transport.end(); }
  }, 100);
});
`},
	{"sentry/sentry-sdk", Python, []string{"sentry-sdk==2.75.0"}, `
import logging
import sentry_sdk
from sentry_sdk.integrations.logging import LoggingIntegration
sentry_sdk.init(dsn="$DSN", release="shop@1.0", environment="test", server_name="web-1", enable_logs=True,
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
`},
	// With a brotli module beside it, as other packages bring one, the SDK packs by that.
	{"sentry/sentry-sdk-brotli", Python, []string{"sentry-sdk==2.75.0", "brotli==1.2.0"}, `
import sentry_sdk
sentry_sdk.init(dsn="$DSN", release="shop@1.0", environment="test", server_name="web-1", default_integrations=False)
sentry_sdk.capture_message("cart is large", level="warning")
sentry_sdk.flush(60)
`},
	{"sentry/sentry-node", Node, []string{"@sentry/node@10.78.0"}, `
const Sentry = require('@sentry/node')
Sentry.init({ dsn: '$DSN', release: 'shop@1.0', environment: 'test', serverName: 'web-1', enableLogs: true, defaultIntegrations: false })
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
`},
	{"splunk/splunk-handler", Python, []string{"splunk-handler==3.0.0"}, `
import logging
from splunk_handler import SplunkHandler
handler = SplunkHandler(host="$HOST", port=$PORT, protocol="http", token="secret", index="main", hostname="web-1",
                        source="shop", sourcetype="app", flush_interval=0, retry_count=0)
log = logging.getLogger("shop")
log.addHandler(handler)
log.setLevel(logging.INFO)
log.info("first line")
log.warning("second %s", "line", extra={"_time": 1779972000.25})
`},
	{"splunk/splunk-logging", Node, []string{"splunk-logging@0.11.1"}, `
const { Logger } = require('splunk-logging')
const log = new Logger({ token: 'secret', url: '$URL', maxBatchCount: 3 })
log.error = (err) => { console.error(err); process.exit(1) }
const metadata = { source: 'shop', sourcetype: 'app', index: 'main', time: 1779972000.5 }
log.send({ message: 'first', severity: 'warn', metadata })
log.send({ message: { message: 'second', cart: { items: 3 } }, metadata })
log.send({ message: 'third' }, (err, res, body) => {
  if (err || body.code !== 0 || body.text !== 'Success') { console.error(err, body); process.exit(1) }
  console.log(JSON.stringify(body))
})
`},
	{"splunk/winston-splunk-httplogger", Node, []string{"winston-splunk-httplogger@3.1.8", "winston@3.19.0"}, `
const winston = require('winston')
const SplunkStreamEvent = require('winston-splunk-httplogger')
const transport = new SplunkStreamEvent({ splunk: { token: 'secret', url: '$URL', index: 'main' } })
const log = winston.createLogger({ transports: [transport] })
log.warn('cart is large', { cart: { items: 3 } })
log.info('done')
`},
}
