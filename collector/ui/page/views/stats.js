// Stats: what pipes give, as a table, lines or bars; and patterns of messages.

import { html, useMemo, useState } from '../lib/html.js'
import { Plot } from '../lib/chart.js'
import { hasTerm, splitPipes, toggleTerm, term } from '../lib/expr.js'
import { count, head, severityOf, text } from '../lib/line.js'
import { Patterns } from '../lib/patterns.js'
import { best, kinds, nameOfGroup, overTime } from '../lib/pivot.js'
import { zooms } from '../lib/rangepicker.js'
import { stamp } from '../lib/time.js'
import { Choice, color, copy, Failure, IconButton, Progress, useFigures, useTheme } from '../lib/ui.js'

const palette = 8, mostRows = 1000

/** @type {[string, string][]} */
const examples = [
  ['stats count() by level, time(auto)', 'Lines by level over time'],
  ['stats count() by service, time(auto)', 'Lines by service over time'],
  ['top 20 service, level', 'Services and their levels'],
  ['top 20 msg', 'The most frequent messages'],
  ['stats count() as lines, min(time) as first, max(time) as last by service', 'When each service was heard'],
]

/** @param {ViewProps} props */
function Stats(props) {
  const { q, state, setState } = props
  const { pipes } = splitPipes(q)
  const tab = state.tab ?? (pipes ? 'figures' : 'patterns')
  const tabs = html`<${Choice} label="What is shown" value=${tab} options=${[['figures', 'Figures'], ['patterns', 'Patterns']]} onChange=${(/** @type {string} */ t) => setState({ tab: t })} />`
  return html`<div class="stats">
    ${tab === 'patterns' ? html`<${Patterns} ...${props} tabs=${tabs} />` : pipes ? html`<${Figures} ...${props} tabs=${tabs} />` : html`<${Examples} ...${props} tabs=${tabs} />`}
  </div>`
}

/** @typedef {ViewProps & {tabs: VNode}} TabProps */

/** @param {TabProps} props */
function Examples({ filter, go, tabs }) {
  return html`<div class="toolbar">${tabs}</div><div class="empty examples"><p><b>Figures come from pipes</b>: add <code>| stats …</code>, <code>| top …</code> or <code>| patterns</code> to the expression. For example:</p>
    <ul>${examples.map(([pipe, what]) => html`<li key=${pipe}><button type="button" class="quiet" onClick=${() => go({ q: `${filter} | ${pipe}`.trim(), state: {} })}><span class="mono">| ${pipe}</span> <span class="dim">${what}</span></button></li>`)}</ul></div>`
}

/** @param {TabProps} props */
function Figures(props) {
  const { tabs, q, range, state, setState, onError, utc } = props
  const { data, loading, part, error, stop } = useFigures('/api/stats', { ...range.params, q, limit: 10000 }, [q, range], onError)
  /** @type {Table | null} */
  const table = data
  const bar = html`<div class="toolbar">${tabs}</div>`
  if (error) return html`${bar}<${Failure} error=${error} />`
  if (!table) return html`${bar}<div class="empty">${loading ? 'counting …' : 'Stopped before there was anything to show.'} <${Progress} part=${part} loading=${loading} stop=${stop} /></div>`
  if (table.rows.length === 0) return html`${bar}<div class="empty"><p><b>No rows.</b> ${count(table.matched)} lines match.</p></div>`
  const fits = kinds(table)
  /** @type {[string, string][]} */
  const forms = [['table', 'Table']]
  if (fits.time >= 0 && fits.figures.length) forms.push(['line', 'Lines'])
  if (fits.figures.length) forms.push(['bar', 'Bars'])
  const form = forms.some(([id]) => id === state.as) ? state.as : best(table)
  return html`<div class=${'figures' + (loading ? ' loading' : '')} aria-busy=${loading}>
    <div class="toolbar">${tabs}<${Choice} label="Form" value=${form} options=${forms} onChange=${(/** @type {string} */ as) => setState({ as })} />
      <span class="grow" role="status"><b>${count(table.rows.length)}</b> ${table.rows.length === 1 ? 'row' : 'rows'} of ${count(table.matched)} lines
        <${Progress} part=${part} loading=${loading} stop=${stop} />
        ${table.estimates && html`<span class="dim" title=${Object.entries(table.estimates).map(([k, v]) => `${k}: ${v}`).join('\n')}> with estimates: ${Object.keys(table.estimates).join(', ')}</span>`}</span>
      <${IconButton} icon="copy" label="Copy the table as CSV" onClick=${() => copy(csv(table), 'The table is copied as CSV')} /></div>
    ${form !== 'table' && fits.time >= 0 ? html`<${OverTime} ...${props} table=${table} form=${form} />` : null}
    ${form === 'bar' && fits.time < 0 ? html`<${Bars} ...${props} table=${table} />` : html`<${Rows} ...${props} table=${table} utc=${utc} />`}
  </div>`
}

/** @param {ViewProps & {table: Table, form: string}} props */
function OverTime({ table, form, ...props }) {
  const { utc } = props
  const theme = useTheme()
  const { times, series, left } = useMemo(() => {
    const found = overTime(table)
    return { ...found, series: found.series.map((s, i) => ({ ...s, color: color(/^[A-Z]+([+-]\d+)?$/.test(s.name) && severityOf(s.name) !== 'none' ? 'bar-' + severityOf(s.name) : `chart-${i % palette}`) })) }
  }, [table, theme])
  const step = times.length > 1 ? (times[1] ?? 0) - (times[0] ?? 0) : 60
  const span = [times[0] ?? 0, (times[times.length - 1] ?? 0) + (form === 'bar' ? step : 0)]
  return html`<section class="chart">
    <${Plot} times=${times} series=${series} kind=${form === 'bar' ? 'stacked' : 'line'} height=${280} utc=${utc} span=${span} label=${`${table.columns.join(', ')}: ${series.length} series of ${times.length} steps`} ...${zooms(props)} />
    <ul class="legend">${series.map((s) => html`<li key=${s.name}><span class="swatch" style=${{ background: s.color }}></span><bdi>${head(s.name, 80)}</bdi></li>`)}
      ${left > 0 && html`<li class="dim">${left} smaller ones are only in the table</li>`}</ul>
  </section>`
}

/** @param {ViewProps & {table: Table}} props */
function Bars({ table, ...props }) {
  const { figures, groups } = kinds(table)
  const [of, setOf] = useState(0)
  const figure = figures[Math.min(of, figures.length - 1)] ?? 0
  const rows = table.rows.slice(0, 200), level = groups.find((i) => table.columns[i] === 'level')
  const top = Math.max(1e-9, ...rows.map((r) => Math.abs(Number(r[figure] ?? 0))))
  return html`${figures.length > 1 && html`<div class="toolbar"><${Choice} label="Figure" value=${String(of)} options=${figures.map((f, i) => [String(i), table.columns[f]])} onChange=${(/** @type {string} */ v) => setOf(Number(v))} /></div>`}
    <table class="bars"><tbody>${rows.map((row, i) => html`<tr key=${i}>
      <th scope="row"><button type="button" class="quiet" onClick=${() => drill(table, row, groups, props)}><bdi>${head(nameOfGroup(table, row, groups), 200) || 'all'}</bdi></button></th>
      <td class="bar-cell"><span class=${'bar' + (level === undefined ? '' : ' sev-' + severityOf(text(row[level])))} style=${{ width: 100 * Math.abs(Number(row[figure] ?? 0)) / top + '%' }}></span></td>
      <td class="number">${cell(row[figure], false)}</td></tr>`)}</tbody></table>
    ${table.rows.length > rows.length && html`<p class="dim">The first ${rows.length} of ${count(table.rows.length)} rows.</p>`}`
}

/** To the lines of a group. @param {Table} table @param {any[]} row @param {number[]} groups @param {ViewProps} props */
function drill(table, row, groups, { filter, go }) {
  let q = filter
  for (const i of groups) {
    const wanted = term(table.columns[i] ?? '', row[i])
    if (!hasTerm(q, wanted)) q = toggleTerm(q, wanted)
  }
  go({ view: 'search', q, state: {} })
}

/** @param {ViewProps & {table: Table}} props */
function Rows({ table, utc, ...props }) {
  const [order, setOrder] = useState({ column: -1, down: true })
  const { figures, groups, time } = kinds(table)
  const rows = useMemo(() => {
    if (order.column < 0) return table.rows
    const sign = order.down ? -1 : 1
    return [...table.rows].sort((a, b) => sign * compare(a[order.column], b[order.column]))
  }, [table, order])
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Rows"><table class="rows">
    <thead><tr>${table.columns.map((name, i) => html`<th key=${name} scope="col" class=${figures.includes(i) ? 'number' : ''} aria-sort=${order.column === i ? (order.down ? 'descending' : 'ascending') : undefined}>
      <button type="button" class="quiet" onClick=${() => setOrder({ column: i, down: order.column === i ? !order.down : figures.includes(i) })}>${name}${order.column === i ? (order.down ? ' ↓' : ' ↑') : ''}</button></th>`)}</tr></thead>
    <tbody>${rows.slice(0, mostRows).map((row, k) => html`<tr key=${k}>${row.map((value, i) => html`<td key=${i} class=${figures.includes(i) ? 'number' : table.columns[i] === 'level' ? 'sev-' + severityOf(text(value)) : ''}>
      ${groups[0] === i && time !== i && figures.length > 0 ? html`<button type="button" class="quiet" onClick=${() => drill(table, row, groups, { utc, ...props })}><bdi>${cell(value, utc)}</bdi></button>` : html`<bdi>${cell(value, utc)}</bdi>`}</td>`)}</tr>`)}</tbody>
  </table></div>
  ${rows.length > mostRows && html`<p class="dim">The first ${count(mostRows)} of ${count(rows.length)} rows. Copy has all of them.</p>`}`
}

/** @param {any} a @param {any} b */
function compare(a, b) {
  if (a === null || b === null) return Number(a === null) - Number(b === null)
  return typeof a === 'number' && typeof b === 'number' ? a - b : text(a) < text(b) ? -1 : 1
}

/** @param {any} value @param {boolean} utc */
function cell(value, utc) {
  if (value === null || value === undefined) return html`<span class="dim">–</span>`
  if (typeof value === 'number') return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(6)))
  const s = text(value)
  return /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(s) ? stamp(Date.parse(s), utc).replace(/\.000$/, '') : head(s, 500)
}

/** As CSV. No text in it is a formula where it is pasted. @param {Table} table */
function csv({ columns, rows }) {
  const plain = (/** @type {any} */ v) => typeof v === 'string' && /^[=+@\t\r-]/.test(v) ? "'" + v : text(v)
  const quoted = (/** @type {any} */ v) => v === null ? '' : /[",\n\r]/.test(plain(v)) ? `"${plain(v).replaceAll('"', '""')}"` : plain(v)
  return [columns, ...rows].map((row) => row.map(quoted).join(',')).join('\r\n') + '\r\n'
}

export { Stats as Component }
