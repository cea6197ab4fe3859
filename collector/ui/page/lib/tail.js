// Following lines as they arrive, at a pace that a browser can show.

import { ApiError, events, lines, seen } from './api.js'
import { count, parseLine, parseOffsetLine } from './line.js'

const turn = 50, slowTurn = 150 // milliseconds between the batches that are shown; slowTurn while there are too many
const pace = 500, burst = 2000 // lines that are shown, a second and at once; of more, some are
const before = 200 // lines that are shown at first
const behind = 20_000 // lines that are caught up with; of more, the newest are shown
const silence = 40_000 // milliseconds: the collector says something every 15 s
const unseen = 60_000 // milliseconds: a page that nobody sees takes no connection, of which a browser has six

/**
 * @typedef {object} Batch
 * @property {Line[]} lines of all that came, some
 * @property {Line[]} found of those with the wanted text, some
 * @property {number} seen how many came
 * @property {number} skipped how many that were wanted are not in found
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

/** Whether a line has a text, in either case. @param {string} raw @param {string} wanted */
const has = (raw, wanted) => raw.toLowerCase().includes(wanted.toLowerCase())

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
    /** @type {{id: string, data: string, line?: Line}[]} */
    this.waiting = []
    this.timer = 0
    this.room = burst
    this.flushed = performance.now()
    this.next = -1 // offset of the line that comes next, once that is known
    this.wanted = '' // a text
    this.#run()
  }

  close() {
    this.control.abort()
    clearTimeout(this.timer)
  }

  async #run() {
    const { signal } = this.control
    for (let wait = 500; !signal.aborted; wait = Math.min(10_000, wait * 2)) {
      await seen()
      const attempt = new AbortController(), quit = () => attempt.abort()
      let timer = setTimeout(quit, silence), hidden = 0
      const heard = () => {
        clearTimeout(timer)
        timer = setTimeout(quit, silence)
        hidden = globalThis.document?.hidden ? hidden || performance.now() : 0
        if (hidden && performance.now() - hidden > unseen) quit()
      }
      const options = { signal: AbortSignal.any([signal, attempt.signal]) }
      try {
        const start = await this.#start(options)
        await events('/api/tail', { q: this.filter, ...start }, {
          ...options, onOpen: () => this.to.onStatus('live'),
          onEvent: (event) => {
            wait = 500
            heard()
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
      } finally {
        clearTimeout(timer)
      }
      await new Promise((go) => setTimeout(go, wait))
    }
  }

  /**
   * Where the tail goes on: after what came last. At first, and when too much came since, the newest
   * lines are shown before.
   * @param {import('./api.js').Options} options
   * @returns {Promise<import('./api.js').Params>}
   */
  async #start(options) {
    /** @type {Line[]} */
    const list = []
    const headers = await lines('/api/query', { q: this.filter, since: '1h', last: before, offsets: true }, { ...options, onLine: (row) => list.push(parseOffsetLine(row)) })
    const end = Number(headers.get('Rollway-End') ?? -1) // a tenant is not told
    const missed = this.next < 0 || end < 0 ? 0 : end - this.next
    if (this.next < 0 || missed < 0 || missed > behind) {
      if (missed) this.to.onGap(missed < 0 ? 'The journal is not the one of before: here are its newest lines.' : `${count(missed)} lines were stored while this page was away. Search has them; here are the newest.`)
      this.next = end < 0 && list.length ? (list[list.length - 1]?.offset ?? 0) + 1 : end
      this.to.onBatch({ lines: list, found: list.filter((l) => has(l.raw, this.wanted)), seen: 0, skipped: 0 })
    }
    return this.next < 0 ? { since: '1h' } : { from: this.next }
  }

  /** @param {{event: string, data: string, id: string}} event */
  #take({ event, data, id }) {
    if (id) this.next = Number(id) + 1
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
    const matching = this.wanted ? all.filter(({ data }) => has(data, this.wanted)) : all
    const now = performance.now()
    this.room = Math.min(burst, this.room + (now - this.flushed) / 1000 * pace)
    this.flushed = now
    const some = sample(all, Math.floor(this.room)), found = this.wanted ? sample(matching, Math.floor(this.room)) : some
    this.room -= Math.max(some.length, found.length)
    /** @param {(typeof all)[0]} event */
    const line = (event) => event.line ??= parseLine(event.data, event.id ? Number(event.id) : -1)
    this.to.onBatch({ lines: some.map(line), found: found.map(line), seen: all.length, skipped: matching.length - found.length })
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

  /** A screen with those lines of it that have a text. @param {string} wanted */
  having(wanted) {
    const screen = new Screen(this.limit, this.bytes)
    screen.shown = this.shown.filter((l) => has(l.raw, wanted))
    screen.waiting = this.waiting.filter((l) => has(l.raw, wanted))
    return screen
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
