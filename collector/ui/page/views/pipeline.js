// Pipeline: from receivers over rules and journal to sinks, as it runs; who sends, who is turned
// away, and what could not be stored.

import { html, useState } from '../lib/html.js'
import { getJSON } from '../lib/api.js'
import { count, short, size } from '../lib/line.js'
import { Spark } from '../lib/spark.js'
import { ago } from '../lib/time.js'
import { Choice, Failure, useRepeated } from '../lib/ui.js'
import { Clients, DeadLetters } from '../lib/senders.js'

const every = 2000, day = 864e5, samples = 61 // two minutes

/** @typedef {{at: number, p: any}} Sample */

/** A count per second. @param {Sample | undefined} now @param {Sample | undefined} before @param {(p: any) => number | undefined} of @returns {number | null} */
function rate(now, before, of) {
  if (!now || !before || now.at <= before.at) return null
  const a = of(before.p), b = of(now.p)
  return a === undefined || b === undefined || b < a ? null : (b - a) * 1000 / (now.at - before.at)
}

/** @param {number | null} n */
const perSecond = (n) => n === null ? '–' : `${short(Number(n.toPrecision(3)))}/s`

/** @param {Record<string, number> | undefined} counts */
const sum = (counts) => Object.values(counts ?? {}).reduce((a, b) => a + b, 0)

/** @param {{title: string, figure?: string, unit: string, list?: Sample[], of?: (p: any) => number | undefined, children?: any, bad?: boolean}} props */
function Stage({ title, figure, unit, list = [], of, children, bad }) {
  const rates = of ? list.slice(1).map((now, i) => rate(now, list[i], of) ?? 0) : []
  const label = figure ?? perSecond(of ? rate(list[list.length - 1], list[list.length - 2], of) : null)
  return html`<li class=${'stage' + (bad ? ' stage-bad' : '')}><h2>${title}</h2><div class="stage-figure"><b>${label}</b> <span class="dim">${unit}</span></div>
    ${of && html`<${Spark} values=${[...new Array(samples - 1 - rates.length).fill(0), ...rates]} steps=${samples - 1} label="over the last two minutes" />`}${children}</li>`
}

/** Names with figures; those that are bad stand out. @param {{rows: ([name: string, figure: unknown, bad?: boolean] | false)[]}} props */
function Counts({ rows }) {
  return rows.some(Boolean) && html`<dl class="counts">${rows.map((row) => row && html`<div key=${row[0]} class=${row[2] ? 'bad' : ''}><dt><bdi>${row[0]}</bdi></dt><dd>${row[1]}</dd></div>`)}</dl>`
}

/** Counts that are not 0, the greatest first. @param {Record<string, number>} counts @returns {[string, string][]} */
const greatest = (counts) => Object.entries(counts).filter(([, n]) => n > 0).sort(([, a], [, b]) => b - a).map(([name, n]) => [name, count(n)])

/** @param {{p: any}} props */
function Journal({ p }) {
  const j = p.journal, f = j.forecast
  return html`<${Counts} rows=${[
    ['on disk', size(j.bytes)],
    j.disk_total_bytes > 0 && ['disk free', `${size(j.disk_free_bytes)} of ${size(j.disk_total_bytes)}`],
    j.oldest && ['oldest', ago(Date.parse(j.oldest), Date.now())],
    ['lines kept', count(j.next_offset - j.first_offset)],
    j.unpacked_bytes > 0 && ['waits to be packed', size(j.unpacked_bytes)],
    f && [f.full ? 'full in' : 'kept for', html`${f.days >= 3650 ? 'years' : `${Number((f.full ? Math.max(0, f.days - (Date.now() - Date.parse(j.oldest)) / day) : f.days).toPrecision(2))} days`} <span class="dim">(${f.limit})</span>`, f.full && f.days < 7],
    j.refused_full > 0 && ['batches refused, full', count(j.refused_full), true],
    j.disk_errors > 0 && ['errors of the disk', count(j.disk_errors), true],
    j.findings > 0 && ['damage found', `${count(j.findings)}: rollway verify`, true],
    j.last_error && ['last error', j.last_error, true],
  ]} />`
}

/** @param {{list: Sample[], toRefused: () => void}} props */
function Flow({ list, toRefused }) {
  const now = list[list.length - 1], before = list[list.length - 2]
  if (!now) return null
  const p = now.p, all = p.journal !== undefined
  const lost = sum(p.outcomes) - (p.outcomes?.stored ?? 0)
  const dropped = p.rules.reduce((/** @type {number} */ a, /** @type {any} */ r) => a + r.dropped, 0)
  return html`<ol class="flow">
    <${Stage} title="Receivers" unit="events" list=${list} of=${(/** @type {any} */ x) => x.received}>
      <table class="rows compact"><tbody>${p.receivers.map((/** @type {any} */ r) => html`<tr key=${r.receiver}><td><bdi>${r.receiver}</bdi></td>
        <td class="number">${perSecond(rate(now, before, (x) => x.receivers.find((/** @type {any} */ o) => o.receiver === r.receiver)?.events))}</td><td class="number dim">${short(r.events)}</td></tr>`)}</tbody></table>
      ${p.receivers.length === 0 && html`<p class="dim">Nobody has sent anything yet.</p>`}
    <//>
    <${Stage} title="Rules" unit="dropped" list=${list} of=${(/** @type {any} */ x) => x.outcomes?.dropped}>
      ${p.rules.length === 0 ? html`<p class="dim">${all ? 'There are no rules.' : 'No rule has dropped any.'}</p>` : html`<table class="rows compact"><tbody>${p.rules.map((/** @type {any} */ r) => html`<tr key=${r.name}><td><bdi>${r.name}</bdi> <span class="dim">${r.action}</span></td><td class="number">${r.dropped ? short(r.dropped) : ''}</td></tr>`)}</tbody></table>`}
      ${dropped > 0 && p.received > 0 && html`<p class="dim">${Number((100 * dropped / p.received).toPrecision(2))} % of all events are dropped.</p>`}
    <//>
    <${Stage} title="Journal" unit="lines stored" list=${list} of=${(/** @type {any} */ x) => x.outcomes?.stored} bad=${Boolean(p.not_ready)}>
      ${all ? html`<${Journal} p=${p} />` : html`<${Counts} rows=${[['stored', count(p.outcomes?.stored ?? 0)]]} />`}
    <//>
    ${all && html`<${Stage} title="Sinks" figure=${p.sinks.length ? undefined : '–'} unit="lines delivered" list=${list}
      of=${p.sinks.length ? (/** @type {any} */ x) => x.sinks.reduce((/** @type {number} */ a, /** @type {any} */ s) => a + s.delivered, 0) : undefined}>
      ${p.sinks.length === 0 ? html`<p class="dim">There are no sinks.</p>` : p.sinks.map((/** @type {any} */ s) => html`<div key=${s.name}><b>${s.name}</b><${Counts} rows=${[['waiting', count(s.pending), s.pending > 10000],
        sum(s.dropped) > 0 && ['dropped', count(sum(s.dropped)), true], s.retries > 0 && ['tried again', count(s.retries)], s.last_error && ['last error', s.last_error, true]]} /></div>`)}
    <//>`}
    <${Stage} title="Not stored" figure=${count(lost)} unit="events since the start">
      <${Counts} rows=${greatest({ ...p.outcomes, stored: 0, rejected: 0 })} />
      ${sum(p.rejected) > 0 && html`<p class="dim">rejected, by reason:</p><${Counts} rows=${greatest(p.rejected)} />`}
      ${all && p.refused.length > 0 && html`<p class="dim">requests turned away: <button type="button" class="quiet" onClick=${toRefused}>Whose?</button></p><${Counts} rows=${greatest(Object.fromEntries(p.refused.map((/** @type {any} */ r) => [`${r.receiver} ${r.reason.replaceAll('_', ' ')}`, r.count])))} />`}
    <//>
  </ol>`
}

/** Whether each event is accounted for. @param {{p: any}} props */
function Ledger({ p }) {
  if (!p.ledger) return null
  return html`<details class="ledger"><summary>${p.ledger.agrees ? html`<span class="good">Every event is accounted for</span>` : html`<span class="bad">The counts do not agree</span>`}
    <span class="dim"> ${count(p.received)} received = ${Object.entries(p.outcomes).filter(([, n]) => Number(n) > 0).map(([name, n]) => `${count(Number(n))} ${name}`).join(' + ') || '0'}</span></summary>
    <table class="rows compact"><tbody>${p.ledger.checks.map((/** @type {any} */ c) => html`<tr key=${c.what} class=${c.agrees ? '' : 'bad'}><td>${c.what}</td><td class="number">${count(c.counted)}</td><td>${c.agrees ? '=' : '≠'}</td><td class="number">${count(c.found)}</td></tr>`)}</tbody></table></details>`
}

/** @param {ViewProps} props */
function Pipeline(props) {
  const { state, setState } = props
  const [{ list, error }, set] = useState({ list: /** @type {Sample[]} */ ([]), error: /** @type {unknown} */ (null) })
  useRepeated(every, async (signal) => {
    try {
      const p = await getJSON('/api/pipeline', {}, { signal })
      set(({ list }) => ({ list: [...list.slice(1 - samples), { at: performance.now(), p }], error: null }))
    } catch (error) {
      if (!signal.aborted) set((old) => ({ ...old, error }))
    }
    return false
  }, [])
  const now = list[list.length - 1]
  const tab = state.tab || 'flow'
  return html`<div class="pipeline">
    <div class="toolbar"><${Choice} label="What is shown" value=${tab} options=${[['flow', 'Flow'], ['clients', 'Clients'], ['letters', 'Dead letters' + (now?.p.dead_letters?.kept ? ` (${short(now.p.dead_letters.kept)})` : '')]]} onChange=${(/** @type {string} */ v) => setState({ tab: v === 'flow' ? '' : v })} />
      <span class="grow"></span>${now && html`<span class="dim">since the start ${ago(Date.parse(now.p.began), Date.now())}</span>`}</div>
    <${Failure} error=${error} />
    ${now?.p.not_ready && html`<div class="notice bad" role="alert">Lines cannot be stored: ${now.p.not_ready}</div>`}
    ${tab === 'clients' ? html`<${Clients} ...${props} />` : tab === 'letters' ? html`<${DeadLetters} ...${props} />`
      : now ? html`<${Flow} list=${list} toRefused=${() => setState({ tab: 'clients', who: 'refused' })} /><${Ledger} p=${now.p} />` : html`<div class="empty">asking …</div>`}
  </div>`
}

export { Pipeline as Component }
