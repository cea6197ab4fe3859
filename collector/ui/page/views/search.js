// Search: how many lines there are over time, what values they have, the lines, and one at
// the side.

import { html, useState, useRef, useEffect } from '../lib/html.js'
import { ApiError, lines as ask } from '../lib/api.js'
import { Histogram } from '../lib/chart.js'
import { EventPanel } from '../lib/event.js'
import { Facets } from '../lib/facets.js'
import { count, parseLine, parseOffsetLine } from '../lib/line.js'
import { zoomOut } from '../lib/rangepicker.js'
import { Row } from '../lib/row.js'
import { ago, iso, justAfter, stamp } from '../lib/time.js'
import { Failure, Icon, useFigures, useKeys } from '../lib/ui.js'
import { VirtualList } from '../lib/vlist.js'

/** @typedef {import('../types.js').Line} Line */
/** @typedef {import('../types.js').Range} Range */

const page = 300

/**
 * The newest lines of a query, newest first, and older ones on demand.
 * @param {string} filter @param {Range} range @param {(err: unknown) => void} onError
 */
function useNewest(filter, range, onError) {
  const [found, set] = useState({ of: /** @type {Range | null} */ (null), lines: /** @type {Line[]} */ ([]), loading: true, more: true, error: /** @type {unknown} */ (null), hint: '', turn: 0 })
  const control = useRef(new AbortController())
  const busy = useRef(false)
  const load = async (/** @type {Line[]} */ have, /** @type {number} */ size) => {
    const { signal } = control.current
    busy.current = true
    set((old) => ({ ...old, loading: true, error: null }))
    const oldest = have[have.length - 1]
    const params = { ...range.params, q: filter, order: 'time', last: size, offsets: true, ...(oldest && { until: justAfter(oldest.time) }) }
    /** @type {Line[]} */
    const got = []
    try {
      const headers = await ask('/api/query', params, { signal, onLine: (row) => got.push(parseOffsetLine(row)) })
      const known = new Set(have.slice(-size).map((l) => l.offset))
      const fresh = got.filter((l) => !known.has(l.offset)).reverse()
      if (fresh.length === 0 && got.length === size && size < 1e5) return load(have, Math.min(1e5, size * 8))
      const hint = (headers.get('Rollway-Hint') ?? '').replaceAll('`', '')
      set((old) => ({ of: range, lines: have.concat(fresh), loading: false, more: got.length === size, error: null, hint, turn: old.turn + Number(!oldest) }))
    } catch (error) {
      if (signal.aborted) return
      set((old) => ({ ...old, of: range, lines: have, loading: false, more: false, error, hint: '' }))
      onError(error)
    } finally {
      if (!signal.aborted) busy.current = false
    }
  }
  useEffect(() => {
    control.current = new AbortController()
    load([], page)
    const mine = control.current
    return () => mine.abort()
  }, [filter, range])
  const older = () => {
    if (!busy.current && found.more && found.of === range) load(found.lines, page)
  }
  return { ...found, fresh: found.of === range, older }
}

/** @param {import('../types.js').ViewProps} props */
function Search(props) {
  const { q, filter, range, state, setState, go, onError, utc } = props
  const { lines, loading, more, error, hint, turn, fresh, older } = useNewest(filter, range, onError)
  const hits = useFigures('/api/hits', { ...range.params, q: filter }, [filter, range])
  const columns = state.cols === undefined ? ['service'] : state.cols.split(',').filter((name) => name && name !== '-')
  const chosen = (state.facets ?? '').split(',').filter(Boolean)
  const wrap = state.wrap === '1'
  const [cursor, setCursor] = useState(-1)
  const [drawer, setDrawer] = useState(false)
  const opened = useOpened(state.line, lines)

  const setQ = (/** @type {string} */ next) => go({ q: next, state }, false)
  const zoom = (/** @type {number} */ from, /** @type {number} */ to) => go({ since: iso(from), until: iso(to), state }, false)
  const open = (/** @type {number} */ i) => {
    setCursor(i)
    const line = lines[i]
    if (line) setState({ line: String(line.offset) }, Boolean(state.line))
  }
  const close = () => setState({ line: '' }, true)
  const toggleColumn = (/** @type {string} */ name) =>
    setState({ cols: (columns.includes(name) ? columns.filter((c) => c !== name) : [...columns, name]).join(',') || '-' }, true)
  const move = (/** @type {number} */ by) => {
    const next = Math.max(0, Math.min(lines.length - 1, cursor + by))
    setCursor(next)
    if (state.line && lines[next]) setState({ line: String(lines[next].offset) }, true)
    if (next > lines.length - 20) older()
  }
  useEffect(() => setCursor(-1), [filter, range])
  useKeys({
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
    PageDown: () => move(20), PageUp: () => move(-20), Enter: () => open(Math.max(0, cursor)), Escape: () => state.line ? close() : setDrawer(false),
    z: () => setState({ wrap: wrap ? '' : '1' }, true),
  })
  const facets = html`<${Facets} lines=${lines} q=${q} filter=${filter} range=${range} chosen=${chosen} columns=${columns} ready=${fresh && lines.length > 0}
    setQ=${setQ} setChosen=${(/** @type {string[]} */ list) => setState({ facets: list.join(',') }, true)} toggleColumn=${toggleColumn} />`
  const matched = hits.data?.matched
  return html`<div class=${'search' + (opened ? ' with-event' : '') + (drawer ? ' with-drawer' : '')}>
    ${facets}
    <div class="results">
      <${Histogram} hits=${hits.data} utc=${utc} part=${hits.part} loading=${hits.loading} onZoom=${zoom}
        onOut=${() => zoomOut(range, (since, until) => go({ since, until, state }, false))} />
      <div class="toolbar">
        <button type="button" class="quiet narrow-only" aria-expanded=${drawer} onClick=${() => setDrawer(!drawer)}><${Icon} name="funnel" />Fields</button>
        <span class="grow" role="status">${matched !== undefined && html`<b>${count(matched)}</b> ${matched === 1 ? 'line' : 'lines'}${hits.part !== null ? ' so far' : ''}`}
          ${loading && lines.length > 0 && html`<span class="dim"> searching …</span>`}</span>
        ${columns.map((name) => html`<button type="button" key=${name} class="chip" title=${`Remove the column ${name}`} onClick=${() => toggleColumn(name)}>${name}<${Icon} name="close" /></button>`)}
        <label class="check"><input type="checkbox" checked=${wrap} onChange=${() => setState({ wrap: wrap ? '' : '1' }, true)} />Wrap</label>
      </div>
      ${error && !(error instanceof ApiError && error.column) ? html`<${Failure} error=${error} />` : null}
      ${lines.length === 0 && !error ? html`<${Nothing} loading=${loading} hint=${hint} ...${props} />` : html`
        <${VirtualList} key=${turn} count=${lines.length} keyOf=${(/** @type {number} */ i) => lines[i]?.offset ?? i} height=${22} fixed=${!wrap} label="Lines, newest first"
          cursor=${cursor} onNearEnd=${older} row=${(/** @type {number} */ i) => Row({ line: /** @type {Line} */ (lines[i]), index: i, columns, wrap, utc, selected: i === cursor, open: lines[i]?.offset === opened?.offset, onOpen: open })} />`}
      ${!more && lines.length > page && html`<div class="dim list-end">These are all lines of this time.</div>`}
    </div>
    ${opened && html`<${EventPanel} line=${opened} q=${q} utc=${utc} tab=${state.tab ?? 'fields'} columns=${columns} setQ=${setQ}
      setTab=${(/** @type {string} */ tab) => setState({ tab: tab === 'fields' ? '' : tab }, true)} toggleColumn=${toggleColumn}
      onOpen=${(/** @type {Line} */ l) => setState({ line: String(l.offset) })} setRange=${(/** @type {string} */ since, /** @type {string} */ until) => go({ since, until, state }, false)} onClose=${close} />`}
  </div>`
}

/**
 * The line that is open: one of those at hand, or one that a link names.
 * @param {string | undefined} offset @param {Line[]} lines
 * @returns {Line | null}
 */
function useOpened(offset, lines) {
  const [fetched, set] = useState(/** @type {Line | null} */ (null))
  const here = offset === undefined ? null : lines.find((l) => String(l.offset) === offset) ?? null
  useEffect(() => {
    if (offset === undefined || here || String(fetched?.offset) === offset) return
    const control = new AbortController()
    ask('/api/context', { offset, before: 0, after: 0, by: '' }, { signal: control.signal, onLine: (row) => set(parseOffsetLine(row)) })
      .catch(() => control.signal.aborted || set(null))
    return () => control.abort()
  }, [offset, Boolean(here)])
  return here ?? (offset !== undefined && String(fetched?.offset) === offset ? fetched : null)
}

/** The newest line of all time that matches. @param {string} filter @param {boolean} wanted @returns {Line | null} */
function useNewestAnywhere(filter, wanted) {
  const [line, set] = useState(/** @type {Line | null} */ (null))
  useEffect(() => {
    set(null)
    if (!wanted) return
    const control = new AbortController()
    ask('/api/query', { q: filter, last: 1, order: 'time' }, { signal: control.signal, onLine: (row) => set(parseLine(row)) }).catch(() => {})
    return () => control.abort()
  }, [filter, wanted])
  return line
}

/** What to do where nothing is found. @param {import('../types.js').ViewProps & {loading: boolean, hint: string}} props */
function Nothing({ loading, hint, filter, range, state, go, utc }) {
  const newest = useNewestAnywhere(filter, !loading && range.since !== 'all')
  if (loading) return html`<div class="empty" role="status">searching …</div>`
  const wider = [['1d', 'Last 24 hours'], ['7d', 'Last 7 days'], ['all', 'All time']].filter(([since]) => since !== range.since)
  return html`<div class="empty">
    <p><b>No line ${filter ? 'matches' : 'is here'} in this time.</b></p>
    ${hint && html`<p>${hint}</p>`}
    ${newest && html`<p>The newest one is of <button type="button" onClick=${() => go({ since: iso(newest.ms - 36e5), until: iso(newest.ms + 1000), state }, false)}>${stamp(newest.ms, utc)}</button> ${ago(newest.ms, Date.now())}.</p>`}
    <p class="buttons">${wider.map(([since = '', name]) => html`<button type="button" key=${since} onClick=${() => go({ since, until: '', state }, false)}>${name}</button>`)}
      ${filter && html`<button type="button" onClick=${() => go({ q: '', state }, false)}>Without the expression</button>`}</p>
    ${!filter && range.since === 'all' && html`<p class="dim">Send a first line: <code>${`curl -d '{"level":"info","msg":"hello"}' ${location.origin}/api/logs`}</code></p>`}
  </div>`
}

/** @type {import('../types.js').View} */
export const view = { id: 'search', title: 'Search', key: 's', query: 'filter', range: true, Component: Search }
