// client: bunyan 2.0.5 for Node.js
// sends: lines of JSON over TCP
// to: tcp
// packages: bunyan@2.0.5
const bunyan = require('bunyan')
const log = bunyan.createLogger({ name: 'shop.cart', level: 'debug', stream: output(), serializers: bunyan.stdSerializers })
for (const e of EVENTS) log[e.level](e.error ? { ...e.extra, err: e.error } : e.extra, '%s', e.msg)
end()
