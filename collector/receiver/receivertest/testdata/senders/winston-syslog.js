// client: winston-syslog 2.7.1 for Node.js
// sends: syslog over TCP
// to: syslog-tcp
// packages: winston-syslog@2.7.1 winston@3.19.0
const winston = require('winston')
const { Syslog } = require('winston-syslog')
const levels = { emerg: 0, alert: 1, crit: 2, error: 3, warning: 4, notice: 5, info: 6, debug: 7 }
const names = { warn: 'warning', fatal: 'emerg' }
const log = winston.createLogger({ levels, level: 'debug', format: winston.format.json(),
  transports: [new Syslog({ host: HOST, port: PORT, protocol: 'tcp4', type: '5424', app_name: 'shop', localhost: 'web-1', eol: '\n' })] })
for (const e of EVENTS) log.log(names[e.level] || e.level, e.msg, e.error ? { ...e.extra, error: e.error.stack } : e.extra)
end()
