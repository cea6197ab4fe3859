// client: splunk-logging 0.11.1 for Node.js
// sends: Splunk's HTTP Event Collector
// to: http
// packages: splunk-logging@0.11.1
const { Logger } = require('splunk-logging')
const log = new Logger({ token: 'secret', url: TO, maxBatchCount: 0 })
for (const e of EVENTS) log.send({ message: { msg: e.msg, logger: 'shop.cart', ...e.extra, ...(e.error ? { error: e.error } : {}) }, severity: e.level, metadata: { time: Date.now() / 1000 } })
log.flush(end)
