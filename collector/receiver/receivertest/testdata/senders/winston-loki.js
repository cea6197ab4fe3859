// client: winston-loki 6.1.7 for Node.js
// sends: Loki
// to: http
// packages: winston@3.19.0 winston-loki@6.1.7
const winston = require('winston')
const LokiTransport = require('winston-loki')
const levels = { fatal: 0, error: 1, warn: 2, info: 3, debug: 4 }
const transport = new LokiTransport({ host: TO, labels: { app: 'shop' }, json: true, batching: true, interval: 1, format: winston.format.json() })
const log = winston.createLogger({ levels, level: 'debug', transports: [transport] })
for (const e of EVENTS) e.error ? log.log(e.level, e.msg, { ...e.extra, error: e.error }) : log.log(e.level, e.msg, e.extra)
setTimeout(() => transport.flush().then(end), 100)
