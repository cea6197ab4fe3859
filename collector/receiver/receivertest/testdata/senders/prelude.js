const fs = require('fs'), net = require('net'), { Writable } = require('stream')
const { HOST, TO, COLLECTOR, DSN } = process.env, PORT = Number(process.env.PORT)

class DatabaseError extends Error { name = 'DatabaseError' }
class PaymentError extends Error { name = 'PaymentError' }

function connect () { throw new DatabaseError('connection refused') }
function pay () {
  try { connect() } catch (cause) { throw new PaymentError('no payment for order 7', { cause }) }
}
function failure () {
  try { pay() } catch (e) { return e }
}
function value (v) {
  if (v && v.bytes) return Buffer.from(v.bytes, 'base64')
  if (v && typeof v === 'object' && v.repeat) return v.repeat[0].repeat(v.repeat[1])
  return v
}

const EVENTS = JSON.parse(fs.readFileSync(process.env.EVENTS, 'utf8')).map((e) => {
  const attrs = Object.fromEntries(Object.entries(e.attrs).map(([k, v]) => [k, value(v)]))
  const trace = e.trace_id ? { trace_id: e.trace_id, span_id: e.span_id } : {}
  return { level: e.level, msg: value(e.msg), attrs, trace, extra: { ...attrs, ...trace }, error: e.exception ? failure() : undefined }
})

// What a program prints, as an agent passes it on.
function output () { return net.connect(PORT, HOST) }

// Waits until as many events are stored, for clients that do not.
async function stored (n = 12) {
  for (let i = 0; i < 200; i++) {
    const m = /^rollway_events_stored_total (\d+)/m.exec(await (await fetch(COLLECTOR + '/metrics')).text())
    if (m && Number(m[1]) >= n) break
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
function end () { stored().then(() => process.exit(0)) }

