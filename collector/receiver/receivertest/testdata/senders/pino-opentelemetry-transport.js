// client: pino-opentelemetry-transport 4.0.2 for Node.js
// sends: OTLP
// to: http
// packages: pino@10.4.0 pino-opentelemetry-transport@4.0.2
const pino = require('pino')
process.env.OTEL_EXPORTER_OTLP_LOGS_ENDPOINT = TO + '/v1/logs'
const transport = pino.transport({ target: 'pino-opentelemetry-transport', options: {
  loggerName: 'shop.cart', serviceVersion: '1.2.3', resourceAttributes: { 'service.name': 'shop' },
  logRecordProcessorOptions: { recordProcessorType: 'simple', exporterOptions: { protocol: 'http/protobuf' } } } })
const log = pino({ level: 'debug' }, transport)
for (const e of EVENTS) log[e.level](e.error ? { ...e.extra, err: e.error } : e.extra, e.msg)
end()
