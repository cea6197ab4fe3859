// Why: what each step decides about an event, and the line that it becomes. Nothing is stored.

import { html, useState } from '../lib/html.js'
import { ask } from '../lib/api.js'
import { parseJSON, text, visible } from '../lib/line.js'
import { Failure, useAsked } from '../lib/ui.js'

/** @typedef {{step?: string, rule?: string, action?: string, did: string, line?: any}} Step */
/** @typedef {{steps: Step[], dropped?: string, line?: any}} Explained */
/** @typedef {{as: string, events: Explained[], rejected: {index: number, reason: string, detail: string}[], ignored?: number, error?: string, cut?: boolean}} Explanation */

/** @type {[string, string][]} */
const receivers = [['/api/logs', 'JSON or text'], ['/v1/logs', 'OpenTelemetry (JSON)'], ['/loki/api/v1/push', 'Loki (JSON)'], ['/_bulk', 'Elasticsearch'], ['/services/collector/event', 'Splunk'],
  ['/api/v2/logs', 'Datadog'], ['/gelf', 'GELF'], ['syslog', 'syslog'], ['/api/1/store/', 'Sentry'], ['/insert/jsonline', 'VictoriaLogs']]

const example = '{"level": "error", "msg": "payment failed", "service": "checkout", "user": {"email": "a@example.com"}}'

/** @type {Record<string, string>} */
const words = { read: 'Read by the receiver', networks: 'Networks of addresses', defaults: 'Defaults', fingerprint: 'Fingerprint',
  changed: 'changed', dropped: 'dropped it', kept: 'lets it pass', 'not for': 'not for this event', nothing: 'found nothing to do' }

/** The paths whose values differ, for what a step has changed. @param {any} before @param {any} after @param {string} [path] @returns {{path: string, before: any, after: any}[]} */
export function changes(before, after, path = '') {
  const whole = (/** @type {any} */ v) => typeof v !== 'object' || v === null || Array.isArray(v)
  if (whole(before) || whole(after)) {
    return text(before ?? '') === text(after ?? '') && (before === undefined) === (after === undefined) ? [] : [{ path, before, after }]
  }
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].flatMap((name) => changes(before[name], after[name], path ? `${path}.${name}` : name))
}

/** @param {{steps: Step[], i: number}} props */
function StepRow({ steps, i }) {
  const step = steps[i]
  if (!step) return null
  const before = steps.slice(0, i).findLast((s) => s.line !== undefined)?.line
  const list = before !== undefined && step.line !== undefined ? changes(before, step.line) : []
  return html`<li class=${'why-step did-' + step.did.replace(' ', '-')}>
    <div class="why-name">${step.rule ? html`<b><bdi>${step.rule}</bdi></b> <span class="dim">${step.action}</span>` : html`<b>${words[step.step ?? ''] ?? step.step}</b>`}
      ${' '}<span class="why-did">${step.step === 'read' ? '' : words[step.did] ?? step.did}</span></div>
    ${list.map((c) => html`<div key=${c.path} class="why-change mono"><bdi class="dim">${visible(c.path)}</bdi>
      ${c.before !== undefined && html` <del><bdi>${visible(text(c.before))}</bdi></del>`} ${c.after !== undefined && html` <ins><bdi>${visible(text(c.after))}</bdi></ins>`}</div>`)}
    ${step.step === 'read' && html`<pre class="raw"><bdi>${visible(JSON.stringify(step.line, null, 1))}</bdi></pre>`}
  </li>`
}

/** @param {{event: Explained, number: number, of: number}} props */
function Event({ event, number, of }) {
  return html`<section class="why-event" aria-label=${`Event ${number}`}>
    <h2>${of > 1 ? `Event ${number}: ` : ''}${event.dropped ? html`<span class="bad">not stored, by the rule <bdi>${event.dropped}</bdi></span>` : event.line ? 'stored' : html`<span class="bad">not stored</span>`}</h2>
    <ol class="why-steps">${event.steps.map((_, i) => html`<${StepRow} key=${i} steps=${event.steps} i=${i} />`)}</ol>
    ${event.line && html`<p class="dim">The line that is stored:</p><pre class="raw"><bdi>${visible(JSON.stringify(event.line))}</bdi></pre>`}
  </section>`
}

/** @param {ViewProps} props */
function Why({ state, setState }) {
  const [event, setEvent] = useState(state.event ?? '')
  const [asked, setAsked] = useState(/** @type {{as: string, event: string} | null} */ (null))
  const as = state.as || '/api/logs'
  const { data: answer, error } = useAsked(asked && (async (signal) => {
    const type = asked.as === '/api/logs' && !/^\s*[[{]/.test(asked.event) ? 'text/plain' : 'application/json'
    const response = await ask('/api/explain-event', { as: asked.as }, { signal, method: 'POST', body: asked.event, headers: { 'Content-Type': type } })
    return /** @type {Explanation} */ (parseJSON(await response.text()))
  }), [asked])
  const explain = () => {
    setState({ event: event.length < 2000 ? event : '' }, true)
    setAsked({ as, event })
  }
  const known = receivers.some(([path]) => path === as)
  return html`<div class="why">
    <form class="why-ask" onSubmit=${(/** @type {any} */ e) => { e.preventDefault(); explain() }}>
      <label class="why-as">Sent to <select value=${as} onChange=${(/** @type {any} */ e) => setState({ as: e.target.value })}>
        ${receivers.map(([path, name]) => html`<option key=${path} value=${path}>${name}: ${path}</option>`)}${!known && html`<option value=${as}>${as}</option>`}</select></label>
      <label class="unseen" for="why-event">The event as a client sends it</label>
      <textarea id="why-event" class="mono" rows="9" spellcheck=${false} placeholder=${example} value=${event} onInput=${(/** @type {any} */ e) => setEvent(e.target.value)}
        onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); explain() } }}></textarea>
      <div class="row-tools"><button type="submit" class="primary" disabled=${!event.trim()}>Explain</button>
        <button type="button" class="quiet" onClick=${() => setEvent(example)}>An example</button><span class="dim">Nothing is stored. <kbd>Ctrl</kbd> <kbd>Enter</kbd></span></div>
    </form>
    <div class="why-answer" aria-live="polite">
      <${Failure} error=${error} />
      ${answer?.error && html`<div class="notice bad" role="alert">The receiver refuses the request: ${visible(answer.error)}</div>`}
      ${answer?.cut && html`<div class="notice">Too many lines to show: some are left out.</div>`}
      ${answer?.rejected.map((r) => html`<div class="notice bad" key=${r.index}>Event ${r.index + 1} is rejected and kept as a dead letter: <b>${r.reason}</b>, ${visible(r.detail)}</div>`)}
      ${answer?.events.map((one, i) => html`<${Event} key=${i} event=${one} number=${i + 1} of=${answer.events.length} />`)}
      ${answer && answer.events.length === 0 && answer.rejected.length === 0 && !answer.error && html`<div class="empty">There is no event in it.</div>`}
    </div>
  </div>`
}

export { Why as Component }
