// One line, opened at the side: its fields, its stack trace, the lines around it and those of
// its trace, and the line as it is stored.

import { html, useState, useMemo } from './html.js'
import { lines as ask } from './api.js'
import { hasTerm, quote, term, toggleValue } from './expr.js'
import { fieldOf, fieldsOf, head, levelName, parseOffsetLine, size, text, visible } from './line.js'
import { look } from './row.js'
import { ago, iso, lasting, stamp } from './time.js'
import { Choice, copy, Failure, Icon, IconButton, useAsked } from './ui.js'
import { keptState } from './url.js'

/** @typedef {ViewProps & {line: Line, onOpen: (line: Line) => void, onClose: () => void}} EventProps onOpen is of another line */

/** @param {EventProps} props */
export function EventPanel(props) {
  const { line, utc, state, setState, go, onClose } = props
  const tab = state.tab || 'fields'
  const trace = fieldOf(line, 'trace_id')
  /** @type {[string, string][]} */
  const tabs = [['fields', 'Fields'], ['around', 'Lines around']]
  if (trace) tabs.push(['trace', 'Trace'])
  tabs.push(['raw', 'Raw'])
  const service = fieldOf(line, 'service')
  return html`<section class="event" aria-label="Line" key=${line.offset}>
    <header class="event-head">
      <span class=${`badge sev-${line.severity}`}>${levelName(line.level) || 'no level'}</span>
      ${service !== undefined && html`<b>${head(text(service), 60)}</b>`}
      <span class="grow"></span>
      <${IconButton} icon="copy" label="Copy the line" onClick=${() => copy(line.raw, 'The line is copied')} />
      <${IconButton} icon="close" label="Close (Esc)" onClick=${onClose} />
    </header>
    <div class="event-time"><button type="button" class="quiet" title="Search 5 minutes around this time"
      onClick=${() => go({ view: 'search', since: iso(line.ms - 3e5), until: iso(line.ms + 3e5), state: { ...keptState(state), line: line.offset < 0 ? '' : String(line.offset) } })}>${stamp(line.ms, utc)}${utc ? ' UTC' : ''}</button> <span class="dim">${ago(line.ms, Date.now())}</span></div>
    <${Long} class="event-msg" value=${line.msg} most=${1500} />
    <${Choice} label="What is shown of the line" value=${tab} options=${tabs} onChange=${(/** @type {string} */ to) => setState({ tab: to === 'fields' ? '' : to }, true)} />
    <div class="event-body">${tab === 'around' ? html`<${Around} ...${props} />`
      : tab === 'trace' && trace ? html`<${Trace} ...${props} id=${text(trace)} />`
      : tab === 'raw' ? html`<${Raw} line=${line} />` : html`<${Fields} ...${props} />`}</div>
  </section>`
}

/** A text of any length; much of it only if asked for. @param {{value: string, class?: string, most?: number}} props */
function Long({ value, class: kind = '', most = 4000 }) {
  const [all, setAll] = useState(false)
  return html`<div class=${'long ' + kind}><bdi>${all ? visible(value) : head(value, most)}</bdi>
    ${!all && value.length > most && html` <button type="button" class="quiet" onClick=${() => setAll(true)}>Show all ${size(value.length)}</button>`}</div>`
}

/** @param {EventProps} props */
function Fields({ line, q, state, setState, go }) {
  const { columns, toggleColumn } = look({ state, setState })
  const setQ = (/** @type {string} */ next) => go({ q: next, state })
  const [all, setAll] = useState(false)
  const fields = useMemo(() => fieldsOf(line).filter(([name]) => name !== 'msg' && name !== 'time'), [line])
  const [stacks, plain] = useMemo(() => [fields.filter(isStack), fields.filter((f) => !isStack(f))], [fields])
  const shown = all ? plain : plain.slice(0, 200)
  return html`${stacks.map(([name, value]) => html`<${Stack} key=${name} name=${name} value=${value} />`)}
    <table class="fields"><tbody>${shown.map(([name, value]) => {
      const has = hasTerm(q, term(name, value)), hasNot = hasTerm(q, term(name, value, true))
      return html`<tr key=${name} class=${has ? 'included' : hasNot ? 'excluded' : ''}>
        <th scope="row"><bdi>${head(name, 200)}</bdi></th>
        <td><${Long} value=${text(value)} most=${1000} /></td>
        <td class="field-actions">
          <${IconButton} icon="plus" label=${`Only lines with this ${head(name, 60)}`} pressed=${has} onClick=${() => setQ(toggleValue(q, name, value))} />
          <${IconButton} icon="minus" label=${`Leave out lines with this ${head(name, 60)}`} pressed=${hasNot} onClick=${() => setQ(toggleValue(q, name, value, true))} />
          <${IconButton} icon="columns" label=${`Column ${head(name, 60)}`} pressed=${columns.includes(name)} onClick=${() => toggleColumn(name)} />
          <${IconButton} icon="copy" label=${`Copy ${head(name, 60)}`} onClick=${() => copy(text(value))} />
        </td></tr>`
    })}</tbody></table>
    ${plain.length > shown.length && html`<button type="button" onClick=${() => setAll(true)}>Show all ${plain.length} fields</button>`}
    ${fields.length === 0 && html`<p class="dim">The line has nothing but its message.</p>`}`
}

/** @param {[string, any]} field */
const isStack = ([name, value]) => (typeof value === 'string' && value.includes('\n')) || (name === 'error.stack' && value !== '')

/** A stack trace, folded where it is long. @param {{name: string, value: any}} props */
function Stack({ name, value }) {
  const trace = typeof value === 'string' ? value : Array.isArray(value) ? value.map(frame).join('\n') : text(value)
  const rows = trace.split('\n')
  const [all, setAll] = useState(false)
  const shown = all ? rows : rows.slice(0, 40)
  return html`<details class="stack" open>
    <summary><${Icon} name="down" />${name} <span class="dim">${rows.length} lines</span><span class="grow"></span></summary>
    <pre tabindex="0" aria-label=${name}><bdi>${shown.map((row, i) => html`<span class=${ours(row) && !belongs(shown, i) ? 'frame' : 'frame dim'}>${head(row, 2000)}${'\n'}</span>`)}</bdi></pre>
    ${shown.length < rows.length && html`<button type="button" class="quiet" onClick=${() => setAll(true)}>Show all ${rows.length} lines</button>`}
    <button type="button" class="quiet" onClick=${() => copy(trace, 'The stack trace is copied')}>Copy</button>
  </details>`
}

/** A frame that is an object, as SDKs send it. @param {any} f */
const frame = (f) => typeof f === 'object' && f ? `${f.function ?? f.name ?? '?'} (${f.filename ?? f.file ?? f.module ?? '?'}:${f.lineno ?? f.line ?? '?'})` : text(f)

/** Whether a frame is rather the service's own than a library's. @param {string} row */
const ours = (row) => !/node_modules|site-packages|\/usr\/|\/go\/pkg\/|\bjava\.|\bjavax\.|\bsun\.|org\.springframework|\bruntime[./]|net\/http\./.test(row)

/** Whether a row is the code of a library's frame in the row before it, as in Python. @param {string[]} rows @param {number} i */
const belongs = (rows, i) => /^\s+File "/.test(rows[i - 1] ?? '') && !ours(rows[i - 1] ?? '')

/** Lines of an endpoint, in the order of the answer. @param {string} path @param {import('./api.js').Params | null} params null: none */
export function useLines(path, params) {
  const { data, loading, error } = useAsked(async (signal) => {
    /** @type {Line[]} */
    const list = []
    if (params) await ask(path, params, { signal, patient: true, onLine: (row) => list.push(parseOffsetLine(row)) })
    return list
  }, [JSON.stringify(params)])
  return { lines: loading || !data ? [] : data, loading, error }
}

/** @param {EventProps} props */
function Around({ line, utc, onOpen }) {
  const [by, setBy] = useState('service')
  const [n, setN] = useState(20)
  const params = { offset: line.offset, before: n, after: n, by }
  const { lines, loading, error } = useLines('/api/context', params)
  if (line.offset < 0) return html`<p class="dim">Nothing tells where this line is in the journal.</p>`
  return html`<div class="row-tools"><${Choice} label="Lines of" value=${by} onChange=${setBy}
      options=${[['service', 'Same service'], ['file', 'Same file'], ['', 'All lines']]} />
      ${n < 1000 && html`<button type="button" class="quiet" onClick=${() => setN(Math.min(1000, n * 4))}>More</button>`}</div>
    ${error ? html`<${Failure} error=${error} />` : html`<${Lines} lines=${lines} current=${line.offset} utc=${utc} loading=${loading} onOpen=${onOpen} />`}`
}

/** @param {EventProps & {id: string}} props */
function Trace({ line, id, utc, onOpen }) {
  const day = 864e5
  const params = { q: 'trace_id=' + quote(id), since: iso(line.ms - day), until: iso(line.ms + day), order: 'time', limit: 1000, offsets: true }
  const { lines, loading, error } = useLines('/api/query', params)
  const first = lines[0]?.ms ?? 0, last = lines[lines.length - 1]?.ms ?? 0
  if (error) return html`<${Failure} error=${error} />`
  return html`<p class="dim">${loading ? 'searching …' : `${lines.length} lines in ${lasting(last - first)}, in order of time`}</p>
    <${Lines} lines=${lines} current=${line.offset} utc=${utc} loading=${loading} onOpen=${onOpen} since=${first} />`
}

/**
 * A short list of lines, one of them the current one.
 * @param {{lines: Line[], current: number, utc: boolean, loading: boolean, onOpen: (line: Line) => void, since?: number}} props
 */
function Lines({ lines, current, utc, loading, onOpen, since }) {
  if (loading && lines.length === 0) return html`<p class="dim">searching …</p>`
  return html`<ol class="lines">${lines.map((l) => html`<li key=${l.offset}>
    <button type="button" class=${`line-button sev-${l.severity}`} aria-current=${l.offset === current ? 'true' : undefined} onClick=${() => onOpen(l)}>
      <span class="row-time">${since === undefined ? stamp(l.ms, utc).slice(11) : '+' + lasting(l.ms - since)}</span>
      <span class="row-level">${levelName(l.level)}</span>
      ${since !== undefined && html`<span class="row-field">${head(text(fieldOf(l, 'service') ?? ''), 40)}</span>`}
      <span class="row-text"><bdi>${head(l.msg, 300)}</bdi></span></button></li>`)}</ol>`
}

/** @param {{line: Line}} props */
function Raw({ line }) {
  const [pretty, setPretty] = useState(false)
  return html`<div class="row-tools"><${Choice} label="Form" value=${pretty ? 'pretty' : 'stored'} onChange=${(/** @type {string} */ v) => setPretty(v === 'pretty')}
      options=${[['stored', 'As stored'], ['pretty', 'Indented']]} />
      <span class="dim">${size(new Blob([line.raw]).size)}${line.offset >= 0 ? ', offset ' + line.offset : ''}</span></div>
    <pre class="raw" tabindex="0" aria-label="The line as JSON"><${Long} value=${pretty ? JSON.stringify(line.object, null, 2) : line.raw} most=${64 * 1024} /></pre>`
}
