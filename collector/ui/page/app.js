// The frame around the views: navigation, the expression, the range of time, keys, login.

import { html, render, useState, useRef, useEffect, useMemo, useErrorBoundary } from './lib/html.js'
import { ApiError, ask, getJSON, refused, seen } from './lib/api.js'
import { splitPipes } from './lib/expr.js'
import { QueryBar } from './lib/querybar.js'
import { RangePicker } from './lib/rangepicker.js'
import { iso, resolve } from './lib/time.js'
import { forget } from './lib/suggest.js'
import { copy, Icon, IconButton, keep, letters, messageOf, recall, toast, useKeys, useTheme } from './lib/ui.js'
import { formatPlace, keptState, parsePlace } from './lib/url.js'
import { views } from './views/index.js'

const first = views[0]?.id ?? ''

/** A choice of the reader's that stays with the browser. @param {string} name @param {string} initial @returns {[string, (value: string) => void]} */
function useKept(name, initial) {
  const [value, set] = useState(() => recall(name) ?? initial)
  return [value, (next) => {
    set(next)
    keep(name, next)
  }]
}

function App() {
  const [place, setPlace] = useState(() => parsePlace(location.hash, first))
  const [run, setRun] = useState(0)
  const [shown, setShown] = useState(!document.hidden)
  const [error, setError] = useState(/** @type {unknown} */ (null))
  const [session, setSession] = useState(/** @type {Session} */ ({ authenticated: true }))
  const [login, setLogin] = useState(false)
  const [help, setHelp] = useState(false)
  const [, setTheme] = useKept('theme', '')
  useTheme()
  const [zone, setZone] = useKept('zone', 'local')
  const [typed, setTyped] = useKept('letters', 'on')
  letters.off = typed === 'off'
  const current = useRef(place)
  current.current = place

  const move = (/** @type {Place} */ next, replace = false) => {
    const url = formatPlace(next)
    if (url !== location.hash) history[replace ? 'replaceState' : 'pushState'](null, '', url)
    setPlace(next)
  }
  useEffect(() => {
    seen().then(() => setShown(true)) // a view asks nothing, and no range begins, before that
    const moved = () => setPlace(parsePlace(location.hash, first))
    addEventListener('popstate', moved)
    refused.listener = () => setLogin(true)
    whoAmI().then((s) => {
      setSession(s)
      setLogin(!s.authenticated)
    })
    return () => removeEventListener('popstate', moved)
  }, [])

  const view = views.find((v) => v.id === place.view) ?? views[0]
  const { filter } = splitPipes(place.q)
  const range = useMemo(() => resolve(place.since, place.until, Date.now()), [place.since, place.until, run, shown])
  useEffect(() => setError(null), [place.q, place.view, range])
  useEffect(() => {
    document.title = [place.q, view?.title, 'Rollway'].filter(Boolean).join(' · ')
  }, [place.q, view])

  const go = (/** @type {Partial<Place>} */ to) => {
    const next = { ...current.current, state: keptState(current.current.state), ...to }
    // A filter shows lines; what pipes make of them is a table.
    if (next.view === 'search' && splitPipes(next.q).pipes) Object.assign(next, { view: 'stats', state: {} })
    move(next)
    if (formatPlace(next) === formatPlace(current.current)) setRun((n) => n + 1)
  }
  const setState = (/** @type {Record<string, string>} */ patch, replace = false) => {
    const next = { ...current.current, state: { ...current.current.state, ...patch } }
    current.current = next
    move(next, replace)
  }
  const show = (/** @type {View} */ v) => move({ ...place, view: v.id, q: v.query === 'pipes' ? place.q : filter, state: {} })
  const keys = Object.fromEntries(views.map((v) => [v.key, () => show(v)]))
  useKeys({ ...keys, '/': () => /** @type {HTMLTextAreaElement | null} */ (document.getElementById('q'))?.focus(), '?': () => setHelp(true), r: () => setRun((n) => n + 1) })
  if (!view) return null

  const pinned = () => {
    const fixed = { ...place, since: range.from === null ? 'all' : iso(range.from), until: iso(range.to) }
    copy(location.href.replace(/#.*/, '') + formatPlace(view.range ? fixed : place), 'The link is copied, with its times fixed')
  }
  const dark = document.documentElement.dataset.theme === 'dark'
  const turn = () => {
    setTheme(dark ? 'light' : 'dark')
    document.documentElement.dataset.theme = dark ? 'light' : 'dark'
  }
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); document.getElementById('main')?.focus() }}>To the content</a>
    <header class="top">
      <a class="brand" href="#/" aria-label="Rollway"><svg viewBox="0 0 16 16" aria-hidden="true"><rect width="16" height="16" rx="3.5" /><path d="M3.5 5h9M3.5 8h6M3.5 11h7.5" /></svg><span>Rollway</span></a>
      <nav class="views" aria-label="Views">${views.map((v) => html`<a key=${v.id} href=${formatPlace({ ...place, view: v.id, q: v.query === 'pipes' ? place.q : filter, state: {} })}
        aria-current=${v === view ? 'page' : undefined} title=${`${v.title} (${v.key})`} onClick=${(/** @type {MouseEvent} */ e) => plain(e) && show(v)}>${v.title}</a>`)}</nav>
      <span class="grow"></span>
      <button type="button" class="quiet zone" title="Times in UTC, or in this browser's zone" onClick=${() => setZone(zone === 'utc' ? 'local' : 'utc')}>${zone === 'utc' ? 'UTC' : 'Local'}</button>
      <${IconButton} icon="link" label="Copy a link to what is shown" onClick=${pinned} />
      <${IconButton} icon=${dark ? 'sun' : 'moon'} label=${dark ? 'Light colors' : 'Dark colors'} onClick=${turn} />
      <button type="button" class="icon-button" title="Keys (?)" aria-label="Keys" onClick=${() => setHelp(true)}>?</button>
      ${session.tokens && session.authenticated && session.user && html`<button type="button" class="quiet user" title="Log out" onClick=${() => logout()}><${Icon} name="user" /><bdi>${session.user}</bdi></button>`}
    </header>
    ${(view.query || view.range) && html`<div class="bar" role="search">
      ${view.query && html`<${QueryBar} q=${view.query === 'pipes' ? place.q : filter || place.q} range=${range} error=${error} onRun=${(/** @type {string} */ q) => go({ q })}
        placeholder=${view.query === 'pipes' ? 'level>=error | stats count() by service' : 'A word, or level>=error service=shop'} />`}
      ${view.range && html`<${RangePicker} range=${range} utc=${zone === 'utc'} onChange=${(/** @type {string} */ since, /** @type {string} */ until) => go({ since, until })} />`}
    </div>`}
    <main id="main" tabindex="-1" class=${'view-' + view.id}>
      <h1 class="unseen">${view.title}</h1>
      ${shown && html`<${Guarded} key=${view.id}><${view.Component} q=${place.q} filter=${filter} range=${range} state=${place.state} setState=${setState} go=${go} run=${run}
        onError=${(/** @type {unknown} */ err) => err instanceof ApiError && err.column > 0 && setError(err)} utc=${zone === 'utc'} session=${session} /><//>`}
    </main>
    ${help && html`<${Help} close=${() => setHelp(false)} typed=${typed} setTyped=${setTyped} />`}
    ${login && html`<${Login} done=${() => whoAmI().then((s) => { if (s.user !== session.user) forget(); setSession(s); setLogin(false); setRun((n) => n + 1) })} />`}
    <${Toast} />`
}

/** A click that is for this page; others open tabs. @param {MouseEvent} e */
function plain(e) {
  if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return false
  e.preventDefault()
  return true
}

/** @returns {Promise<Session>} */
async function whoAmI() {
  try {
    return await getJSON('/ui/session')
  } catch (err) {
    return { authenticated: !(err instanceof ApiError && err.status === 401) }
  }
}

async function logout() {
  await ask('/ui/session', {}, { method: 'DELETE' })
  forget()
  location.reload()
}

/** A view that fails leaves the rest of the page in use. @param {{children?: unknown}} props */
function Guarded({ children }) {
  const [failed, again] = useErrorBoundary()
  return failed ? html`<div class="notice bad" role="alert">The page has failed here: ${messageOf(failed)} <button type="button" class="quiet" onClick=${again}>Try again</button></div>` : children
}

/** Opens a dialog. @param {HTMLDialogElement | null} dialog */
const modal = (dialog) => dialog?.showModal()

/** @param {{done: () => void}} props */
function Login({ done }) {
  const [failed, setFailed] = useState('')
  const submit = async (/** @type {any} */ e) => {
    e.preventDefault()
    try {
      await ask('/ui/session', {}, { method: 'POST', body: { token: e.target.token.value }, headers: { 'Content-Type': 'application/json' } })
      done()
    } catch (err) {
      setFailed(messageOf(err))
    }
  }
  return html`<dialog class="login" ref=${modal} aria-labelledby="login-title" onCancel=${(/** @type {Event} */ e) => e.preventDefault()}><form onSubmit=${submit}>
    <h2 id="login-title">Log in</h2>
    <p class="dim">This collector has tokens. Use one that may read.</p>
    <label>Token <input type="password" name="token" autocomplete="current-password" required autofocus /></label>
    ${failed && html`<p class="bad" role="alert">${failed}</p>`}
    <button class="primary">Log in</button></form></dialog>`
}

/** @param {{close: () => void, typed: string, setTyped: (value: string) => void}} props */
function Help({ close, typed, setTyped }) {
  /** @type {[string, string][]} */
  const list = [['/', 'write the expression'], ['Enter', 'run it; in the list: open the line'], ['j k  ↓ ↑', 'next and previous line'], ['PgDn PgUp', 'twenty lines'],
    ['Esc', 'close, back to the list'], ['z', 'wrap long lines'], ['Space', 'Live: pause and go on'], ['G', 'Live: to the newest'], ['r', 'ask again'],
    ...views.map((v) => /** @type {[string, string]} */ ([v.key, v.title])), ['?', 'these keys']]
  const terms = [['charge', 'lines that contain it'], ['level>=error', 'as severe or more'], ['service=shop -debug', 'a field; not the text'], ['http.status in 500..599', 'a range'], ['msg~i"time out"', 'contains, either case'], ['a=1 or (b=2 c=3)', 'or, and, parentheses'], ['… | top 10 service', 'pipes make tables']]
  return html`<dialog class="help" ref=${modal} onClose=${close} aria-labelledby="help-title" onClick=${(/** @type {Event} */ e) => e.target === e.currentTarget && close()}>
    <div class="help-box"><header><h2 id="help-title">Keys and expressions</h2><span class="grow"></span><${IconButton} icon="close" label="Close" onClick=${close} /></header>
    <div class="help-lists"><dl>${list.map(([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <dl>${terms.map(([key, what]) => html`<div key=${key}><dt><code>${key}</code></dt><dd>${what}</dd></div>`)}</dl></div>
    <label class="check"><input type="checkbox" checked=${typed === 'on'} onChange=${() => setTyped(typed === 'on' ? 'off' : 'on')} />Keys of one letter work</label></div></dialog>`
}

function Toast() {
  const [said, say] = useState('')
  useEffect(() => {
    let timer = 0
    toast.show = (text) => {
      say(text)
      clearTimeout(timer)
      timer = setTimeout(() => say(''), 2500)
    }
  }, [])
  return html`<div class=${said ? 'toast shown' : 'toast'} role="status">${said}</div>`
}

const root = document.getElementById('app')
if (root) {
  root.textContent = ''
  render(html`<${App} />`, root)
}
