// client: winston-splunk-httplogger 3.1.8 for Node.js
// sends: Splunk's HTTP Event Collector
// to: http
// packages: winston-splunk-httplogger@3.1.8 winston@3.19.0
const winston = require('winston')
const SplunkStreamEvent = require('winston-splunk-httplogger')
const levels = { fatal: 0, error: 1, warn: 2, info: 3, debug: 4 }
const log = winston.createLogger({ levels, level: 'debug', transports: [new SplunkStreamEvent({ level: 'debug', splunk: { token: 'secret', url: TO } })] })
for (const e of EVENTS) e.error ? log.log(e.level, e.msg, { ...e.extra, error: e.error }) : log.log(e.level, e.msg, e.extra)
end()
