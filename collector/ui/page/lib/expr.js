// The expression as text: where its parts are, what may come next, and terms that are added
// and taken away. docs/QUERY.md has the grammar; the collector alone decides what is valid.

import { Big } from './line.js'

/** @typedef {{kind: 'space'|'string'|'operator'|'paren'|'pipe'|'comma'|'word', text: string, start: number, end: number}} Token */

const tokenPattern = /(?<space>\s+)|(?<string>(?:i|w|iw|wi|re)?"(?:\\.|[^"\\])*"?)|(?<operator>!=~|=~|!=|!~|<=|>=|[=~<>])|(?<paren>[()])|(?<pipe>\|)|(?<comma>,)|(?<word>(?:(?!!=|!~|"|\|)[^\s()=~<>,])+|.)/gsy
const keywords = /^(and|or|not|in|AND|OR|NOT|IN)$/

/** @param {string} text @returns {Token[]} */
export function tokens(text) {
  const list = []
  for (const found of text.matchAll(tokenPattern)) {
    const kind = Object.keys(found.groups ?? {}).find((name) => found.groups?.[name] !== undefined)
    list.push(/** @type {Token} */ ({ kind, text: found[0], start: found.index, end: found.index + found[0].length }))
  }
  return list
}

/** What a token is to the eye. @param {Token[]} list @param {number} i */
export function role(list, i) {
  const token = list[i]
  if (!token) return ''
  if (token.kind === 'word' && keywords.test(token.text)) return 'keyword'
  if (token.kind === 'word' || token.kind === 'string') {
    const next = list.slice(i + 1).find((t) => t.kind !== 'space')
    if (next?.kind === 'operator') return 'field'
    const before = list.slice(0, i).reverse().find((t) => t.kind !== 'space')
    if (before?.kind === 'pipe') return 'keyword'
  }
  return token.kind
}

/** The filter and the pipes of an expression. @param {string} q */
export function splitPipes(q) {
  const pipe = tokens(q).find((t) => t.kind === 'pipe')
  return pipe ? { filter: q.slice(0, pipe.start).trim(), pipes: q.slice(pipe.start).trim() } : { filter: q.trim(), pipes: '' }
}

/** The name of a field, or a text, as an expression has it. @param {string} text */
export const nameOf = (text) => /^[\p{L}_][\p{L}\p{N}_.\-/@:]*$/u.test(text) && !keywords.test(text) ? text : quote(text)

/** A value as an expression has it. @param {any} value */
export function valueOf(value) {
  if (typeof value === 'string') return nameOf(value)
  return typeof value === 'object' && value !== null && !(value instanceof Big) ? quote(JSON.stringify(value)) : String(value)
}

/** A text in quotes, with the escapes of expressions. @param {string} text */
export const quote = (text) => JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))

/**
 * The term that finds lines whose field has the value, or those that do not.
 * A value null is for lines without the field.
 * @param {string} field @param {any} value @param {boolean} [exclude]
 */
export function term(field, value, exclude = false) {
  if (value === null || value === undefined) return nameOf(field) + (exclude ? '=*' : '!=*')
  return nameOf(field) + (exclude ? '!=' : '=') + valueOf(value)
}

/** Where the tokens of a term are in an expression, outside parentheses. @param {string} q @param {string} wanted */
function find(q, wanted) {
  const list = tokens(q).filter((t) => t.kind !== 'space')
  const parts = tokens(wanted).filter((t) => t.kind !== 'space').map((t) => t.text)
  let depth = 0
  for (let i = 0; i + parts.length <= list.length; i++) {
    const t = /** @type {Token} */ (list[i])
    if (t.kind === 'pipe') return null
    if (t.text === '(') depth++
    if (t.text === ')') depth--
    const negated = /^(not|NOT|or|OR)$/
    if (depth > 0 || !parts.every((text, k) => list[i + k]?.text === text)) continue
    const before = list[i - 1], after = list[i + parts.length]
    if (before && (negated.test(before.text) || before.kind === 'operator')) continue
    if (after && (/^(or|OR)$/.test(after.text) || after.kind === 'operator')) continue
    const and = before && /^(and|AND)$/.test(before.text)
    return { start: and ? before.start : t.start, end: list[i + parts.length - 1]?.end ?? t.end }
  }
  return null
}

/** Whether the expression has the term. @param {string} q @param {string} wanted */
export const hasTerm = (q, wanted) => find(q, wanted) !== null

/** @param {string} q @param {string} wanted */
function removeTerm(q, wanted) {
  const at = find(q, wanted)
  if (!at) return q
  return (q.slice(0, at.start).trimEnd() + ' ' + q.slice(at.end).trimStart()).trim().replace(/^(and|AND)\s+/, '')
}

/**
 * The expression with a term more. What it had of the opposite goes; the same term again
 * takes it away.
 * @param {string} q @param {string} wanted @param {string} [opposite]
 */
export function toggleTerm(q, wanted, opposite = '') {
  if (hasTerm(q, wanted)) return removeTerm(q, wanted)
  if (opposite) q = removeTerm(q, opposite)
  const { filter, pipes } = splitPipes(q)
  const either = tokens(filter).some((t) => t.kind === 'word' && /^(or|OR)$/.test(t.text))
  return [either ? `(${filter})` : filter, wanted, pipes].filter(Boolean).join(' ')
}

/** @param {string} q @param {string} field @param {any} value @param {boolean} [exclude] */
export function toggleValue(q, field, value, exclude = false) {
  return toggleTerm(q, term(field, value, exclude), term(field, value, !exclude))
}

/**
 * What may be completed before the caret.
 * @param {string} q @param {number} caret
 * @returns {{kind: 'field'|'value'|'pipe', field: string, prefix: string, start: number, end: number}}
 */
export function completion(q, caret) {
  const list = tokens(q)
  const at = list.findIndex((t) => t.start < caret && caret <= t.end && (t.kind === 'word' || t.kind === 'string'))
  const token = list[at]
  const start = token?.start ?? caret, end = token?.end ?? caret
  const prefix = q.slice(start, caret)
  const before = (token ? list.slice(0, at) : list.filter((t) => t.end <= caret)).filter((t) => t.kind !== 'space')
  const last = before[before.length - 1]
  if (last?.kind === 'pipe') return { kind: 'pipe', field: '', prefix, start, end }
  if (last?.kind === 'operator') return { kind: 'value', field: unquote(before[before.length - 2]?.text ?? ''), prefix, start, end }
  const list_ = before.map((t) => t.text)
  const open = list_.lastIndexOf('(')
  if (open >= 2 && !list_.slice(open).includes(')') && /^(in|IN)$/.test(list_[open - 1] ?? '')) {
    const name = /^(not|NOT)$/.test(list_[open - 2] ?? '') ? list_[open - 3] : list_[open - 2]
    return { kind: 'value', field: unquote(name ?? ''), prefix, start, end }
  }
  return { kind: 'field', field: '', prefix: prefix.replace(/^-/, ''), start: prefix.startsWith('-') ? start + 1 : start, end }
}

/** @param {string} text */
export function unquote(text) {
  if (!text.startsWith('"')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text.replace(/^"|"$/g, '')
  }
}

/**
 * The term that finds messages of a pattern: a regular expression, or, of a long pattern, its
 * longest texts.
 * @param {string} pattern @param {boolean} [exclude]
 */
export function patternTerm(pattern, exclude = false) {
  const pieces = pattern.split(/"<str>"|<(?:num|hex|id|uuid|ip|time|long)>/)
  if (pattern.length <= 240) {
    if (pieces.length === 1) return term('msg', pattern, exclude)
    const escaped = pieces.map((text) => text.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&'))
    // A backslash is the expression's own between these quotes.
    return `msg${exclude ? '!=~' : '=~'}"(?s)^${escaped.join('.+').replace(/"/g, '\\"').replace(/\n/g, '\\n')}$"`
  }
  const longest = pieces.map((text) => text.trim()).filter(Boolean).sort((a, b) => b.length - a.length).slice(0, 3)
  const terms = longest.map((text) => 'msg~' + quote(text.slice(0, 400)))
  return exclude ? `not (${terms.join(' ')})` : terms.join(' ')
}

/** The index in UTF-16 of a column, which counts characters from 1. @param {string} q @param {number} column */
export function columnIndex(q, column) {
  let index = 0, left = column - 1
  for (const c of q) {
    if (left-- <= 0) break
    index += c.length
  }
  return index
}
