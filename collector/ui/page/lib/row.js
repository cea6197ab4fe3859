// A line as a row of a list.

import { html } from './html.js'
import { details, fieldOf, head, levelName, text } from './line.js'
import { stamp } from './time.js'

/** How rows look, which the URL has. @param {Pick<ViewProps, 'state' | 'setState'>} props */
export function look({ state, setState }) {
  const columns = state.cols === undefined ? ['service'] : state.cols.split(',').filter((name) => name && name !== '-')
  const wrap = state.wrap === '1', toggleWrap = () => setState({ wrap: wrap ? '' : '1' }, true)
  const toggleColumn = (/** @type {string} */ name) => setState({ cols: (columns.includes(name) ? columns.filter((c) => c !== name) : [...columns, name]).join(',') || '-' }, true)
  return { columns, toggleColumn, wrap, toggleWrap, wraps: html`<label class="check"><input type="checkbox" checked=${wrap} onChange=${toggleWrap} />Wrap</label>` }
}

const thisYear = String(new Date().getFullYear())
const clipped = 1000, wrapped = 4000 // characters of a message in a row

/**
 * @param {Pick<import('./vlist.js').ListProps, 'columns' | 'wrap' | 'utc' | 'date' | 'onOpen'> & {line: Line, index: number, slot: number, selected: boolean, open: boolean, flying: boolean}} props
 * flying: it is out of sight before anybody reads details
 */
export function Row({ line, index, slot, columns, wrap, utc, selected, open, onOpen, date, flying }) {
  const shown = new Set(columns)
  const when = stamp(line.ms, utc)
  const most = wrap ? wrapped : clipped
  const message = wrap ? head(line.msg, most) : head(line.msg.slice(0, most + 1).replace(/\s*\n\s*/g, ' ⏎ '), most)
  const room = Math.max(30, (innerWidth - 240 - 100 * columns.length) / 6.5) // characters, 6.5 pixels each or more: more would be laid out where nobody sees it
  const shownDetails = flying ? [] : details(line, shown, wrap ? 400 : Math.min(400, room - message.length))
  return html`<div key=${slot} id=${'row-' + index} role="option" aria-selected=${open}
      class=${`row sev-${line.severity}${selected ? ' selected' : ''}${open ? ' open' : ''}${wrap ? ' wrap' : ''}`} onClick=${() => onOpen(index)}>
    <span class="row-time">${date && html`<span class="row-date">${when.slice(when.startsWith(thisYear) ? 5 : 0, 10)} </span>`}${when.slice(11)}</span>
    <span class="row-level">${levelName(line.level)}</span>
    ${columns.map((name) => html`<span class="row-field" key=${name}><bdi>${head(text(fieldOf(line, name) ?? ''), 200)}</bdi></span>`)}
    <span class="row-text"><bdi class="row-msg">${message}</bdi>${shownDetails.map(([name, value]) => html` <span class="row-key">${name}=</span><bdi class="dim">${value}</bdi>`)}</span>
  </div>`
}
