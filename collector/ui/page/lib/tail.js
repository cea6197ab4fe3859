// Following lines as they arrive, at a pace that a browser can show.

import { ApiError, events, lines } from './api.js'
import { parseLine, parseOffsetLine } from './line.js'

/** @typedef {import('../types.js').Line} Line */

const turn = 50, slowTurn = 150 // milliseconds between the batches that are shown; slowTurn while there are too many
const pace = 500, burst = 2000 // lines that are shown, a second and at once; of more, some are
const before = 200 // lines that are shown at first

/**
 * @typedef {object} Batch
 * @property {Line[]} lines
 * @property {number} seen how many came
 * @property {number} skipped how many of them are not in lines
 */

/**
 * Evenly some of a list.
 * @template T
 * @param {T[]} list @param {number} n
 */
export function sample(list, n) {
  if (list.length <= n) return list
  return Array.from({ length: n }, (_, i) => /** @type {T} */ (list[Math.floor((i + 1) * list.length / n) - 1]))
}

/** A tail of the lines that match, which connects again until it is closed. */
export class Tail {
  /**
   * @param {string} filter
   * @param {{onBatch: (batch: Batch) => void, onStatus: (status: string, error?: unknown) => void, onGap: (text: string) => void}} to
   */
  constructor(filter, to) {
    this.filter = filter
    this.to = to
    this.control = new AbortController()
    /** @type {{id: string, data: string}[]} */
    this.waiting = []
    this.timer = 0
    this.room = burst
    this.flushed = performance.now()
    this.last = '' // id of the last event
    this.wanted = '' // lines without this text are not shown
    this.#run()
  }

  close() {
    this.control.abort()
    clearTimeout(this.timer)
  }

  async #run() {
    const { signal } = this.control
    /** @type {import('./api.js').Params} */
    let start = {}
    for (let wait = 500; !signal.aborted; wait = Math.min(10_000, wait * 2)) {
      try {
        if (!this.last && start.from === undefined) start = { from: await this.#recent() }
        await events('/api/tail', { q: this.filter, ...start }, {
          signal, headers: this.last ? { 'Last-Event-ID': this.last } : {},
          onOpen: () => this.to.onStatus('live'),
          onEvent: (event) => {
            wait = 500
            this.#take(event)
          },
        })
        if (!signal.aborted) this.to.onStatus('away')
      } catch (error) {
        if (signal.aborted) return
        const status = error instanceof ApiError ? error.status : 0
        this.to.onStatus(status >= 400 && status < 429 ? 'refused' : 'away', error)
        if (status >= 400 && status < 429) return
        if (error instanceof ApiError && error.retryAfter) wait = error.retryAfter * 1000
      }
      await new Promise((go) => setTimeout(go, wait))
    }
  }

  /** Shows the newest lines, and returns where the tail goes on. */
  async #recent() {
    /** @type {Line[]} */
    const list = []
    const headers = await lines('/api/query', { q: this.filter, since: '1h', last: before, offsets: true },
      { signal: this.control.signal, onLine: (row) => list.push(parseOffsetLine(row)) })
    if (list.length) this.to.onBatch({ lines: list, seen: 0, skipped: 0 })
    return headers.get('Rollway-End') ?? undefined
  }

  /** @param {{event: string, data: string, id: string}} event */
  #take({ event, data, id }) {
    if (id) this.last = id
    if (event === 'gap' || event === 'end') {
      const { missed, reason } = JSON.parse(data)
      if (event === 'gap') this.to.onGap(missed ? `${missed} records are gone: ${reason}` : reason)
      return
    }
    if (!data || event !== 'message') return
    this.waiting.push({ id, data })
    if (!this.timer) this.timer = setTimeout(() => this.#flush(), this.room < burst / 2 ? slowTurn : turn)
  }

  #flush() {
    this.timer = 0
    const all = this.waiting
    this.waiting = []
    const wanted = this.wanted.toLowerCase()
    const matching = wanted ? all.filter(({ data }) => data.toLowerCase().includes(wanted)) : all
    const now = performance.now()
    this.room = Math.min(burst, this.room + (now - this.flushed) / 1000 * pace)
    this.flushed = now
    const shown = sample(matching, Math.floor(this.room))
    this.room -= shown.length
    this.to.onBatch({ lines: shown.map(({ id, data }) => parseLine(data, id ? Number(id) : -1)), seen: all.length, skipped: matching.length - shown.length })
  }
}

/**
 * What is shown, and what waits while somebody reads. Both are bounded.
 */
export class Screen {
  constructor(limit = 5000, bytes = 32 << 20) {
    this.limit = limit
    this.bytes = bytes
    /** @type {Line[]} */
    this.shown = []
    /** @type {Line[]} */
    this.waiting = []
    this.lost = 0 // lines that waited and had no room
  }

  /** @param {Line[]} lines @param {boolean} hold whether they wait */
  add(lines, hold) {
    const list = hold ? this.waiting : this.shown
    for (const line of lines) list.push(line)
    const gone = trim(list, this.limit, this.bytes)
    if (hold) this.lost += gone
  }

  /** Shows what waits. */
  release() {
    const { waiting, lost } = this
    this.waiting = []
    this.lost = 0
    if (lost) this.shown = []
    this.add(waiting, false)
  }

  /** How many lines came while somebody read. */
  get held() {
    return this.waiting.length + this.lost
  }
}

/** Drops the oldest of a list that is too long, and returns how many. @param {Line[]} list @param {number} limit @param {number} bytes */
function trim(list, limit, bytes) {
  let gone = Math.max(0, list.length - limit), sum = 0
  for (let i = list.length - 1; i >= gone; i--) {
    sum += list[i]?.raw.length ?? 0
    if (sum > bytes && i < list.length - 1) gone = i + 1
  }
  list.splice(0, gone)
  return gone
}
