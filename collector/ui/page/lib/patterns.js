// Messages by pattern: how many there are of each, which are new, and to add or exclude one.

import { html, useState } from './html.js'
import { objects } from './api.js'
import { hasTerm, patternTerm, toggleTerm } from './expr.js'
import { count, head, levelName, severityOf } from './line.js'
import { ago, iso } from './time.js'
import { Choice, Failure, Icon, IconButton, Progress, useFigures } from './ui.js'

/** @param {ViewProps & {tabs: VNode}} props */
export function Patterns({ tabs, q, filter, range, state, setState, go, onError }) {
  const onlyNew = state.new === '1'
  const [limit, setLimit] = useState(50)
  const { data, loading, part, error, stop } = useFigures('/api/stats', { ...range.params, q: `${filter} | patterns limit ${limit}` }, [filter, range, limit], onError)
  // New is what the same time before had not.
  const length = range.from === null ? 0 : range.to - range.from
  const asked = useFigures('/api/stats', range.from === null ? null
    : { ...range.params, since: iso(range.from - length), q: `${filter} | patterns new since "${iso(range.from)}" limit ${limit}` }, [filter, range, limit])
  const before = length ? asked : { data: null, loading: false }
  if (error) return html`<div class="toolbar">${tabs}</div><${Failure} error=${error} />`
  const rows = objects(onlyNew ? before.data : data)
  const fresh = new Set(objects(before.data).map((r) => r.pattern))
  const top = Math.max(1, ...rows.map((r) => r.count))
  const now = Date.now()
  return html`<div class=${'patterns' + (loading ? ' loading' : '')} aria-busy=${loading}>
    <div class="toolbar">${tabs}<${Choice} label="Which patterns" value=${onlyNew ? 'new' : 'all'} options=${[['all', 'All'], ['new', `New${before.data ? ' ' + fresh.size : ''}`]]} onChange=${(/** @type {string} */ v) => setState({ new: v === 'new' ? '1' : '' })} />
      <span class="grow" role="status"><b>${count(rows.length)}</b> ${rows.length === 1 ? 'pattern' : 'patterns'}${data ? ` of ${count(data.matched)} lines` : ''}
        <${Progress} part=${part} loading=${loading} stop=${stop} />
        ${length > 0 && html`<span class="dim"> · new: not in the ${before.loading ? 'time before, searching …' : 'same time before'}</span>`}</span></div>
    ${rows.length === 0 && html`<div class="empty">${(onlyNew ? before.loading : loading) ? 'searching …' : onlyNew ? 'Nothing is new in this time.' : 'No lines in this time.'}</div>`}
    ${rows.length > 0 && html`<div class="table-box" tabindex="0" role="region" aria-label="Patterns"><table class="rows pattern-rows">
      <thead><tr><th scope="col" class="number">Lines</th><th scope="col">Level</th><th scope="col">Pattern</th><th scope="col">First</th><th scope="col">Last</th><th scope="col"><span class="unseen">Add or exclude</span></th></tr></thead>
      <tbody>${rows.map((r) => {
        const only = patternTerm(r.pattern), not = patternTerm(r.pattern, true)
        return html`<tr key=${r.pattern} class=${hasTerm(q, only) ? 'included' : ''}>
          <td class="number pattern-count"><span class="facet-bar" style=${{ width: 100 * r.count / top + '%' }}></span><span>${count(r.count)}</span></td>
          <td class=${'sev-' + severityOf(r.level ?? '')}>${levelName(r.level ?? '')}</td>
          <td class="pattern-text" title=${head(r.example ?? '', 500)}>${fresh.has(r.pattern) && html`<span class="chip new">new</span> `}<bdi>${marked(head(r.pattern, 600))}</bdi></td>
          <td class="dim nowrap">${ago(Date.parse(r.first), now)}</td><td class="dim nowrap">${ago(Date.parse(r.last), now)}</td>
          <td class="nowrap"><button type="button" class="quiet to-lines" aria-label="Lines of this pattern" onClick=${() => go({ view: 'search', q: toggleTerm(filter, only, not), state: {} })}><span>Lines</span><${Icon} name="right" /></button>
            <${IconButton} icon="plus" label="Only this pattern" pressed=${hasTerm(q, only)} onClick=${() => go({ q: toggleTerm(q, only, not), state })} />
            <${IconButton} icon="minus" label="Leave out this pattern" pressed=${hasTerm(q, not)} onClick=${() => go({ q: toggleTerm(q, not, only), state })} /></td></tr>`
      })}</tbody></table>
      ${rows.length >= limit && limit < 1000 && html`<p><button type="button" onClick=${() => setLimit(limit * 4)}>More patterns</button></p>`}</div>`}
  </div>`
}

/** A pattern with its placeholders in another color. @param {string} pattern */
const marked = (pattern) => pattern.split(/(<(?:str|num|hex|id|uuid|ip|time|long)>)/).map((piece, i) => i % 2 ? html`<span class="placeholder">${piece}</span>` : piece)
