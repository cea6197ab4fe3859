// client: tslog 4.9.3 for Node.js, type json
// sends: lines of JSON over TCP
// to: tcp
// packages: tslog@4.9.3
const { Logger } = require('tslog')
const to = output()
console.log = (line) => to.write(line + '\n')
const log = new Logger({ type: 'json', name: 'shop.cart', minLevel: 2 })
for (const e of EVENTS) log[e.level](e.msg, ...(e.error ? [e.extra, e.error] : [e.extra]))
end()
