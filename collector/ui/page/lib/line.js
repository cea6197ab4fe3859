// Stored lines: parsed, taken apart and made fit to be shown.

/** An integer that a number of JavaScript cannot hold, as it is written. */
export class Big {
  /** @param {string} text */
  constructor(text) {
    this.text = text
  }

  toString() {
    return this.text
  }

  toJSON() {
    return Number(this.text)
  }
}

/** @type {any} */
const anyJSON = JSON

/** @param {string} text @returns {any} */
export function parseJSON(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text)
  return anyJSON.parse(text, (/** @type {string} */ _, /** @type {any} */ value, /** @type {{source?: string}} */ context) =>
    typeof value === 'number' && context?.source && context.source.length > 15 && String(value) !== context.source ? new Big(context.source) : value)
}

/** The lines' levels from the least severe on. */
export const severities = ['trace', 'debug', 'info', 'notice', 'warn', 'error', 'panic', 'fatal']

/** The class of a level: INFO+2 is a notice, ERROR+1 an error. @param {string} level */
export function severityOf(level) {
  const name = level.toLowerCase()
  if (name === 'info+2' || name === 'info+3') return 'notice'
  const base = name.replace(/[+-]\d+$/, '')
  return severities.includes(base) ? base : 'none'
}

/** A level as it is shown: INFO+2 has a name. @param {string} level */
export const levelName = (level) => level.toUpperCase() === 'INFO+2' ? 'NOTICE' : level

/** @param {string} raw @param {number} [offset] @returns {Line} */
export function parseLine(raw, offset = -1) {
  /** @type {Record<string, any>} */
  let object
  try {
    object = parseJSON(raw)
  } catch {
    object = { msg: raw }
  }
  const time = typeof object.time === 'string' ? object.time : ''
  const level = typeof object.level === 'string' ? object.level : ''
  return { raw, offset, object, time, ms: Date.parse(time), level, severity: severityOf(level), msg: text(object.msg ?? '') }
}

/** A line of an answer with offsets: {"offset":3,"line":{…}}. @param {string} row */
export function parseOffsetLine(row) {
  const found = /^\{"offset":(\d+),"line":/.exec(row)
  return found ? parseLine(row.slice(found[0].length, -1), Number(found[1])) : parseLine(row)
}

/** A value as one writes it. @param {any} value @returns {string} */
export function text(value) {
  if (typeof value === 'string') return value
  if (value instanceof Big || value === null || typeof value !== 'object') return String(value)
  return JSON.stringify(value)
}

const own = new Set(['time', 'level', 'msg', 'service', 'logger', 'source', 'trace_id', 'span_id', 'error', 'attrs'])

/** The line's fields by the names that expressions have for them. @param {Line} line @returns {[string, any][]} */
export function fieldsOf(line) {
  if (line.flat) return line.flat
  /** @type {[string, any][]} */
  const list = []
  for (const [name, value] of Object.entries(line.object)) {
    if (name !== 'attrs') flatten(list, name, value)
  }
  const { attrs } = line.object
  if (attrs && typeof attrs === 'object') {
    for (const [name, value] of Object.entries(attrs)) flatten(list, own.has(name) ? 'attrs.' + name : name, value)
  }
  line.flat = list
  return list
}

/** @param {[string, any][]} list @param {string} name @param {any} value */
function flatten(list, name, value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value) || value instanceof Big || list.length > 2e4) {
    list.push([name, value])
    return
  }
  for (const [key, inner] of Object.entries(value)) flatten(list, name + '.' + key, inner)
}

/** @param {Line} line @param {string} name @returns {any} */
export function fieldOf(line, name) {
  return fieldsOf(line).find(([known]) => known === name)?.[1]
}

// What would turn the direction of text, hide it, or control a terminal.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g

/** A text whose invisible characters show. @param {string} s */
export function visible(s) {
  return s.replace(hidden, (c) => {
    const code = c.charCodeAt(0)
    return code < 32 ? String.fromCharCode(0x2400 + code) : `‹${code.toString(16).toUpperCase().padStart(4, '0')}›`
  })
}

/** The beginning of a text, made visible. @param {string} s @param {number} most */
export function head(s, most) {
  return s.length <= most ? visible(s) : visible(s.slice(0, most)) + '…'
}

const elsewhere = new Set(['time', 'level', 'msg', 'service', 'error.stack', 'error.fingerprint', 'trace_id', 'span_id'])

/** What a row tells beside its message: the error and attributes. @param {Line} line @param {Set<string>} shown fields that have a column @param {number} room characters */
export function details(line, shown, room) {
  /** @type {[string, string][]} */
  const list = []
  for (const [name, value] of fieldsOf(line)) {
    if (elsewhere.has(name) || shown.has(name)) continue
    const short = head(text(value).slice(0, 100).replace(/\s+/g, ' '), 80)
    list.push([name, short])
    room -= name.length + short.length
    if (room < 0 || list.length >= 24) break
  }
  return list
}

/** Bytes for people. @param {number} n */
export function size(n) {
  const units = ['KiB', 'MiB', 'GiB', 'TiB']
  let unit = ''
  while (n >= 1024 && units.length) [n, unit] = [n / 1024, units.shift() ?? '']
  return unit ? `${n.toFixed(1)} ${unit}` : `${n} B`
}

const thousands = new Intl.NumberFormat('en-US') // to make one takes long

/** A count for people. @param {number} n */
export const count = (n) => thousands.format(n)

/** A count with three digits: 1.2 M. @param {number} n */
export function short(n) {
  if (Math.abs(n) < 1e4) return Number.isInteger(n) ? String(n) : String(Number(n.toPrecision(4)))
  for (const [unit, name] of /** @type {[number, string][]} */ ([[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])) {
    if (Math.abs(n) >= unit) return `${Number((n / unit).toPrecision(3))} ${name}`
  }
  return String(n)
}
