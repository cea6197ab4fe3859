// client: @fluent-org/logger 1.0.10 for Node.js, with acknowledgements
// sends: Fluent forward
// to: forward
// packages: @fluent-org/logger@1.0.10
const { FluentClient } = require('@fluent-org/logger')
const log = new FluentClient('shop', { socket: { host: HOST, port: PORT }, ack: {} })
Promise.all(EVENTS.map((e) => log.emit('cart', { level: e.level, message: e.msg, logger: 'shop.cart', ...e.extra, ...(e.error ? { err: { type: e.error.name, message: e.error.message, stack: e.error.stack } } : {}) }))).then(end)
