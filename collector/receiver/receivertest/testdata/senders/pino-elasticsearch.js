// client: pino-elasticsearch 9.0.0 for Node.js
// sends: Elasticsearch's bulk API
// to: http
// packages: pino-elasticsearch@9.0.0 pino@10.4.0
const to = require('pino-elasticsearch')({ index: 'logs-shop-default', node: TO, esVersion: 8, opType: 'create', flushBytes: 1e6 })
const log = require('pino')({ level: 'debug', name: 'shop.cart' }, to)
for (const e of EVENTS) log[e.level](e.error ? { ...e.extra, err: e.error } : e.extra, e.msg)
to.end()
end()
