// Requests to the collector that serves the page.

/** An answer that is an error, with what the collector says. */
export class ApiError extends Error {
  /**
   * @param {number} status 0: no answer
   * @param {string} message
   * @param {number} [column] of the expression, from 1; 0: none
   * @param {number} [retryAfter] seconds
   */
  constructor(status, message, column = 0, retryAfter = 0) {
    super(message)
    this.status = status
    this.column = column
    this.retryAfter = retryAfter
  }
}

/** Why what the reader has stopped was aborted. */
export const halted = new Error('The search was stopped.')

/** @typedef {{signal?: AbortSignal, method?: string, body?: unknown, headers?: Record<string, string>, priority?: RequestPriority, patient?: boolean}} Options patient: waits for its turn where the collector is busy */
/** @typedef {Record<string, string | number | boolean | null | undefined>} Params */

/** Called when the collector wants to know who asks. */
export const refused = { listener: () => {} }

const tries = 5, longest = 10 // of a patient request, and seconds that it is told to wait for one of them

/** How many requests wait for their turn, and who is told. */
export const turns = { waiting: 0, listener: (/** @type {number} */ _) => {} }

/** @param {number} ms @param {AbortSignal} [signal] */
async function turn(ms, signal) {
  signal?.throwIfAborted()
  turns.listener(++turns.waiting)
  await new Promise((go) => {
    setTimeout(go, ms)
    signal?.addEventListener('abort', go, { once: true })
  })
  turns.listener(--turns.waiting)
  signal?.throwIfAborted()
}

/** Waits until somebody sees the page: until then no view asks. */
export async function seen() {
  while (globalThis.document?.hidden) await new Promise((go) => document.addEventListener('visibilitychange', go, { once: true }))
}

/**
 * The URL of an endpoint. It is relative, so that a proxy may serve the collector under a path.
 * @param {string} path @param {Params} [params]
 */
export function endpoint(path, params = {}) {
  const url = new URL('..' + path, location.href.replace(/[#?].*/, ''))
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== false) url.searchParams.set(name, String(value))
  }
  return url.href
}

/**
 * Asks, and throws what is not an answer.
 * @param {string} path @param {Params} [params] @param {Options} [options]
 * @returns {Promise<Response>}
 */
export async function ask(path, params, options = {}) {
  const { signal, method = 'GET', body, priority, patient } = options
  const headers = { 'Rollway-Page': '1', ...options.headers }
  /** @type {RequestInit} */
  const init = { signal, method, headers, credentials: 'same-origin', priority }
  if (body !== undefined) init.body = typeof body === 'string' ? body : JSON.stringify(body)
  let response, text = '', after = 0
  for (let n = 1; ; n++) {
    try {
      response = await fetch(endpoint(path, params), init)
    } catch (err) {
      if (signal?.aborted) throw err
      throw new ApiError(0, 'The collector does not answer. Is it running?')
    }
    if (response.ok) return response
    text = await response.text()
    after = Number(response.headers.get('Retry-After') ?? 0)
    if (!patient || n === tries || !(after > 0 && after <= longest)) break
    await turn(Math.min(longest, Math.max(after, 2 ** (n - 1))) * (1000 + 500 * Math.random()), signal) // pages that were refused together come apart
  }
  /** @type {{error?: string, column?: number}} */
  let told = {}
  try {
    told = JSON.parse(text)
  } catch { /* a proxy's page */ }
  if (response.status === 401) refused.listener()
  throw new ApiError(response.status, told.error ?? `${response.status} ${response.statusText}`,
    told.column, after)
}

/**
 * Asks for one JSON value.
 * @param {string} path @param {Params} [params] @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function getJSON(path, params, options) {
  const response = await ask(path, params, options)
  return response.status === 204 ? null : response.json()
}

/**
 * Calls each with every text of the body that ends with the separator, and with what is left.
 * @param {Response} response @param {string} separator @param {(text: string) => void} each
 * @param {AbortSignal} [signal]
 */
async function pieces(response, separator, each, signal) {
  if (!response.body) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) break
      const looked = Math.max(0, rest.length - separator.length)
      rest += value
      let start = 0
      for (let at = rest.indexOf(separator, looked); at >= 0; at = rest.indexOf(separator, start)) {
        each(rest.slice(start, at))
        start = at + separator.length
      }
      if (start > 0) rest = rest.slice(start)
    }
  } catch (err) {
    if (signal?.aborted || err instanceof ApiError) throw err
    throw new ApiError(0, 'The answer broke off before its end. Ask for less: a shorter time, or a narrower expression.')
  }
  if (rest) each(rest)
}

/**
 * An event of a stream.
 * @param {string} text
 */
function parseEvent(text) {
  const event = { event: 'message', data: '', id: '' }
  for (const line of text.split('\n')) {
    if (line.startsWith('data: ')) event.data += (event.data && '\n') + line.slice(6)
    else if (line.startsWith('event: ')) event.event = line.slice(7)
    else if (line.startsWith('id: ')) event.id = line.slice(4)
  }
  return event
}

/**
 * Calls onEvent with each event of a stream until the stream ends.
 * @param {string} path @param {Params} params
 * @param {Options & {onEvent: (event: {event: string, data: string, id: string}) => void, onOpen?: () => void}} options
 */
export async function events(path, params, options) {
  const response = await ask(path, params, { ...options, headers: { Accept: 'text/event-stream', ...options.headers } })
  options.onOpen?.()
  await pieces(response, '\n\n', (text) => options.onEvent(parseEvent(text)), options.signal)
}

/**
 * Asks for figures. Parts come to onPartial while the search runs, the newest once a frame at most; the whole
 * is returned. Lines that wait for one of the browser's six connections, which all tabs share, get it first.
 * @param {string} path @param {Params} params
 * @param {Options & {onPartial?: (part: any) => void}} options
 * @returns {Promise<any>}
 */
export async function stream(path, params, options) {
  /** @type {any} */
  let result
  let part = '', frame = 0
  const draw = () => {
    frame = 0
    options.onPartial?.(JSON.parse(part))
  }
  try {
    await events(path, params, { ...options, priority: 'low', patient: true, onEvent: ({ event, data }) => {
      if (event === 'partial') [part, frame] = [data, frame || requestAnimationFrame(draw)]
      if (event === 'done') result = JSON.parse(data)
      if (event === 'error') throw new ApiError(503, JSON.parse(data).error)
    } })
  } finally {
    cancelAnimationFrame(frame)
  }
  if (!result) throw new ApiError(0, 'The answer broke off before its end.')
  return result
}

/**
 * Calls onLine with each line of an NDJSON answer, and returns its headers.
 * @param {string} path @param {Params} params
 * @param {Options & {onLine: (text: string) => void}} options
 * @returns {Promise<Headers>}
 */
export async function lines(path, params, options) {
  const response = await ask(path, params, options)
  await pieces(response, '\n', options.onLine, options.signal)
  return response.headers
}

/** The rows of figures as objects. @param {Table | null} table @returns {Record<string, any>[]} */
export const objects = (table) => table ? table.rows.map((row) => Object.fromEntries(table.columns.map((name, i) => [name, row[i]]))) : []
