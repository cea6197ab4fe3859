// client: winston-elasticsearch 0.19.0 for Node.js
// sends: Elasticsearch's bulk API
// to: http
// packages: winston@3.19.0 winston-elasticsearch@0.19.0
const winston = require('winston')
const { ElasticsearchTransport } = require('winston-elasticsearch')
const levels = { fatal: 0, error: 1, warn: 2, info: 3, debug: 4 }
const transport = new ElasticsearchTransport({ level: 'debug', clientOpts: { node: TO }, flushInterval: 200, source: 'shop' })
const log = winston.createLogger({ levels, level: 'debug', transports: [transport] })
for (const e of EVENTS) e.error ? log.log(e.level, e.msg, { ...e.extra, error: e.error }) : log.log(e.level, e.msg, e.extra)
transport.flush().then(end)
