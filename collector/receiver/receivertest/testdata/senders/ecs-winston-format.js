// client: @elastic/ecs-winston-format 1.5.3 for Node.js
// sends: lines of JSON over TCP
// to: tcp
// packages: winston@3.19.0 @elastic/ecs-winston-format@1.5.3
const winston = require('winston')
const { ecsFormat } = require('@elastic/ecs-winston-format')
const levels = { fatal: 0, error: 1, warn: 2, info: 3, debug: 4 }
const log = winston.createLogger({ levels, level: 'debug', format: ecsFormat({ apmIntegration: false }), transports: [new winston.transports.Stream({ stream: output() })] })
for (const e of EVENTS) {
  const trace = e.trace.trace_id ? { trace: { id: e.trace.trace_id }, span: { id: e.trace.span_id } } : {}
  log.log(e.level, e.msg, e.error ? { ...e.attrs, err: e.error } : { ...e.attrs, ...trace })
}
end()
