// Errors: those that are the same are a group, with how often and since when, where, and the
// newest with its stack.

import { html, useMemo } from '../lib/html.js'
import { objects } from '../lib/api.js'
import { EventPanel, useLines } from '../lib/event.js'
import { term } from '../lib/expr.js'
import { count, head, severityOf, text } from '../lib/line.js'
import { ago, iso, stamp } from '../lib/time.js'
import { Spark } from '../lib/spark.js'
import { Choice, Failure, messageOf, Progress, useFigures, useKeys } from '../lib/ui.js'

/** @typedef {{id: string, count: number, first: number, last: number, level: string, services: string[], releases: string[], type: string, message: string, fresh: boolean}} Group */

const most = 200, bars = 30, day = 864e5

const grouping = '| stats count() as n, min(time) as first, max(time) as last, max(level) as level, values(service) as services, values(release) as releases, '
  + `values(version) as versions, last(error.type) as type, last(error.message) as message, last(msg) as msg by error.fingerprint as id | sort -n | limit ${most}`

/** Steps of time for a sparkline. @param {number} from @param {number} to */
function stepFor(from, to) {
  const seconds = Math.max(1, (to - from) / 1000 / bars)
  const step = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400].find((s) => s >= seconds)
  return step ?? Math.ceil(seconds / 86400) * 86400
}

/** The groups of a table of grouping. @param {Table} table @param {Set<string> | null} known those of before @returns {Group[]} */
function groupsOf(table, known) {
  const list = (/** @type {any} */ v) => Array.isArray(v) ? v.map(text) : []
  return objects(table).map((of) => ({ id: text(of.id), count: Number(of.n), first: Date.parse(of.first), last: Date.parse(of.last), level: text(of.level ?? ''),
    services: list(of.services), releases: [...list(of.releases), ...list(of.versions)], type: text(of.type ?? ''), message: text(of.message ?? of.msg ?? ''),
    fresh: known !== null && !known.has(text(of.id)) }))
}

/** Counts by group and step. @param {Table} table @param {number} from seconds @param {number} step @returns {Map<string, number[]>} */
function sparks({ rows }, from, step) {
  /** @type {Map<string, number[]>} */
  const found = new Map()
  for (const [id, time, n] of rows) {
    const at = Math.floor((Date.parse(time) / 1000 - from) / step)
    if (at < 0 || at > 2 * bars) continue
    const values = found.get(text(id)) ?? []
    values[at] = (values[at] ?? 0) + Number(n)
    found.set(text(id), values)
  }
  return found
}

/** @param {ViewProps} props */
function Errors(props) {
  const { filter, range, state, setState, go, onError, utc } = props
  const q = (filter ? `(${filter}) ` : '') + 'error.fingerprint=*'
  const from = range.from ?? range.to - 7 * day
  const step = stepFor(from, range.to), first = Math.floor(from / 1000 / step) * step
  const groups = useFigures('/api/stats', { ...range.params, q: `${q} ${grouping}` }, [q, range], onError)
  const shape = useFigures('/api/stats', { ...range.params, since: iso(from), q: `${q} | stats count() as n by error.fingerprint, time(${step}s)`, limit: 10000 }, [q, range])
  const yesterday = range.to - day
  const before = useFigures('/api/stats', { since: iso(yesterday - 30 * day), until: iso(yesterday), q: `error.fingerprint=* | stats count() by error.fingerprint`, limit: 10000 }, [range])
  const known = useMemo(() => before.data && !before.loading ? new Set(before.data.rows.map((/** @type {any[]} */ row) => text(row[0]))) : null, [before.data, before.loading])
  const curves = useMemo(() => shape.data ? sparks(shape.data, first, step) : new Map(), [shape.data, first, step])
  const all = useMemo(() => groups.data ? groupsOf(groups.data, known) : [], [groups.data, known])
  const list = state.new ? all.filter((g) => g.fresh) : all
  const cursor = list.findIndex((g) => g.id === state.id)
  const open = list[cursor]
  const sample = open ? { ...range.params, q: `${q} ${term('error.fingerprint', open.id)}`, last: 1, order: 'time', offsets: true } : null
  const newest = useLines('/api/query', sample), line = newest.lines[0]
  const choose = (/** @type {number} */ i) => setState({ id: list[Math.max(0, Math.min(list.length - 1, i))]?.id ?? '', tab: '' }, true)
  const toLines = (/** @type {Group} */ g) => go({ view: 'search', q: [filter && `(${filter})`, term('error.fingerprint', g.id)].filter(Boolean).join(' '), state: {} })
  // What led to it, which is rarely an error.
  const toFirst = (/** @type {Group} */ g) => go({ view: 'search', q: g.services.length === 1 ? term('service', g.services[0]) : '', since: iso(g.first - 6e5), until: iso(g.first + 1000), state: {} })
  const walk = (/** @type {number} */ by) => {
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur() // Enter is for the row now
    choose(cursor + by)
  }
  useKeys({ j: () => walk(1), ArrowDown: () => walk(1), k: () => walk(-1), ArrowUp: () => walk(-1),
    Enter: () => open && toLines(open), Escape: () => setState({ id: '' }, true) })
  const fresh = all.filter((g) => g.fresh).length
  const steps = Math.min(2 * bars, Math.ceil((range.to / 1000 - first) / step))
  return html`<div class=${'live errors' + (open ? ' with-event' : '')}>
    <div class="results">
      <div class="toolbar">
        <${Choice} label="Which errors" value=${state.new ?? ''} options=${[['', 'All'], ['1', 'New since yesterday' + (known ? ` (${fresh})` : '')]]} onChange=${(/** @type {string} */ v) => setState({ new: v, id: '' })} />
        <span class="grow" role="status">${groups.data ? html`<b>${count(all.length)}</b> ${all.length === 1 ? 'error' : 'errors'}${all.length === most ? ' and more' : ''}, ${count(groups.data.matched)} times` : ''}
          <${Progress} ...${groups} /></span>
      </div>
      <${Failure} error=${groups.error} />
      ${list.length === 0 ? html`<div class="empty">${groups.loading ? 'counting …' : html`<p><b>${state.new ? 'Nothing new since yesterday.' : 'No errors.'}</b></p><p>What has the attribute <code>error</code> is an error. ${range.since !== 'all' && 'Look further back, or at another filter.'}</p>`}</div>`
      : html`<div class="table-box" tabindex="0" role="region" aria-label="Errors"><table class="rows error-rows" aria-busy=${groups.loading}>
        <thead><tr><th scope="col">Error</th><th scope="col" class="number">Times</th><th scope="col">Over time</th><th scope="col">Last</th><th scope="col">First</th><th scope="col">Where</th></tr></thead>
        <tbody>${list.map((g, i) => html`<tr key=${g.id} class=${`sev-${severityOf(g.level)}${i === cursor ? ' selected' : ''}`} aria-selected=${i === cursor}>
          <td class="error-name"><button type="button" class="quiet" onClick=${() => choose(i)}><span><b><bdi>${head(g.type || 'error', 120)}</bdi></b>${g.fresh && html` <span class="chip new">new</span>`}<br /><bdi class="dim">${head(g.message, 240)}</bdi></span></button></td>
          <td class="number"><button type="button" class="quiet" title="Show the lines" onClick=${() => toLines(g)}>${count(g.count)}</button></td>
          <td><${Spark} values=${curves.get(g.id)} steps=${steps} label=${`${count(g.count)} times`} /></td>
          <td class="nowrap" title=${stamp(g.last, utc)}>${ago(g.last, range.to)}</td>
          <td class="nowrap"><button type="button" class="quiet" title=${`${stamp(g.first, utc)}: show what led to it`} onClick=${() => toFirst(g)}>${ago(g.first, range.to)}</button></td>
          <td>${g.services.slice(0, 3).map((s) => html`<bdi key=${s} class="error-where">${head(s, 40)}</bdi>`)}${g.services.length > 3 && html`<span class="dim"> +${g.services.length - 3}</span>`}
            ${g.releases.length > 0 && html`<div class="dim"><bdi>${head(g.releases.join(', '), 60)}</bdi></div>`}</td></tr>`)}</tbody></table></div>`}
    </div>
    ${open && newest.error ? html`<aside class="event"><div class="notice bad" role="alert">${messageOf(newest.error)}</div></aside>` : null}
    ${open && line && html`<${EventPanel} ...${props} q=${filter} line=${line} onClose=${() => setState({ id: '' }, true)}
      onOpen=${(/** @type {Line} */ line) => go({ view: 'search', since: iso(line.ms - 6e4), until: iso(line.ms + 6e4), state: {} })} />`}
  </div>`
}

/** @type {View} */
export const view = { id: 'errors', title: 'Errors', key: 'e', query: 'filter', range: true, Component: Errors }
