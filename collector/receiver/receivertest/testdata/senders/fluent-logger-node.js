// client: fluent-logger 3.4.1 for Node.js
// sends: Fluent forward
// to: forward
// packages: fluent-logger@3.4.1
const log = require('fluent-logger').createFluentSender('shop', { host: HOST, port: PORT, timeout: 3 })
for (const e of EVENTS) log.emit('cart', { level: e.level, message: e.msg, logger: 'shop.cart', ...e.extra, ...(e.error ? { err: { type: e.error.name, message: e.error.message, stack: e.error.stack } } : {}) })
end()
