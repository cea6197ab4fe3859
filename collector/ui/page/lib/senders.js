// Who sends, who is turned away, and what could not be stored.

import { html, useState } from './html.js'
import { getJSON, lines } from './api.js'
import { count, head, size, visible } from './line.js'
import { ago, stamp } from './time.js'
import { Choice, Failure, toast, useAsked } from './ui.js'

/** @typedef {{client: string, token: string, tenant: string, receiver: string, agent: string, requests: number, events: number, bytes: number, rejected: number, refused: number, first: string, last: string, error: string, error_time?: string}} Client */
/** @typedef {{id: string, time: string, last?: string, count?: number, replayed?: boolean, receiver: string, tenant?: string, client?: string, reason: string, detail?: string, event?: string, base64?: string, withheld?: boolean, cut?: boolean}} Letter */

const mostRows = 300

/** @param {ViewProps} props */
export function Clients({ state, setState, run, utc }) {
  const found = useAsked((signal) => getJSON('/api/clients', {}, { signal }), [run])
  const which = state.who || 'senders', now = Date.now()
  /** @type {Client[]} */
  const clients = found.data?.clients ?? []
  const list = clients.filter((c) => which === 'refused' ? c.refused > 0 : which === 'senders' ? c.events > 0 : true)
    .sort((a, b) => which === 'refused' ? b.refused - a.refused : which === 'senders' ? b.events - a.events : 0)
  return html`<div class="toolbar"><${Choice} label="Which clients" value=${which} options=${[['senders', 'Who sends'], ['refused', 'Who is turned away'], ['all', 'All']]} onChange=${(/** @type {string} */ who) => setState({ who })} />
      <span class="dim" role="status">${found.loading ? '' : `${count(list.length)} of about a thousand that are remembered`}</span></div>
    <${Failure} error=${found.error} />
    ${list.length === 0 ? html`<div class="empty">${found.loading ? 'asking …' : which === 'refused' ? 'Nobody is turned away.' : 'Nobody yet.'}</div>` : html`<div class="table-box" tabindex="0" role="region" aria-label="Clients"><table class="rows">
      <thead><tr>${['Client', 'Token', 'Receiver', 'Program', 'Events', 'Bytes', 'Rejected', 'Turned away', 'Last', 'Last error'].map((name, i) => html`<th key=${name} scope="col" class=${i > 3 && i < 8 ? 'number' : ''}>${name}</th>`)}</tr></thead>
      <tbody>${list.slice(0, mostRows).map((c) => html`<tr key=${[c.client, c.token, c.tenant, c.receiver].join(' ')}>
        <td>${c.client}</td><td>${c.token || html`<span class="dim">–</span>`}${c.tenant && html`<span class="dim"> ${c.tenant}</span>`}</td><td><bdi>${c.receiver}</bdi></td><td><bdi>${visible(c.agent)}</bdi></td>
        <td class="number">${count(c.events)}</td><td class="number">${size(c.bytes)}</td><td class=${'number' + (c.rejected ? ' bad' : '')}>${count(c.rejected)}</td><td class=${'number' + (c.refused ? ' bad' : '')}>${count(c.refused)}</td>
        <td class="nowrap" title=${stamp(Date.parse(c.last), utc)}>${ago(Date.parse(c.last), now)}</td>
        <td>${c.error && html`<bdi>${head(c.error, 300)}</bdi> <span class="dim nowrap">${ago(Date.parse(c.error_time ?? ''), now)}</span>`}</td></tr>`)}</tbody></table></div>`}
    ${list.length > mostRows && html`<p class="dim">The first ${mostRows}.</p>`}`
}

/** @param {ViewProps} props */
export function DeadLetters({ session, run, utc, go }) {
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()))
  const [again, setAgain] = useState(0)
  const [failed, setFailed] = useState(/** @type {Record<string, string>} */ ({}))
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState(/** @type {unknown} */ (null)) // of sending again
  const found = useAsked(async (signal) => {
    /** @type {Letter[]} */
    const list = []
    await lines('/api/rejected', { last: mostRows }, { signal, onLine: (text) => text && list.push(JSON.parse(text)) })
    return list.reverse()
  }, [run, again])
  const letters = found.data ?? []
  const may = session.rights?.some((right) => right === 'operate' || right === 'write') ?? true
  const fit = letters.filter((l) => !l.withheld && !l.replayed)
  const picked = fit.filter((l) => chosen.has(l.id))
  const toggle = (/** @type {string} */ id) => setChosen((old) => {
    const next = new Set(old)
    if (!next.delete(id)) next.add(id)
    return next
  })
  const replay = async () => {
    setBusy(true)
    setError(null)
    try {
      let stored = 0
      /** @type {Record<string, string>} */
      const errors = {}
      for (let i = 0; i < picked.length; i += 100) {
        const answer = await getJSON('/api/rejected/replay', {}, { method: 'POST', body: { ids: picked.slice(i, i + 100).map((l) => l.id) } })
        stored += answer.stored + answer.before
        for (const f of answer.failed) errors[f.id] = f.error
      }
      setFailed(errors)
      toast.show(`${count(stored)} stored, ${count(Object.keys(errors).length)} not`)
      setChosen(new Set())
      setAgain((n) => n + 1)
    } catch (error) {
      setError(error)
    } finally {
      setBusy(false)
    }
  }
  return html`<div class="toolbar">
      ${may && html`<button type="button" class="primary" disabled=${busy || picked.length === 0} onClick=${replay}>${busy ? 'Sending …' : `Send ${picked.length || ''} again`}</button>
      <button type="button" class="quiet" disabled=${fit.length === 0} onClick=${() => setChosen(picked.length === fit.length ? new Set() : new Set(fit.map((l) => l.id)))}>${fit.length > 0 && picked.length === fit.length ? 'Choose none' : 'Choose all'}</button>`}
      <span class="dim" role="status">${found.loading ? '' : `the newest ${count(letters.length)}; alike ones are one`}</span></div>
    <${Failure} error=${error ?? found.error} />
    ${letters.length === 0 ? html`<div class="empty">${found.loading ? 'asking …' : html`<b>No dead letters.</b><p>Events that cannot be stored as they are wait here, with the reason.</p>`}</div>` : html`<ul class="letters">${letters.map((l) => html`<li key=${l.id} class=${l.replayed ? 'replayed' : ''}>
      ${may && html`<input type="checkbox" aria-label=${`Choose ${l.id}`} disabled=${l.withheld || l.replayed} checked=${chosen.has(l.id)} onChange=${() => toggle(l.id)} />`}
      <div class="letter"><div><b>${l.reason}</b> <bdi>${head(l.detail ?? '', 300)}</bdi></div>
        <div class="dim">${(l.count ?? 1) > 1 && html`<b>${count(l.count ?? 1)} times</b>, `}<span title=${stamp(Date.parse(l.last ?? l.time), utc)}>${ago(Date.parse(l.last ?? l.time), Date.now())}</span> at <bdi>${l.receiver}</bdi>${l.tenant && ` of ${l.tenant}`}${l.client && ` from ${l.client}`}${l.replayed && ', sent again and stored'}${l.cut && ', only its beginning is kept'}</div>
        ${failed[l.id] && html`<div class="bad">Not stored: ${failed[l.id]}</div>`}
        <pre class="raw"><bdi>${l.withheld ? 'Its text is not kept, as rules redact events.' : head(l.event ?? (l.base64 ? `base64: ${l.base64}` : ''), 2000)}</bdi></pre>
        ${!l.withheld && l.event && l.receiver.startsWith('/') && html`<button type="button" class="quiet" onClick=${() => go({ view: 'why', state: { as: l.receiver, event: (l.event ?? '').slice(0, 2000) } })}>Why?</button>`}</div></li>`)}</ul>`}`
}
