// Small parts that the views share.

import { html, useMemo, useState, useEffect, useRef } from './html.js'
import { ApiError, endpoint, halted, seen, stream, turns } from './api.js'

/** @type {Record<string, string>} */
const paths = {
  plus: 'M8 3.5v9M3.5 8h9', minus: 'M3.5 8h9', close: 'M4 4l8 8M12 4l-8 8', columns: 'M2.5 3.5h11v9h-11zM6.5 3.5v9M10 3.5v9',
  copy: 'M5.5 5.5h7v8h-7zM3.5 10.5v-8h7', left: 'M10 3.5L5.5 8l4.5 4.5', right: 'M6 3.5L10.5 8 6 12.5', down: 'M3.5 6L8 10.5 12.5 6',
  out: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5l3 3M5 7h4', link: 'M6.5 9.5l3-3M7 4.5l1-1a3 3 0 0 1 4.5 4.5l-1 1M9 11.5l-1 1A3 3 0 0 1 3.5 8l1-1',
  sun: 'M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z', pause: 'M5.5 3.5v9M10.5 3.5v9', play: 'M5 3.5l7 4.5-7 4.5z',
  clock: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3l2 1.5', funnel: 'M2.5 3.5h11L9.5 8.5v4l-3 1v-5z', user: 'M8 2.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM3 13.5a5 5 0 0 1 10 0',
}

/** @param {{name: string}} props */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${paths[name]} /></svg>`
}

/** A button with an icon alone; its label is read out and shown under the pointer. @param {{icon: string, label: string, onClick: (event: any) => void, pressed?: boolean, class?: string}} props */
export function IconButton({ icon, label, onClick, pressed, class: extra = '' }) {
  return html`<button type="button" class=${'icon-button ' + extra} title=${label} aria-label=${label} aria-pressed=${pressed}
    onClick=${onClick}><${Icon} name=${icon} /></button>`
}

/** What went wrong, if anything did; an error of the expression is under its column. @param {{error: unknown, retry?: () => void}} props */
export function Failure({ error, retry }) {
  if (!error || error instanceof ApiError && error.column) return null
  return html`<div class="notice bad" role="alert">${messageOf(error)}
    ${retry && html` <button type="button" class="quiet" onClick=${retry}>Try again</button>`}</div>`
}

/** @param {unknown} error */
export function messageOf(error) {
  if (error instanceof ApiError) {
    const first = error.message.split('\n')[0] ?? ''
    return error.retryAfter ? `${first} Try again in ${error.retryAfter} s.` : first
  }
  return error instanceof Error ? error.message : String(error)
}

/** Choices, of one that is taken. @param {{label: string, value: string, options: [string, string][], onChange: (value: string) => void}} props */
export function Choice({ label, value, options, onChange }) {
  return html`<div class="choice" role="group" aria-label=${label}>${options.map(([id, name]) => html`
    <button type="button" key=${id} aria-pressed=${id === value} onClick=${() => onChange(id)}>${name}</button>`)}</div>`
}

/** Whether keys of one letter do nothing, for readers whose speech is typed. */
export const letters = { off: false }

/**
 * Calls what is for a key, unless somebody types.
 * @param {Record<string, (event: KeyboardEvent) => void>} keys
 */
export function useKeys(keys) {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const listen = (event) => {
      const target = /** @type {HTMLElement} */ (event.target)
      const typing = target.closest?.('input, textarea, select, dialog')
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing || (letters.off && event.key.length === 1)) return
      if ((event.key === 'Enter' || event.key === ' ') && target.closest('button, a, summary')) return
      const call = latest.current[event.key]
      if (!call) return
      event.preventDefault()
      call(event)
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
}

/** @type {{show: (text: string) => void}} */
export const toast = { show: () => {} }

/** @param {string} text @param {string} [what] */
export async function copy(text, what = 'Copied') {
  try {
    await navigator.clipboard.writeText(text)
  } catch { // pages without TLS have no clipboard
    const area = document.createElement('textarea')
    area.value = text
    document.body.append(area)
    area.select()
    document.execCommand('copy')
    area.remove()
  }
  toast.show(what)
}

/**
 * What get fetches, once more when a key differs. What it got before stays until the first part comes, and
 * a part stays if the reader stops it. Its draw shows a part, of which share, 0 to 1, is done.
 * @template T
 * @param {((signal: AbortSignal, draw: (data: T, share: number) => void) => Promise<T>) | null} get null: nothing now
 * @param {readonly unknown[]} keys @param {(err: unknown) => void} [onError]
 */
export function useAsked(get, keys, onError) {
  const control = useMemo(() => new AbortController(), keys)
  const [{ of, data, loading, part, error }, set] = useState({ of: /** @type {object | null} */ (null), data: /** @type {T | null} */ (null), loading: true, part: /** @type {number | null} */ (null), error: /** @type {unknown} */ (null) })
  useEffect(() => {
    const of = control
    get?.(of.signal, (data, part) => set({ of, data, loading: true, part, error: null })).then((data) => set({ of, data, loading: false, part: null, error: null }), (error) => {
      if (error === halted) set((old) => ({ ...old, of, loading: false, data: old.of === of ? old.data : null }))
      else if (!of.signal.aborted && error.name !== 'AbortError') {
        set({ of, data: null, loading: false, part: null, error })
        onError?.(error)
      }
    })
    return () => of.abort()
  }, [control])
  const known = of === control
  return { data, loading: get !== null && (loading || !known), part: known ? part : null, error: known ? error : null, stop: () => control.abort(halted) }
}

/**
 * Calls ask every so many milliseconds while the page is seen, until it returns true. It begins anew when a key differs.
 * @param {number} every @param {(signal: AbortSignal) => Promise<boolean>} ask @param {readonly unknown[]} keys
 */
export function useRepeated(every, ask, keys) {
  useEffect(() => {
    const control = new AbortController()
    let timer = 0
    const turn = async () => {
      await seen()
      if (!control.signal.aborted && !await ask(control.signal)) timer = setTimeout(turn, every)
    }
    turn()
    return () => {
      control.abort()
      clearTimeout(timer)
    }
  }, keys)
}

/**
 * The figures that an endpoint streams, or null.
 * @param {string} path @param {import('./api.js').Params | null} params null: ask nothing now
 * @param {readonly unknown[]} keys @param {(err: unknown) => void} [onError] @param {AbortSignal} [shared] ends it too
 */
export function useFigures(path, params, keys, onError, shared) {
  return useAsked(params && ((own, /** @type {(data: any, share: number) => void} */ draw) => stream(path, params, { signal: shared ? AbortSignal.any([own, shared]) : own, onPartial: (data) => {
    const { searched = 0, total = 0 } = data.progress ?? {} // a tenant is not told
    draw(data, total && searched / total)
  } })), keys, onError)
}

/** How far a search is, and what stops it. @param {{part: number | null, loading: boolean, stop?: () => void}} props */
export function Progress({ part, loading, stop }) {
  const [waiting, tell] = useState(turns.waiting)
  useEffect(() => {
    if (!stop) return
    turns.listener = tell
    tell(turns.waiting)
  }, [])
  return html`${waiting > 0 && loading && stop && html`<span class="dim">The collector is busy, waiting for a turn … </span>`}
    ${part !== null && html`<span class="partial" role="status">partial${part > 0 ? `: ${Math.floor(part * 100)} % searched` : ''}${loading ? '' : ', stopped'}</span>`}
    ${loading && stop && html`<button type="button" class="quiet late" onClick=${stop}>Stop</button>`}`
}

/** How to send a first line. @param {{tokens?: boolean}} props */
export function Hello({ tokens }) {
  const command = `curl ${tokens ? '-H "Authorization: Bearer $TOKEN" ' : ''}-d '{"level":"info","msg":"hello"}' ${endpoint('/api/logs')}`
  return html`<p>Send a first line, and it appears here:</p><p class="hello"><code>${command}</code><${IconButton} icon="copy" label="Copy the command" onClick=${() => copy(command, 'The command is copied')} /></p>`
}

/** What the browser keeps of a reader's choices, by name. @param {string} name */
export function recall(name) {
  try {
    return localStorage.getItem('rollway-' + name)
  } catch {
    return null
  }
}

/** @param {string} name @param {string} value empty: nothing is kept */
export function keep(name, value) {
  try {
    if (value) localStorage.setItem('rollway-' + name, value)
    else localStorage.removeItem('rollway-' + name)
  } catch { /* a browser that keeps nothing */ }
}

/** Counts the changes of theme, for what draws on a canvas. */
export function useTheme() {
  const [n, set] = useState(0)
  useEffect(() => {
    const observer = new MutationObserver(() => set((old) => old + 1))
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
    return () => observer.disconnect()
  }, [])
  return n
}

/** A color of the style sheet. @param {string} name */
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim()
