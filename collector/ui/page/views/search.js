// Search: how many lines there are over time, what values they have, the lines, and one at
// the side.

import { html, useMemo, useState, useRef, useEffect, useLayoutEffect } from '../lib/html.js'
import { halted, lines as ask } from '../lib/api.js'
import { Histogram } from '../lib/chart.js'
import { EventPanel, useLines } from '../lib/event.js'
import { Facets, looked } from '../lib/facets.js'
import { count, parseLine, parseOffsetLine } from '../lib/line.js'
import { zooms } from '../lib/rangepicker.js'
import { look } from '../lib/row.js'
import { ago, iso, justAfter, stamp } from '../lib/time.js'
import { Failure, Hello, Icon, Progress, useFigures, useKeys, useRepeated } from '../lib/ui.js'
import { LineList } from '../lib/vlist.js'

const first = 40, page = 300 // lines of a request
const most = 20_000 // lines that are kept
const patience = 400 // milliseconds: what else is asked waits so long for the first lines

/**
 * The newest lines of a query, newest first, and older ones on demand; or the oldest first.
 * @param {string} filter @param {TimeRange} range @param {boolean} oldest @param {(err: unknown) => void} onError
 */
function useRows(filter, range, oldest, onError) {
  const asked = useMemo(() => new AbortController(), [filter, range, oldest])
  const [found, set] = useState({ of: /** @type {object | null} */ (null), lines: /** @type {Line[]} */ ([]), loading: true, more: true, error: /** @type {unknown} */ (null), hint: '', turn: 0 })
  const busy = useRef(/** @type {object | null} */ (null)), later = useRef(asked) // ends what is asked after the rest was stopped
  const load = async (/** @type {Line[]} */ have, /** @type {number} */ size) => {
    const { signal } = later.current = asked.signal.aborted ? new AbortController() : asked // lines can be had when the rest was stopped
    const mine = busy.current = {}
    const edge = have[have.length - 1]
    if (edge) set((old) => ({ ...old, loading: true, error: null }))
    const params = { ...range.params, q: filter, order: 'time', [oldest ? 'limit' : 'last']: size, offsets: true, ...(edge && onwards(edge, oldest)) }
    /** @type {Line[]} */
    const got = []
    try {
      const headers = await ask('/api/query', params, { signal, patient: true, onLine: (row) => got.push(parseOffsetLine(row)) })
      if (busy.current !== mine) return
      const known = new Set(have.slice(-size).map((l) => l.offset))
      const fresh = got.filter((l) => !known.has(l.offset))
      if (!oldest) fresh.reverse()
      if (fresh.length === 0 && got.length === size && size < 1e5) return load(have, Math.min(1e5, size * 8))
      const hint = (headers.get('Rollway-Hint') ?? '').replaceAll('`', '')
      const lines = have.concat(fresh), more = got.length === size
      set((old) => ({ of: asked, lines, loading: false, more, error: null, hint, turn: old.turn + Number(!edge) }))
    } catch (error) {
      if (busy.current !== mine || signal.aborted && error !== halted) return
      set((old) => ({ ...old, of: asked, lines: have, loading: false, more: false, error, hint: '' }))
      onError(error)
    } finally {
      if (busy.current === mine) busy.current = null
    }
  }
  useLayoutEffect(() => { // nothing is asked before the lines, and what was asked ends
    load([], first)
    return () => stop(undefined)
  }, [asked])
  const stop = (/** @type {Error | undefined} */ why) => {
    asked.abort(why)
    later.current.abort(why)
  }
  const fresh = found.of === asked
  const onward = () => {
    if (!busy.current && found.more && fresh && found.lines.length < most) load(found.lines, page)
  }
  useEffect(() => { // once the first ones are painted
    if (found.lines.length <= first) onward()
  }, [found])
  return { ...found, loading: found.loading || !fresh, error: fresh ? found.error : null, asked, fresh, onward, stop }
}

/** The range of what follows a line. @param {Line} line @param {boolean} oldest whether the oldest come first */
const onwards = (line, oldest) => oldest ? { since: line.time } : { until: justAfter(line.time) }

/** @param {ViewProps} props */
function Search(props) {
  const { q, filter, range, state, setState, go, onError, utc } = props
  const oldest = state.order === 'oldest'
  const { asked, lines, loading, more, error, hint, turn, fresh, onward, stop } = useRows(filter, range, oldest, onError)
  const [late, setLate] = useState(/** @type {object | null} */ (null))
  useEffect(() => {
    const timer = setTimeout(() => setLate(asked), patience)
    return () => clearTimeout(timer)
  }, [asked])
  const counting = fresh || late === asked
  const hits = useFigures('/api/hits', counting ? { ...range.params, q: filter } : null, [filter, range, counting], undefined, asked.signal)
  const { columns, toggleColumn, wrap, toggleWrap, wraps } = look(props)
  const chosen = (state.facets ?? '').split(',').filter(Boolean)
  const [cursor, setCursor] = useState(-1)
  const [drawer, setDrawer] = useState(false)
  const opened = useOpened(state.line, lines)

  const setQ = (/** @type {string} */ next) => go({ q: next, state })
  const open = (/** @type {number} */ i) => {
    setCursor(i)
    const line = lines[i]
    if (line) setState({ line: String(line.offset) }, Boolean(opened))
  }
  const close = () => setState({ line: '' }, true)
  const move = (/** @type {number} */ by) => {
    const next = Math.max(0, Math.min(lines.length - 1, cursor + by))
    setCursor(next)
    if (state.line && lines[next]) setState({ line: String(lines[next].offset) }, true)
    if (next > lines.length - 20) onward()
  }
  useEffect(() => setCursor(-1), [filter, range])
  useKeys({
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
    PageDown: () => move(20), PageUp: () => move(-20), Enter: () => open(Math.max(0, cursor)), Escape: () => state.line ? close() : setDrawer(false),
    z: toggleWrap,
  })
  const enough = fresh && (lines.length > first || !more)
  const facets = useMemo(() => html`<${Facets} lines=${lines} q=${q} filter=${filter} range=${range} chosen=${chosen} columns=${columns} ready=${enough && lines.length > 0} waiting=${!enough} signal=${asked.signal}
    setQ=${setQ} setChosen=${(/** @type {string[]} */ list) => setState({ facets: list.join(',') }, true)} toggleColumn=${toggleColumn} />`,
  [lines[0], Math.min(lines.length, looked), q, filter, range, state, enough, asked]) // lines and counts come more often
  const matched = hits.data?.matched, last = lines[lines.length - 1]
  const latest = useRef(onward)
  latest.current = onward
  const list = useMemo(() => html`<${LineList} key=${turn} lines=${lines} label=${`Lines, ${oldest ? 'oldest' : 'newest'} first`} columns=${columns} wrap=${wrap} utc=${utc} cursor=${cursor} opened=${opened}
    onOpen=${open} onNearEnd=${() => latest.current()} />`, [lines, turn, columns.join(), wrap, utc, oldest, cursor, opened]) // figures change more often
  return html`<div class=${'search' + (opened ? ' with-event' : '') + (drawer ? ' with-drawer' : '')}>
    ${facets}
    <div class="results">
      <${Histogram} hits=${hits.data} utc=${utc} part=${hits.part} loading=${hits.loading || !counting} ...${zooms(props)} />
      <div class="toolbar">
        <button type="button" class="quiet narrow-only" aria-expanded=${drawer} onClick=${() => setDrawer(!drawer)}><${Icon} name="funnel" />Fields</button>
        <span class="grow" role="status">${matched !== undefined && html`<b>${count(matched)}</b> ${matched === 1 ? 'line' : 'lines'}${hits.part !== null ? ' so far' : ''}`}
          ${loading && lines.length > 0 && html`<span class="dim"> searching …</span>`}
          <${Progress} part=${null} loading=${loading || hits.loading} stop=${() => stop(halted)} /></span>
        ${columns.map((name) => html`<button type="button" key=${name} class="chip" title=${`Remove the column ${name}`} onClick=${() => toggleColumn(name)}>${name}<${Icon} name="close" /></button>`)}
        <label class="check"><input type="checkbox" checked=${oldest} onChange=${() => setState({ order: oldest ? '' : 'oldest', line: '' }, true)} />Oldest first</label>
        ${wraps}
      </div>
      <${Failure} error=${error} retry=${() => go({ state })} />
      ${lines.length === 0 && !error ? html`<${Nothing} loading=${loading} hint=${hint} ...${props} />` : list}
      ${!more && !error && lines.length > page && html`<div class="dim list-end">These are all lines of this time.</div>`}
      ${more && last && lines.length >= most && html`<div class="dim list-end">${count(lines.length)} lines are here. <button type="button" onClick=${() => go({ ...onwards(last, oldest), state })}>Go on after the last</button></div>`}
    </div>
    ${opened && html`<${EventPanel} ...${props} line=${opened} onOpen=${(/** @type {Line} */ l) => setState({ line: String(l.offset) })} onClose=${close} />`}
  </div>`
}

/**
 * The line that is open: one of those at hand, or one that a link names.
 * @param {string | undefined} offset @param {Line[]} lines
 * @returns {Line | null}
 */
function useOpened(offset, lines) {
  const here = offset === undefined ? undefined : lines.find((l) => String(l.offset) === offset)
  const params = offset === undefined || here ? null : { offset, before: 0, after: 0, by: '' }
  const fetched = useLines('/api/context', params)
  return here ?? fetched.lines[0] ?? null
}

/** The newest line of all time that matches; null: there is none. @param {string} filter @param {boolean} wanted @param {() => void} onFirst what was empty has a line */
function useNewestAnywhere(filter, wanted, onFirst) {
  const [line, set] = useState(/** @type {Line | null | undefined} */ (undefined))
  let again = false
  useRepeated(2000, async (signal) => {
    /** @type {Line | null} */
    let found = null
    if (!again) set(undefined)
    if (!wanted) return true
    const failed = await ask('/api/query', { q: filter, last: 1, order: 'time' }, { signal, onLine: (row) => { found = parseLine(row) } }).catch(() => true)
    if (signal.aborted) return true
    if (found && again) onFirst()
    else if (failed !== true) set(found)
    again = true
    return found !== null || filter !== ''
  }, [filter, wanted])
  return line
}

/** What to do where nothing is found. @param {ViewProps & {loading: boolean, hint: string}} props */
function Nothing({ loading, hint, filter, range, state, go, utc, session }) {
  const newest = useNewestAnywhere(filter, !loading, () => go({ state }))
  if (loading) return html`<div class="empty" role="status">searching …</div>`
  if (newest === null && !filter) return html`<div class="empty"><p><b>There are no lines yet.</b></p><${Hello} tokens=${session.tokens} /></div>`
  const wider = [['1d', 'Last 24 hours'], ['7d', 'Last 7 days'], ['all', 'All time']].filter(([since]) => since !== range.since)
  return html`<div class="empty">
    <p><b>No line ${filter ? 'matches' : 'is here'} in this time.</b></p>
    ${hint && html`<p>${hint}</p>`}
    ${newest && html`<p>The newest one is of <button type="button" onClick=${() => go({ since: iso(newest.ms - 36e5), until: iso(newest.ms + 1000), state })}>${stamp(newest.ms, utc)}</button> ${ago(newest.ms, Date.now())}.</p>`}
    <p class="buttons">${wider.map(([since = '', name]) => html`<button type="button" key=${since} onClick=${() => go({ since, until: '', state })}>${name}</button>`)}
      ${filter && html`<button type="button" onClick=${() => go({ q: '', state })}>Without the expression</button>`}</p>
  </div>`
}

/** @type {View} */
export const view = { id: 'search', title: 'Search', key: 's', query: 'filter', range: true, Component: Search }
