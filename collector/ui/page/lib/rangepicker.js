// The range of time: presets, a length of one's own, two times, and steps to both sides.

import { html, useState, useRef, useEffect } from './html.js'
import { Icon, IconButton } from './ui.js'
import { duration, fromInput, iso, presets, rangeLabel, toInput } from './time.js'

/** @param {{range: TimeRange, utc: boolean, onChange: (since: string, until: string) => void}} props */
export function RangePicker({ range, utc, onChange }) {
  const [open, setOpen] = useState(false)
  const box = useRef(/** @type {HTMLElement | null} */ (null))
  const { since, until, from, to } = range
  useEffect(() => {
    if (!open) return
    const outside = (/** @type {Event} */ e) => {
      if (!box.current?.contains(/** @type {Node} */ (e.target))) setOpen(false)
    }
    addEventListener('pointerdown', outside)
    return () => removeEventListener('pointerdown', outside)
  }, [open])
  const set = (/** @type {string} */ a, /** @type {string} */ b) => {
    setOpen(false)
    onChange(a, b)
  }
  const shift = (/** @type {number} */ by) => from !== null && set(iso(from + by * (to - from)), iso(to + by * (to - from)))
  return html`<div class="range" ref=${box} onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === 'Escape' && open && (e.stopPropagation(), setOpen(false))}>
    ${from !== null && html`<${IconButton} icon="left" label="Earlier" onClick=${() => shift(-1)} />`}
    <button type="button" class="range-button" id="range" aria-expanded=${open} aria-haspopup="dialog" onClick=${() => setOpen(!open)}>
      <${Icon} name="clock" /><span>${rangeLabel(since, until, utc)}</span></button>
    ${from !== null && html`<${IconButton} icon="right" label="Later" onClick=${() => shift(1)} />
      <${IconButton} icon="out" label="Twice as long" onClick=${() => zoomOut(range, set)} />`}
    ${open && html`<${Popup} range=${range} utc=${utc} set=${set} />`}
  </div>`
}

/** @param {TimeRange} range @param {(since: string, until: string) => void} set */
function zoomOut({ from, to }, set) {
  if (from === null) return
  const half = Math.max(1000, (to - from) / 2)
  set(iso(from - half), to + half >= Date.now() ? '' : iso(to + half))
}

/** What a chart over time does when its reader drags, and clicks twice. @param {Pick<ViewProps, 'range' | 'go' | 'state'>} props */
export const zooms = ({ range, go, state }) => ({ onZoom: (/** @type {number} */ from, /** @type {number} */ to) => go({ since: iso(from), until: iso(to), state }),
  onOut: () => zoomOut(range, (since, until) => go({ since, until, state })) })

/** @param {{range: TimeRange, utc: boolean, set: (since: string, until: string) => void}} props */
function Popup({ range, utc, set }) {
  const now = Date.now()
  const [length, setLength] = useState(Number.isNaN(duration(range.since)) ? '' : range.since)
  const [start, setStart] = useState(toInput(range.from ?? now - 864e5, utc))
  const [end, setEnd] = useState(toInput(range.to, utc))
  const bad = Boolean(length) && Number.isNaN(duration(length))
  const submit = (/** @type {(e: Event) => void} */ f) => (/** @type {Event} */ e) => {
    e.preventDefault()
    f(e)
  }
  return html`<div class="popup range-popup" role="dialog" aria-label="Range of time">
    <ul class="presets">${presets.map(([value, name]) => html`<li key=${value}><button type="button" class="quiet"
      aria-pressed=${range.since === value && !range.until} onClick=${() => set(value, '')}>${name}</button></li>`)}</ul>
    <div class="range-custom">
      <form onSubmit=${submit(() => length && !bad && set(length, ''))}>
        <label>Last <input class="mono" size="8" placeholder="45m, 1d12h" value=${length} aria-invalid=${bad} onFocus=${(/** @type {any} */ e) => e.target.select()}
          onInput=${(/** @type {any} */ e) => setLength(e.target.value.trim())} /></label> <button>Apply</button>
      </form>
      <form onSubmit=${submit(() => set(fromInput(start, utc), fromInput(end, utc)))}>
        <label>From <input type="datetime-local" step="1" value=${start} onInput=${(/** @type {any} */ e) => setStart(e.target.value)} /></label>
        <label>To <input type="datetime-local" step="1" value=${end} onInput=${(/** @type {any} */ e) => setEnd(e.target.value)} /></label>
        <div class="dim">${utc ? 'Times are UTC.' : 'Times are of this browser’s zone.'}</div>
        <button>Apply</button>
      </form>
    </div>
  </div>`
}
