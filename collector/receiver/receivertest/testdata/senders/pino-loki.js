// client: pino-loki 3.0.0 for Node.js
// sends: Loki
// to: http
// packages: pino@10.4.0 pino-loki@3.0.0
const pino = require('pino')
const transport = pino.transport({ target: 'pino-loki', options: { host: TO, batching: false, labels: { app: 'shop' } } })
const log = pino({ level: 'debug', name: 'shop.cart' }, transport)
for (const e of EVENTS) log[e.level](e.error ? { ...e.extra, err: e.error } : e.extra, e.msg)
end()
