// The field for the expression: colored, completed, and with errors under their column.

import { html, useState, useRef, useEffect, useLayoutEffect } from './html.js'
import { ApiError } from './api.js'
import { columnIndex, role, tokens } from './expr.js'
import { quit, recentExpressions, rememberExpression, suggestions } from './suggest.js'

/** @typedef {import('./suggest.js').Suggestion} Suggestion */

/**
 * @param {{q: string, range: TimeRange, error: unknown, placeholder: string, onRun: (q: string) => void}} props
 */
export function QueryBar({ q, range, error, placeholder, onRun }) {
  const [draft, setDraft] = useState(q)
  const [list, setList] = useState(/** @type {Suggestion[]} */ ([]))
  const [chosen, setChosen] = useState(-1)
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null))
  const caretAt = useRef(-1)
  const asked = useRef(0)
  const listed = useRef(0) // the length of the text that list is for, which may be older than draft
  useEffect(() => setDraft(q), [q])
  useLayoutEffect(() => {
    if (caretAt.current >= 0) area.current?.setSelectionRange(caretAt.current, caretAt.current)
    caretAt.current = -1
  }, [draft])

  const close = () => {
    asked.current++
    setList([])
    setChosen(-1)
  }
  const suggest = (/** @type {string} */ text, /** @type {number} */ caret) => {
    const number = ++asked.current
    setTimeout(async () => {
      if (number !== asked.current) return
      const found = await suggestions(text, caret, range, recentExpressions())
      if (number !== asked.current) return
      // What is there already needs no offer.
      listed.current = text.length
      setList(found.filter((s) => s.text.trim() !== text.slice(s.start, s.end)))
      setChosen(-1)
    }, 120)
  }
  const take = (/** @type {Suggestion} */ s) => {
    const text = draft.slice(0, s.start) + s.text + draft.slice(s.end + draft.length - listed.current)
    caretAt.current = s.start + s.text.length
    setDraft(text)
    close()
    area.current?.focus()
    if (s.again) suggest(text, caretAt.current)
  }
  const run = () => {
    close()
    quit()
    onRun(draft.trim())
    rememberExpression(draft.trim())
  }
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const one = list[chosen] ?? (event.key === 'Tab' && !event.shiftKey ? list[0] : undefined)
    if (event.isComposing) return
    if (event.key === 'Escape') {
      if (list.length) close()
      else area.current?.blur()
    } else if (one && (event.key === 'Tab' || event.key === 'Enter')) {
      take(one)
    } else if (event.key === 'Enter' && !event.shiftKey) {
      run()
    } else if (list.length && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      const places = list.length + 1 // one is none of the list
      setChosen((chosen + 1 + (event.key === 'ArrowDown' ? 1 : -1) + places) % places - 1)
    } else {
      return
    }
    event.preventDefault()
    event.stopPropagation()
  }
  const column = error instanceof ApiError && draft === q ? error.column : 0
  return html`<div class="querybar">
    <div class="editor">
      <pre class="editor-text" aria-hidden="true">${colored(draft, column)}${' '}</pre>
      <textarea id="q" ref=${area} rows="1" value=${draft} placeholder=${placeholder} spellcheck=${false} autocomplete="off" autocapitalize="off"
        aria-label="Expression" aria-controls="q-list" aria-autocomplete="list" aria-haspopup="listbox"
        aria-invalid=${column > 0} aria-describedby=${column ? 'q-error' : undefined}
        aria-activedescendant=${chosen >= 0 ? 'q-' + chosen : undefined}
        onInput=${(/** @type {any} */ e) => {
          setDraft(e.target.value)
          suggest(e.target.value, e.target.selectionStart)
        }}
        onFocus=${() => !draft && suggest('', 0)} onBlur=${() => close()} onKeyDown=${onKeyDown}></textarea>
      <ul id="q-list" class="suggestions" role="listbox" aria-label="Suggestions" hidden=${list.length === 0}>${list.map((s, i) => html`
        <li key=${s.text} id=${'q-' + i} role="option" aria-selected=${i === chosen}
          onMouseDown=${(/** @type {Event} */ e) => { e.preventDefault(); take(s) }}><span class="mono">${s.text}</span><span class="dim">${s.note}</span></li>`)}</ul>
    </div>
    <button type="button" class="primary" onClick=${run}>Run</button>
    ${column > 0 && html`<div class="query-error" id="q-error" role="alert" style=${{ paddingLeft: `min(${column - 1}ch, 60%)` }}>
      <span aria-hidden="true">▲ </span>${error instanceof Error ? error.message.split('\n')[0] : ''}</div>`}
  </div>`
}

/** The expression's parts in their colors. @param {string} text @param {number} column of an error; 0: none */
function colored(text, column) {
  const list = tokens(text), wrong = column ? columnIndex(text, column) : -1
  const parts = list.map((t, i) => {
    const bad = wrong >= t.start && (wrong < t.end || (i === list.length - 1 && wrong >= t.end))
    return html`<span class=${`tok-${role(list, i)}${bad ? ' tok-bad' : ''}`}>${t.text}</span>`
  })
  return wrong >= text.length && column ? [...parts, html`<span class="tok-bad">${' '}</span>`] : parts
}
