// What may come next in an expression: fields and values that lines have, and pipes.

import { stream } from './api.js'
import { completion, nameOf, quote, splitPipes, unquote, valueOf } from './expr.js'
import { count, severities, text } from './line.js'
import { keep, recall } from './ui.js'

/** @typedef {{text: string, note: string, start: number, end: number, again?: boolean}} Suggestion again: more may follow at once */

const patience = 1500 // milliseconds of searching; what was found until then is offered
const looked = 2000 // lines that tell what fields there are
const fresh = 60_000

/** @type {Map<string, {at: number, answer: Promise<any>, end: () => void}>} end ends a search that is under way */
const cache = new Map()

/** The figures of an endpoint, or of a part of the lines. @param {string} path @param {import('./api.js').Params} params @returns {Promise<any>} */
function within(path, params) {
  const key = path + JSON.stringify({ ...params, since: String(params.since).slice(0, 16), until: String(params.until).slice(0, 16) })
  const held = cache.get(key)
  if (held && Date.now() - held.at < fresh) return held.answer
  quit() // what is typed now is not what was
  const control = new AbortController()
  /** @type {any} */
  let part = null
  const timer = setTimeout(() => control.abort(), patience)
  const answer = stream(path, params, { signal: control.signal, onPartial: (data) => { part = data } })
    .catch(() => {
      if (!part && cache.get(key) === mine) cache.delete(key) // who asks again may get an answer
      return part
    }).finally(() => { clearTimeout(timer), mine.end = () => {} })
  if (cache.size > 200) cache.clear()
  const mine = { at: Date.now(), answer, end: () => { cache.delete(key), control.abort() } }
  cache.set(key, mine)
  return answer
}

/** @type {[string, string][]} */
const pipes = [
  ['stats count() by level, time(auto)', 'lines by level over time'], ['stats count() by ', 'count by a field'],
  ['stats quantile(0.5, x) as p50, quantile(0.99, x) as p99 by time(auto)', 'a latency, for example'],
  ['top 10 ', 'the most frequent values'], ['patterns', 'messages by pattern'], ['sort -', 'in another order'],
  ['fields time, service, msg', 'these columns alone'], ['parse "<method> <path> took <ms:number>"', 'fields out of a text'], ['limit 20', 'the first rows'],
]

/** @type {[string, string][]} */
const ownFields = [['level', 'level>=error, for example'], ['service', ''], ['msg', 'msg~"text"'], ['logger', ''], ['trace_id', ''], ['error', 'error=* has one'], ['time', '']]

/**
 * @param {string} q @param {number} caret @param {TimeRange} range @param {string[]} recent expressions of before
 * @returns {Promise<Suggestion[]>}
 */
export async function suggestions(q, caret, range, recent) {
  if (!q.trim()) return recent.slice(0, 8).map((text) => ({ text, note: 'asked before', start: 0, end: q.length }))
  const { kind, field, prefix, start, end } = completion(q, caret)
  const wanted = unquote(prefix).toLowerCase()
  const at = { start, end }
  if (kind === 'pipe') return pipes.filter(([p]) => p.toLowerCase().startsWith(wanted)).map(([text, note]) => ({ text, note, ...at }))
  if (kind === 'value') return values(field, wanted, range, at)
  if (!wanted) return []
  const inFilter = caret <= splitPipes(q).filter.length + q.length - q.trimStart().length
  const answer = await within('/api/fields', { ...range.params, last: looked })
  /** @type {Map<string, string>} */
  const notes = new Map(ownFields)
  for (const f of answer?.fields ?? []) notes.set(f.name, `${count(f.values)} values in ${count(f.count)} of the newest ${count(looked)} lines`)
  return [...notes].filter(([name]) => name.toLowerCase().includes(wanted))
    .sort(([a], [b]) => Number(b.toLowerCase().startsWith(wanted)) - Number(a.toLowerCase().startsWith(wanted)) || a.length - b.length)
    .slice(0, 12).map(([name, note]) => ({ text: nameOf(name) + (inFilter ? '=' : ''), note, ...at, again: inFilter }))
}

/**
 * @param {string} field @param {string} wanted @param {TimeRange} range @param {{start: number, end: number}} at
 * @returns {Promise<Suggestion[]>}
 */
async function values(field, wanted, range, at) {
  if (field === 'level') return severities.filter((s) => s.startsWith(wanted)).map((text) => ({ text, note: '', ...at }))
  if (field === 'time' || !field || field.includes(',')) return []
  const q = wanted.length > 1 ? `${nameOf(field)}~i${quote(wanted)}` : nameOf(field) + '=*'
  const answer = await within('/api/facets', { ...range.params, field, q, limit: 50 })
  /** @type {Facet[]} */
  const facets = answer?.facets ?? []
  return (facets[0]?.values ?? []).filter(({ value }) => value !== null && text(value).toLowerCase().includes(wanted) && text(value).length < 200)
    .slice(0, 12).map(({ value, count: n }) => ({ text: valueOf(value), note: count(n), ...at }))
}

/** @returns {string[]} */
export function recentExpressions() {
  try {
    return JSON.parse(recall('recent') || '[]')
  } catch {
    return []
  }
}

/** @param {string} q */
export const rememberExpression = (q) => q && keep('recent', JSON.stringify([q, ...recentExpressions().filter((old) => old !== q)].slice(0, 20)))

/** Ends what is searched for suggestions: nobody waits for them. */
export const quit = () => cache.forEach(({ end }) => end())

/** Forgets what one person has asked, before another does. */
export function forget() {
  cache.clear()
  keep('recent', '')
}
