// client: winston-log2gelf 2.4.1 for Node.js
// sends: GELF over TCP
// to: gelf-tcp
// packages: winston-log2gelf@2.4.1 winston@3.19.0
const winston = require('winston')
const Log2gelf = require('winston-log2gelf')
const levels = { fatal: 0, error: 1, warn: 2, info: 3, debug: 4 }
const log = winston.createLogger({ levels, level: 'debug', transports: [new Log2gelf({ hostname: 'web-1', host: HOST, port: PORT, protocol: 'tcp', level: 'debug' })] })
for (const e of EVENTS) e.error ? log.log(e.level, e.msg, { ...e.extra, error: e.error }) : log.log(e.level, e.msg, e.extra)
end()
