// Live: lines as they arrive. What is being read never moves.

import { html, useState, useRef, useEffect } from '../lib/html.js'
import { EventPanel } from '../lib/event.js'
import { count } from '../lib/line.js'
import { look } from '../lib/row.js'
import { Screen, Tail } from '../lib/tail.js'
import { Failure, Hello, Icon, useKeys } from '../lib/ui.js'
import { LineList } from '../lib/vlist.js'

/** @type {Record<string, string>} */
const words = { begin: 'connecting …', live: 'live', away: 'not connected, trying again …', refused: 'stopped' }

/** @param {ViewProps} props */
function Live(props) {
  const { q, filter, onError, utc, run, session } = props
  const { columns, wrap, toggleWrap, wraps } = look(props)
  const all = useRef(new Screen())
  const found = useRef(/** @type {Screen | null} */ (null)) // of those with the wanted text
  const tail = useRef(/** @type {Tail | null} */ (null))
  const [, draw] = useState(0)
  const [status, setStatus] = useState({ word: 'begin', error: /** @type {unknown} */ (null) })
  const [follow, setFollow] = useState(true)
  const [paused, setPaused] = useState(false)
  const [wanted, setWanted] = useState('')
  const [gap, setGap] = useState('')
  const [cursor, setCursor] = useState(-1)
  const [opened, setOpened] = useState(/** @type {Line | null} */ (null))
  const left = useRef(0) // lines that were not shown
  const rate = useRef({ began: 0, seen: 0, skipped: 0, perSecond: 0, share: 1 })
  const hold = useRef(false)
  hold.current = paused || !follow || opened !== null

  useEffect(() => {
    all.current = new Screen()
    found.current = found.current && new Screen()
    left.current = 0
    setStatus({ word: 'begin', error: null })
    setGap('')
    setOpened(null)
    setCursor(-1)
    setFollow(true)
    const t = new Tail(filter, {
      onBatch: (batch) => {
        all.current.add(batch.lines, hold.current)
        found.current?.add(batch.found, hold.current)
        left.current += batch.skipped
        rate.current.seen += batch.seen
        rate.current.skipped += batch.skipped
        draw((n) => n + 1)
      },
      onStatus: (word, error) => {
        setStatus({ word, error: error ?? null })
        if (error) onError(error)
      },
      onGap: setGap,
    })
    tail.current = t
    const timer = setInterval(() => {
      const r = rate.current, now = performance.now(), seconds = (now - r.began) / 1000
      rate.current = { began: now, seen: 0, skipped: 0, perSecond: r.seen / seconds, share: r.seen ? 1 - r.skipped / r.seen : 1 }
      draw((n) => n + 1)
    }, 1000)
    return () => {
      t.close()
      clearInterval(timer)
    }
  }, [filter, run])
  if (tail.current) tail.current.wanted = wanted

  const screen = found.current ?? all.current
  const { shown: lines, held } = screen
  const want = (/** @type {string} */ text) => {
    found.current = text ? (text.includes(wanted) ? screen : all.current).having(text) : null
    setWanted(text)
    setCursor(-1)
  }
  const show = () => {
    all.current.release()
    found.current?.release()
  }
  const release = () => {
    show()
    setPaused(false)
    setOpened(null)
    setCursor(-1)
    setFollow(true)
  }
  const onFollow = (/** @type {boolean} */ atEnd) => {
    if (atEnd === follow) return
    // To have scrolled to the end means to want what is new, unless one has paused.
    if (atEnd && !paused && !opened) show()
    setFollow(atEnd)
  }
  const open = (/** @type {number} */ i) => {
    setCursor(i)
    setFollow(false)
    setOpened(lines[i] ?? null)
  }
  const move = (/** @type {number} */ by) => {
    const next = Math.max(0, Math.min(lines.length - 1, cursor < 0 ? lines.length - 1 + Math.min(by, 0) : cursor + by))
    setCursor(next)
    setFollow(false)
    if (opened) setOpened(lines[next] ?? null)
  }
  useKeys({
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), Enter: () => open(cursor < 0 ? lines.length - 1 : cursor),
    Escape: () => opened ? setOpened(null) : release(), ' ': () => paused ? release() : setPaused(true), G: release,
    z: toggleWrap,
  })
  const { perSecond, share } = rate.current
  return html`<div class=${'live' + (opened ? ' with-event' : '')}>
    <div class="results">
      <div class="toolbar">
        <button type="button" class="primary" aria-pressed=${paused} onClick=${() => paused ? release() : setPaused(true)}><${Icon} name=${paused ? 'play' : 'pause'} />${paused ? 'Go on' : 'Pause'}</button>
        <input type="search" class="live-filter" placeholder="Filter while typing" aria-label="Show only lines that contain" value=${wanted} onInput=${(/** @type {any} */ e) => want(e.target.value)} />
        <span class="grow"><span class=${'dot ' + (paused ? 'paused' : status.word)}></span> <span role="status">${paused ? 'paused' : words[status.word]}</span>
          <span class="dim live-rate"> ${count(Math.round(perSecond))} lines/s${share < 0.995 ? `: too many to show, 1 in ${Number((1 / share).toPrecision(2))} is shown` : ''}${left.current ? `, ${count(left.current)} were left out` : ''}</span></span>
        ${wraps}
      </div>
      ${q !== filter && html`<div class="notice">Live takes the filter alone; what follows the first | is left out.</div>`}
      ${status.word === 'refused' && html`<${Failure} error=${status.error} />`}
      ${gap && html`<div class="notice bad" role="status">${gap}</div>`}
      ${lines.length === 0 ? html`<div class="empty">${status.word === 'live' ? 'No line yet. It appears here as soon as it arrives.' : words[status.word]}${status.word === 'live' && !filter && !wanted && html`<${Hello} tokens=${session.tokens} />`}</div>`
        : html`<${LineList} lines=${lines} label="Lines, newest last" columns=${columns} wrap=${wrap} utc=${utc} date=${false} cursor=${cursor} opened=${opened} onOpen=${open}
          follow=${follow && !paused && !opened} onFollow=${onFollow} />`}
      ${held > 0 && hold.current && html`<button type="button" class="new-lines primary" onClick=${release}><${Icon} name="down" />${count(held)} new${screen.lost ? `, the newest ${count(screen.waiting.length)} are kept` : ''}</button>`}
    </div>
    ${opened && html`<${EventPanel} ...${props} line=${opened} onOpen=${setOpened} onClose=${() => setOpened(null)} />`}
  </div>`
}

/** @type {View} */
export const view = { id: 'live', title: 'Live', key: 'l', query: 'filter', Component: Live }
