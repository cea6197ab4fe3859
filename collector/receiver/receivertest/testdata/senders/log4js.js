// client: log4js 6.9.1 for Node.js, appender tcp
// sends: lines of JSON over TCP
// to: tcp
// packages: log4js@6.9.1
const log4js = require('log4js')
log4js.addLayout('json', () => (event) => JSON.stringify({ time: event.startTime, level: event.level.levelStr, logger: event.categoryName, msg: event.data[0], ...event.data[1], ...(event.error ? { error: event.error } : {}) }))
log4js.configure({ appenders: { net: { type: 'tcp', host: HOST, port: PORT, endMsg: '\n', layout: { type: 'json' } } }, categories: { default: { appenders: ['net'], level: 'debug' } } })
const log = log4js.getLogger('shop.cart')
for (const e of EVENTS) e.error ? log[e.level](e.msg, { ...e.extra, err: { type: e.error.name, message: e.error.message, stack: e.error.stack } }) : log[e.level](e.msg, e.extra)
log4js.shutdown(end)
