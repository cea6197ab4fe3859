// The most frequent values of fields, to add to the expression or to exclude.

import { html, useMemo, useState } from './html.js'
import { hasTerm, term, toggleValue } from './expr.js'
import { count, fieldsOf, head, levelName, severityOf, short, text } from './line.js'
import { Icon, IconButton, messageOf, Progress, useFigures } from './ui.js'

const always = ['level', 'service'], never = new Set(['time', 'msg', 'trace_id', 'span_id', 'error.stack', 'error.message', 'error.fingerprint', 'level', 'service'])
const most = 12 // facets without asking
export const looked = 300 // lines that tell what fields there are

/**
 * The fields of lines, by how many lines have them, and how many values they have there.
 * @param {Line[]} lines
 * @returns {{name: string, count: number, values: number}[]}
 */
function fieldsIn(lines) {
  /** @type {Map<string, {count: number, values: Set<string>}>} */
  const found = new Map()
  for (const line of lines.slice(0, looked)) {
    for (const [name, value] of fieldsOf(line).slice(0, 500)) {
      const f = found.get(name) ?? { count: 0, values: new Set() }
      f.count++
      f.values.add(text(value).slice(0, 200))
      found.set(name, f)
    }
  }
  return [...found].map(([name, f]) => ({ name, count: f.count, values: f.values.size })).sort((a, b) => b.count - a.count)
}

/** The fields that are worth a facet: of few values, in many lines. @param {ReturnType<typeof fieldsIn>} fields */
function worthwhile(fields) {
  const good = fields.filter((f) => !never.has(f.name) && !f.name.includes(',') && f.values > 1 && f.values <= 40 && f.values * 2 <= f.count + 2)
  return [...always, ...good.slice(0, most - always.length).map((f) => f.name)]
}

/**
 * @param {object} props
 * @param {Line[]} props.lines the newest lines, which tell what fields there are
 * @param {string} props.q @param {string} props.filter @param {TimeRange} props.range
 * @param {string[]} props.chosen fields that the reader has chosen
 * @param {string[]} props.columns
 * @param {(q: string) => void} props.setQ @param {(fields: string[]) => void} props.setChosen
 * @param {(name: string) => void} props.toggleColumn @param {boolean} props.ready whether lines are of this run
 * @param {boolean} props.waiting for lines @param {AbortSignal} props.signal
 */
export function Facets({ lines, q, filter, range, chosen, columns, setQ, setChosen, toggleColumn, ready, waiting, signal }) {
  const fields = useMemo(() => fieldsIn(lines), [lines[0], Math.min(lines.length, looked)]) // those that come later do not matter
  const names = useMemo(() => [...new Set([...chosen, ...worthwhile(fields)])].slice(0, 20), [fields, chosen.join()])
  const key = names.join()
  const { data, loading, part, error } = useFigures('/api/facets', ready ? { ...range.params, q: filter, field: key, limit: 30 } : null, [key, filter, range, ready], undefined, signal)
  /** @type {Facet[]} */
  const facets = lines.length ? data?.facets ?? [] : []
  return html`<nav class=${'facets' + (loading || waiting ? ' loading' : '')} aria-label="Fields">
    <${Progress} part=${part} loading=${loading} />
    ${error && html`<p class="dim">${messageOf(error)}</p>`}
    ${facets.filter((f) => f.values.some((v) => v.value !== null) || data.estimates?.[f.field]).map((f) => html`<${FacetBox} key=${f.field} facet=${f} estimate=${data.estimates?.[f.field]} q=${q} setQ=${setQ}
      column=${columns.includes(f.field)} toggleColumn=${toggleColumn} remove=${chosen.includes(f.field) ? () => setChosen(chosen.filter((n) => n !== f.field)) : undefined} />`)}
    <${AllFields} fields=${fields} chosen=${chosen} columns=${columns} setChosen=${setChosen} toggleColumn=${toggleColumn} />
  </nav>`
}

/**
 * @param {{facet: Facet, estimate?: string, q: string, setQ: (q: string) => void, column: boolean, toggleColumn: (name: string) => void, remove?: () => void}} props
 */
function FacetBox({ facet, estimate, q, setQ, column, toggleColumn, remove }) {
  const [more, setMore] = useState(false)
  const { field } = facet
  // Lines without the field come last: they are many, and rarely what is looked for.
  const values = [...facet.values.filter((v) => v.value !== null), ...facet.values.filter((v) => v.value === null)]
  const shown = more ? values : values.slice(0, 6)
  const top = Math.max(1, ...values.filter((v) => v.value !== null).map((v) => v.count))
  return html`<details class="facet" open>
    <summary><${Icon} name="down" /><span class="facet-name"><bdi>${head(field, 80)}</bdi></span><span class="grow"></span></summary>
    <div class="facet-tools">
      ${field !== 'level' && html`<${IconButton} icon="columns" label=${'Column ' + field} pressed=${column} onClick=${() => toggleColumn(field)} />`}
      ${remove && html`<${IconButton} icon="close" label=${'Remove the facet ' + field} onClick=${remove} />`}</div>
    <ul>${shown.map(({ value, count: n }) => {
      const has = hasTerm(q, term(field, value)), hasNot = hasTerm(q, term(field, value, true))
      const name = value === null ? 'without' : head(field === 'level' ? levelName(text(value)) : text(value), 120) || '""'
      return html`<li key=${text(value)} class=${has ? 'included' : hasNot ? 'excluded' : ''}>
        <button type="button" class="facet-value" aria-pressed=${has} title=${`${name}: ${count(n)} lines. Click for these alone`} onClick=${() => setQ(toggleValue(q, field, value))}>
          <span class=${field === 'level' ? 'facet-bar sev-' + severityOf(text(value)) : 'facet-bar'} style=${{ width: value === null ? '0' : 100 * n / top + '%' }}></span>
          <bdi class=${value === null ? 'dim' : ''}>${name}</bdi><span class="facet-count">${short(n)}</span></button>
        <${IconButton} icon="minus" label=${`Leave out ${head(field, 60)} ${name}`} pressed=${hasNot} onClick=${() => setQ(toggleValue(q, field, value, true))} />
      </li>`
    })}</ul>
    ${estimate && html`<p class="dim">Too many values to keep: ${estimate}.</p>`}
    ${values.length > 6 && html`<button type="button" class="quiet more" onClick=${() => setMore(!more)}>${more ? 'Fewer' : `${values.length - 6} more${facet.more ? ` (of ${count(facet.more + values.length - 6)})` : ''}`}</button>`}
  </details>`
}

/**
 * @param {{fields: {name: string, count: number, values: number}[], chosen: string[], columns: string[], setChosen: (f: string[]) => void, toggleColumn: (name: string) => void}} props
 */
function AllFields({ fields, chosen, columns, setChosen, toggleColumn }) {
  const [wanted, setWanted] = useState('')
  const found = fields.filter((f) => f.name.toLowerCase().includes(wanted.toLowerCase()))
  const shown = found.slice(0, 100)
  return html`<details class="facet all-fields">
    <summary><${Icon} name="down" /><span class="facet-name">All fields</span> <span class="dim">${count(fields.length)}</span></summary>
    <input type="search" placeholder="Find a field" aria-label="Find a field" value=${wanted} onInput=${(/** @type {any} */ e) => setWanted(e.target.value)} />
    <ul>${shown.map((f) => html`<li key=${f.name}>
      <button type="button" class="facet-value" title=${'Show the values of ' + head(f.name, 200)} aria-pressed=${chosen.includes(f.name)}
        onClick=${() => setChosen(chosen.includes(f.name) ? chosen.filter((n) => n !== f.name) : [f.name, ...chosen])}>
        <bdi>${head(f.name, 80)}</bdi><span class="facet-count">${short(f.values)}</span></button>
      <${IconButton} icon="columns" label=${'Column ' + head(f.name, 60)} pressed=${columns.includes(f.name)} onClick=${() => toggleColumn(f.name)} /></li>`)}</ul>
    ${found.length > shown.length && html`<p class="dim">${count(found.length - shown.length)} more: type a part of a name.</p>`}
    <p class="dim">Of the first 300 lines that were found, with how many values.</p>
  </details>`
}
