// Times and ranges of time, for the API and for people.

/** @type {[string, string][]} */
export const presets = [
  ['5m', 'Last 5 minutes'], ['15m', 'Last 15 minutes'], ['1h', 'Last hour'], ['6h', 'Last 6 hours'],
  ['1d', 'Last 24 hours'], ['7d', 'Last 7 days'], ['30d', 'Last 30 days'], ['all', 'All time'],
]

/** @type {Record<string, number>} */
const units = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 }

/** The milliseconds of 15m or 1d12h; NaN for anything else. @param {string} text */
export function duration(text) {
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d|w))+$/.test(text)) return NaN
  let sum = 0
  for (const [, number, unit] of text.matchAll(/([\d.]+)(ms|[smhdw])/g)) sum += Number(number) * (units[unit ?? ''] ?? NaN)
  return sum
}

/** A time of the URL in milliseconds; null: without a limit. @param {string} text @param {number} now */
function instant(text, now) {
  if (!text || text === 'all') return null
  const ago = duration(text.replace(/^-/, ''))
  if (!Number.isNaN(ago)) return now - ago
  const ms = text === 'now' ? now : Date.parse(text)
  return Number.isNaN(ms) ? null : ms
}

/**
 * The range of a run. All of its requests have the same times.
 * @param {string} since @param {string} until @param {number} now
 * @returns {TimeRange}
 */
export function resolve(since, until, now) {
  const from = instant(since, now), to = instant(until, now)
  /** @type {TimeRange['params']} */
  const params = {}
  // What cannot be read here goes to the collector as it is, which says what is wrong.
  if (since && since !== 'all') params.since = from === null || /[^\dwdhms-]/.test(since) ? since : iso(from)
  if (until) params.until = to === null || /[^\dwdhms-]/.test(until) ? until : iso(to)
  return { since, until, from, to: to ?? now, params }
}

/** @param {number} ms */
export const iso = (ms) => new Date(ms).toISOString()

/** 2026-05-28 12:40:00.250 in the chosen zone. @param {number} ms @param {boolean} utc */
export const stamp = (ms, utc) =>
  new Date(utc ? ms : ms - new Date(ms).getTimezoneOffset() * 6e4).toJSON()?.replace('T', ' ').slice(0, -1) ?? '–'

/** 2026-05-28 12:40:00, or without seconds if they are zero. @param {number} ms @param {boolean} utc */
export const shortStamp = (ms, utc) => stamp(ms, utc).slice(0, 19).replace(/:00$/, '')

/** A time as a field of kind datetime-local takes it. @param {number} ms @param {boolean} utc */
export const toInput = (ms, utc) => stamp(ms, utc).slice(0, 19).replace(' ', 'T')

/** @param {string} text @param {boolean} utc */
export function fromInput(text, utc) {
  const ms = Date.parse(utc ? text + 'Z' : text)
  return Number.isNaN(ms) ? '' : iso(ms)
}

/** The range for people. @param {string} since @param {string} until @param {boolean} utc */
export function rangeLabel(since, until, utc) {
  const preset = presets.find(([value]) => value === since)
  if (preset && !until) return preset[1]
  /** @param {string} text */
  const one = (text) => {
    if (!text || text === 'all') return '…'
    const ms = Date.parse(text)
    return Number.isNaN(ms) ? text : shortStamp(ms, utc)
  }
  if (!until && !Number.isNaN(duration(since))) return 'Last ' + since
  return `${one(since)} – ${until ? one(until) : 'now'}`
}

/** 3 min @param {number} ms */
export function lasting(ms) {
  for (const [name, unit] of /** @type {[string, number][]} */ ([['years', 31557600e3], ['d', 864e5], ['h', 36e5], ['min', 6e4], ['s', 1e3]])) {
    if (Math.abs(ms) >= unit) return `${Math.round(ms / unit * 10) / 10} ${name}`.replace(/(\d\d)\.\d/, '$1')
  }
  return `${Math.round(ms)} ms`
}

/** 3 min ago @param {number} ms @param {number} now */
export function ago(ms, now) {
  if (Number.isNaN(ms)) return '–'
  const past = now - ms
  return Math.abs(past) < 1000 ? 'now' : past > 0 ? lasting(past) + ' ago' : 'in ' + lasting(-past)
}

/** The smallest time after one with nanoseconds. @param {string} time RFC 3339, UTC */
export function justAfter(time) {
  const found = /^(.*:\d\d)(?:\.(\d+))?Z$/.exec(time)
  if (!found) return time
  const nanos = Number((found[2] ?? '').padEnd(9, '0')) + 1
  if (nanos < 1e9) return `${found[1]}.${String(nanos).padStart(9, '0')}Z`
  return iso(Date.parse(found[1] + 'Z') + 1000)
}
