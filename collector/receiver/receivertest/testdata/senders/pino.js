// client: pino 10.4.0 for Node.js
// sends: lines of JSON over TCP
// to: tcp
// packages: pino@10.4.0
const log = require('pino')({ level: 'debug', name: 'shop.cart' }, output())
for (const e of EVENTS) log[e.level](e.error ? { ...e.extra, err: e.error } : e.extra, e.msg)
end()
