// client: @opentelemetry/sdk-logs 0.223.0 for Node.js
// sends: OTLP in JSON
// to: http
// packages: @opentelemetry/sdk-logs@0.223.0 @opentelemetry/exporter-logs-otlp-http@0.223.0 @opentelemetry/api-logs@0.223.0 @opentelemetry/resources@2.11.0 @opentelemetry/api@1.9.0
const { LoggerProvider, BatchLogRecordProcessor } = require('@opentelemetry/sdk-logs')
const { OTLPLogExporter } = require('@opentelemetry/exporter-logs-otlp-http')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const { trace, ROOT_CONTEXT } = require('@opentelemetry/api')
const provider = new LoggerProvider({ resource: resourceFromAttributes({ 'service.name': 'shop' }),
  processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter({ url: TO + '/v1/logs' }) })] })
const logger = provider.getLogger('shop.cart', '1.2.3')
const numbers = { debug: 5, info: 9, warn: 13, error: 17, fatal: 21 }
for (const e of EVENTS) {
  const attributes = e.error ? { ...e.attrs, 'exception.type': e.error.name, 'exception.message': e.error.message, 'exception.stacktrace': e.error.stack } : e.attrs
  const context = e.trace.trace_id ? trace.setSpanContext(ROOT_CONTEXT, { traceId: e.trace.trace_id, spanId: e.trace.span_id, traceFlags: 1 }) : ROOT_CONTEXT
  logger.emit({ severityNumber: numbers[e.level], severityText: e.level.toUpperCase(), body: e.msg, attributes, context })
}
provider.forceFlush().then(end)
