// client: @elastic/ecs-pino-format 1.5.0 for Node.js
// sends: lines of JSON over TCP
// to: tcp
// packages: pino@10.4.0 @elastic/ecs-pino-format@1.5.0
const { ecsFormat } = require('@elastic/ecs-pino-format')
const log = require('pino')({ ...ecsFormat({ apmIntegration: false }), level: 'debug', name: 'shop.cart' }, output())
for (const e of EVENTS) {
  const trace = e.trace.trace_id ? { trace: { id: e.trace.trace_id }, span: { id: e.trace.span_id } } : {}
  log[e.level](e.error ? { ...e.attrs, ...trace, err: e.error } : { ...e.attrs, ...trace }, e.msg)
}
end()
