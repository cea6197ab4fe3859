// Lines as a list of any length, of rows of any height: only the rows in sight are in the document.

import { html, useState, useRef, useEffect, useLayoutEffect } from './html.js'
import { Row } from './row.js'

const lowest = 22 // pixels of a row, which all have unless they wrap
const extra = 8 // rows beyond each end
const settled = 150 // milliseconds after which what passed quicker than one reads is drawn whole
let seen = { top: 0, height: 800, width: 0 } // the size of the list before, which the next one has, too

/**
 * @typedef {object} ListProps
 * @property {Line[]} lines
 * @property {string} label
 * @property {number} cursor the row that keys have chosen, or -1; it is kept in sight when it changes
 * @property {Line | null} opened @property {(i: number) => void} onOpen
 * @property {string[]} columns @property {boolean} wrap @property {boolean} utc
 * @property {boolean} [date] whether rows have the day
 * @property {boolean} [follow] stay at the end
 * @property {(atEnd: boolean) => void} [onFollow] the reader has come to the end, or left it
 * @property {() => void} [onNearEnd]
 */

/** @param {ListProps} props */
export function LineList({ lines, label, cursor, opened, onOpen, columns, wrap, utc, date = true, follow = false, onFollow, onNearEnd }) {
  const count = lines.length, fixed = !wrap
  const keyOf = (/** @type {number} */ i) => lines[i]?.offset ?? i
  const box = useRef(/** @type {any} */ (null)), inner = useRef(/** @type {any} */ (null)) // elements, once it is drawn
  const known = useRef(/** @type {Map<number, number>} */ (new Map()))
  const anchor = useRef({ key: NaN, index: 0, top: 0, delta: 0 })
  const slots = useRef(0) // as many as there have been rows at once
  const left = useRef(-1e9) // when the reader turned the wheel away from the end
  const [view, setView] = useState({ ...seen, flying: false })
  const flight = useRef({ jumped: -1e9, timer: 0 })

  const tops = useRef(new Float64Array(1))
  if (!fixed) tops.current = offsets(count, keyOf, known.current)
  const topOf = (/** @type {number} */ i) => fixed ? i * lowest : tops.current[Math.min(i, count)] ?? 0
  const total = topOf(count)
  const top = follow ? Math.max(0, total - view.height) : view.top
  const beyond = view.flying ? 0 : extra
  const first = Math.max(0, indexAt(top, count, topOf) - beyond)
  const last = Math.min(count, indexAt(top + view.height, count, topOf) + 1 + beyond)

  const remember = () => {
    const el = box.current
    const at = indexAt(el.scrollTop, count, topOf)
    anchor.current = { key: at < count ? keyOf(at) : NaN, index: at, top: topOf(at), delta: el.scrollTop - topOf(at) }
  }
  const onScroll = () => {
    const el = box.current
    if (!el) return // the event was on its way when the list went
    remember()
    const now = performance.now(), far = fixed && !follow && Math.abs(el.scrollTop - view.top) > el.clientHeight
    const flying = far && now - flight.current.jumped < settled
    if (far) flight.current.jumped = now
    clearTimeout(flight.current.timer)
    if (flying) flight.current.timer = setTimeout(() => setView((old) => ({ ...old, flying: false })), settled)
    setView({ top: el.scrollTop, height: el.clientHeight, width: el.clientWidth, flying })
    const atEnd = el.scrollTop + el.clientHeight >= el.scrollHeight - 4
    if (!atEnd || now - left.current > 400) onFollow?.(atEnd)
    if (el.scrollTop + 2 * el.clientHeight >= el.scrollHeight) onNearEnd?.()
  }

  const onWheel = (/** @type {WheelEvent} */ event) => {
    const el = box.current
    if (event.deltaY >= 0 || el.scrollHeight <= el.clientHeight) return
    left.current = performance.now()
    onFollow?.(false)
  }

  useEffect(() => {
    const el = box.current
    const observer = new ResizeObserver(() => setView((old) => {
      seen = { top: 0, height: el.clientHeight, width: el.clientWidth }
      return old.height === seen.height && old.width === seen.width ? old : { ...seen, top: old.top, flying: false }
    }))
    observer.observe(el)
    return () => observer.disconnect()
  }, [])

  useLayoutEffect(() => known.current.clear(), [fixed, view.width])

  useLayoutEffect(() => {
    const el = box.current
    let changed = false
    if (!fixed) {
      for (let i = first; i < last; i++) {
        const now = inner.current.children[i - first]?.getBoundingClientRect().height ?? 0
        if (now > 0 && Math.abs((known.current.get(keyOf(i)) ?? -1) - now) > 0.5) {
          known.current.set(keyOf(i), now)
          changed = true
        }
      }
    }
    if (changed) setView((old) => ({ ...old }))
    if (follow) {
      el.scrollTop = el.scrollHeight
    } else if (!Number.isNaN(anchor.current.key)) {
      // What is read stays where it is when rows above it come, go, or turn out higher.
      const { key, index, top, delta } = anchor.current
      const at = index < count && keyOf(index) === key ? index : lines.findIndex((_, i) => keyOf(i) === key)
      if (at >= 0 && Math.abs(topOf(at) - top) > 1) el.scrollTop = topOf(at) + delta // to ask where it is would lay out the page
    }
  })

  useLayoutEffect(() => {
    const el = box.current
    if (cursor < 0 || cursor >= count) return
    const start = topOf(cursor), end = topOf(cursor + 1)
    if (start < el.scrollTop) el.scrollTop = start
    else if (end > el.scrollTop + el.clientHeight) el.scrollTop = Math.min(start, end - el.clientHeight)
    remember()
  }, [cursor])

  const rows = []
  if (!view.flying) slots.current = Math.max(slots.current, last - first)
  for (let i = first; i < last; i++) {
    const line = /** @type {Line} */ (lines[i])
    const slot = view.flying ? i - first : i % slots.current // for its key: rows out of sight leave their elements to others
    rows.push(Row({ line, index: i, slot, flying: view.flying, columns, wrap, utc, date, selected: i === cursor, open: line === opened, onOpen }))
  }
  return html`<div class="vlist" ref=${box} role="listbox" tabindex="0" aria-label=${label}
      aria-activedescendant=${cursor >= 0 ? 'row-' + cursor : undefined} onScroll=${onScroll}
      onWheel=${onWheel}>
    <div class="vlist-space" role="presentation" style=${{ height: total + 'px' }}>
      <div class="vlist-rows" role="presentation" ref=${inner} style=${{ transform: `translateY(${topOf(first)}px)` }}>${rows}</div>
    </div>
  </div>`
}

/** @param {number} count @param {(i: number) => number} keyOf @param {Map<number, number>} known heights */
function offsets(count, keyOf, known) {
  const tops = new Float64Array(count + 1)
  let sum = 0
  for (let i = 0; i < count; i++) {
    tops[i] = sum
    sum += known.get(keyOf(i)) ?? lowest
  }
  tops[count] = sum
  return tops
}

/** The row at a height, at most count. @param {number} y @param {number} count @param {(i: number) => number} topOf */
function indexAt(y, count, topOf) {
  let low = 0, high = count
  while (low < high) {
    const middle = (low + high) >> 1
    if (topOf(middle + 1) <= y) low = middle + 1
    else high = middle
  }
  return low
}
