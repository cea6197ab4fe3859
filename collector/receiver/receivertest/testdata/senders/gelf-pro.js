// client: gelf-pro 1.4.0 for Node.js
// sends: GELF over UDP, zlib, in chunks
// to: gelf-udp
// packages: gelf-pro@1.4.0
const log = require('gelf-pro')
log.setConfig({ adapterName: 'udp', adapterOptions: { host: HOST, port: PORT }, fields: { logger: 'shop.cart' } })
const names = { warn: 'warning', fatal: 'critical' }
const send = (i) => {
  if (i === EVENTS.length) return end()
  const e = EVENTS[i]
  const extra = e.error ? { ...e.extra, exception: e.error.stack } : e.extra
  log[names[e.level] || e.level](e.msg, extra, () => send(i + 1))
}
send(0)
