// client: winston 3.19.0 for Node.js, an Error as the message
// sends: lines of JSON over TCP
// to: tcp
// packages: winston@3.19.0
const winston = require('winston')
const { errors, timestamp, json } = winston.format
const levels = { fatal: 0, error: 1, warn: 2, info: 3, debug: 4 }
const log = winston.createLogger({ levels, level: 'debug', defaultMeta: { logger: 'shop.cart' },
  format: winston.format.combine(errors({ stack: true, cause: true }), timestamp(), json()), transports: [new winston.transports.Stream({ stream: output() })] })
for (const e of EVENTS) e.error ? log.log({ level: e.level, message: e.error, ...e.extra }) : log.log(e.level, e.msg, e.extra)
end()
