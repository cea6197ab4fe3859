// client: winston 3.19.0 for Node.js, transports.Http
// sends: JSON at /api/logs
// to: http
// packages: winston@3.19.0
const winston = require('winston')
const levels = { fatal: 0, error: 1, warn: 2, info: 3, debug: 4 }
const log = winston.createLogger({ levels, level: 'debug', defaultMeta: { logger: 'shop.cart' },
  format: winston.format.combine(winston.format.errors({ stack: true }), winston.format.timestamp(), winston.format.json()),
  transports: [new winston.transports.Http({ host: HOST, port: PORT, path: '/api/logs' })] })
for (const e of EVENTS) e.error ? log.log(e.level, e.msg, { ...e.extra, error: e.error }) : log.log(e.level, e.msg, e.extra)
end()
