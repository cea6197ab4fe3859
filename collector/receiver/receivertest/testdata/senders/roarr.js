// client: roarr 7.21.1 for Node.js
// sends: lines of JSON over TCP
// to: tcp
// packages: roarr@7.21.1 serialize-error@8.1.0
process.env.ROARR_LOG = 'true'
const { Roarr, ROARR } = require('roarr')
const { serializeError } = require('serialize-error')
const to = output()
ROARR.write = (line) => to.write(line + '\n')
const log = Roarr.child({ namespace: 'shop.cart' })
for (const e of EVENTS) log[e.level](e.error ? { ...e.extra, error: serializeError(e.error) } : e.extra, '%s', e.msg)
end()
