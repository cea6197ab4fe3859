// Charts, drawn by uPlot.

import { html, useMemo, useState, useRef, useEffect, useLayoutEffect } from './html.js'
import { color, Progress, useTheme } from './ui.js'
import { count, severities, severityOf, short } from './line.js'
import { shortStamp, stamp } from './time.js'

/** @typedef {{name: string, color: string, values: (number | null)[]}} Series */

/** Series on top of each other: the least severe last, drawn first. @param {Series[]} list @returns {Series[]} */
export function stack(list) {
  /** @type {number[]} */
  const sums = []
  return list.map((s) => ({ ...s, values: s.values.map((v, i) => (sums[i] = (sums[i] ?? 0) + (v ?? 0))) })).reverse()
}

/**
 * The counts of a histogram by the class of level, the most severe first, for each step.
 * @param {Hits} hits
 * @returns {{times: number[], levels: {severity: string, values: number[]}[]}}
 */
function byLevel(hits) {
  const step = hits.step_seconds, from = Date.parse(hits.from) / 1000, until = Date.parse(hits.until) / 1000
  const steps = Math.min(10000, Math.max(0, Math.ceil((until - from) / step - 1e-6)))
  const times = Array.from({ length: steps }, (_, i) => from + i * step)
  /** @type {Map<string, number[]>} */
  const found = new Map()
  const add = (/** @type {string} */ severity, /** @type {number} */ at, /** @type {number} */ n) => {
    const values = found.get(severity) ?? new Array(steps).fill(0)
    values[at] += n
    found.set(severity, values)
  }
  const classes = hits.values.map((v) => severityOf(String(v)))
  for (const bucket of hits.buckets) {
    const at = Math.round((Date.parse(bucket.time) / 1000 - from) / step)
    if (at < 0 || at >= steps) continue
    let rest = bucket.count
    bucket.counts.forEach((n, i) => {
      add(classes[i] ?? 'none', at, n)
      rest -= n
    })
    if (rest > 0) add('none', at, rest)
  }
  const order = [...severities].reverse().concat('none')
  return { times, levels: order.filter((s) => found.has(s)).map((severity) => ({ severity, values: found.get(severity) ?? [] })) }
}

/**
 * @typedef {object} PlotProps
 * @property {number[]} times seconds
 * @property {Series[]} series
 * @property {'bars' | 'stacked' | 'line'} kind
 * @property {number} height
 * @property {boolean} utc
 * @property {string} label what it shows, for those who do not see it
 * @property {[number, number]} [span] seconds, of the axis
 * @property {(from: number, to: number) => void} [onZoom] milliseconds
 * @property {() => void} [onOut]
 */

/** @param {PlotProps} props */
export function Plot(props) {
  const { times, series, kind, height, utc, label, span } = props
  const place = useRef(/** @type {HTMLElement | null} */ (null))
  const chart = useRef(/** @type {any} */ (null))
  const latest = useRef(props)
  latest.current = props
  const [at, setAt] = useState(/** @type {{index: number, left: number} | null} */ (null))
  const theme = useTheme()
  const shape = [kind, height, utc, theme, ...series.map((s) => s.name + s.color)].join('|')
  const drawn = kind === 'stacked' ? stack(series) : series
  const data = [times, ...drawn.map((s) => s.values)]

  useLayoutEffect(() => {
    const el = place.current, { uPlot } = /** @type {any} */ (globalThis)
    if (!el || !uPlot) return
    chart.current = new uPlot(options(uPlot, el.clientWidth, drawn, latest, setAt), data, el)
    const observer = new ResizeObserver(() => chart.current?.setSize({ width: el.clientWidth, height }))
    observer.observe(el)
    return () => {
      observer.disconnect()
      chart.current?.destroy()
      chart.current = null
    }
  }, [shape])
  useEffect(() => chart.current?.setData(data), [times, series, span?.[0], span?.[1]])

  const index = at?.index ?? -1
  return html`<div class="plot" role="img" aria-label=${label} style=${{ minHeight: height + 'px' }}>
    <div ref=${place}></div>
    ${index >= 0 && index < times.length && html`<${Tip} props=${props} index=${index} left=${at?.left ?? 0} />`}
  </div>`
}

/** What is under the pointer. @param {{props: PlotProps, index: number, left: number}} props */
function Tip({ props: { times, series, utc }, index, left }) {
  const shown = series.map((s) => ({ s, v: s.values[index] })).filter(({ v }) => v)
  return html`<div class="tip" style=${{ left: left + 'px' }} aria-hidden="true">
    <div class="dim">${stamp((times[index] ?? 0) * 1000, utc).slice(0, 19)}</div>
    ${shown.slice(0, 12).map(({ s, v }) => html`<div class="tip-row" key=${s.name}>
      <span class="swatch" style=${{ background: s.color }}></span>${s.name}<b>${count(v ?? 0)}</b></div>`)}
    ${shown.length === 0 && html`<div class="dim">nothing</div>`}
  </div>`
}

/**
 * @param {any} uPlot @param {number} width @param {Series[]} drawn
 * @param {{current: PlotProps}} latest @param {(at: {index: number, left: number} | null) => void} setAt
 */
function options(uPlot, width, drawn, latest, setAt) {
  const { kind, height, utc } = latest.current
  const line = color('border'), dim = color('dim')
  const bars = kind === 'line' ? undefined : uPlot.paths.bars({ size: [0.92, 80, 1], align: 1 })
  const axis = { stroke: dim, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' }
  return {
    width, height, padding: [6, 20, 0, 0],
    legend: { show: false },
    tzDate: (/** @type {number} */ ts) => utc ? uPlot.tzDate(new Date(ts * 1000), 'UTC') : new Date(ts * 1000),
    scales: {
      x: { time: true, range: (/** @type {any} */ _, /** @type {number} */ min, /** @type {number} */ max) => latest.current.span ?? [min, max] },
      y: { range: (/** @type {any} */ _, /** @type {number} */ min, /** @type {number} */ max) => [Math.min(0, min || 0), max > 0 ? max * 1.06 : 1] },
    },
    axes: [{ ...axis, size: 24, space: 70, grid: { show: false }, values: (/** @type {any} */ u, /** @type {number[]} */ list) => list.map((t, i) => tick(t, (list[1] ?? 0) - (list[0] ?? 0), i === 0 && u.scales.x.max - u.scales.x.min > 86400, utc)) },
      { ...axis, size: 52, space: 28, values: (/** @type {any} */ _, /** @type {number[]} */ list) => list.map((v) => Number.isInteger(v) || Math.abs(v) < 1 ? short(Number(v.toPrecision(3))) : '') }],
    cursor: {
      y: false, points: { show: kind === 'line' },
      drag: { x: Boolean(latest.current.onZoom), y: false, setScale: false },
      bind: { dblclick: () => () => latest.current.onOut?.() },
    },
    series: [{}, ...drawn.map((s) => ({ label: s.name, stroke: s.color, fill: bars && s.color, width: bars ? 0 : 1.75, paths: bars, points: { show: false }, spanGaps: false }))],
    hooks: {
      setCursor: [(/** @type {any} */ u) => {
        const { left } = u.cursor
        if (left < 0) return setAt(null)
        // A bar begins at its time, and what is nearest to the pointer may be the next.
        let index = u.posToIdx(left)
        if (kind !== 'line' && index > 0 && u.data[0][index] > u.posToVal(left, 'x')) index--
        setAt({ index, left: Math.min(left + 52, u.width - 190) })
      }],
      setSelect: [(/** @type {any} */ u) => {
        const { left, width: wide } = u.select
        if (wide < 5) return
        const from = u.posToVal(left, 'x') * 1000, to = u.posToVal(left + wide, 'x') * 1000
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        latest.current.onZoom?.(from, to)
      }],
    },
  }
}

/** A time of the axis, with the day where it begins. @param {number} t seconds @param {number} step @param {boolean} day whether it is shown anyway @param {boolean} utc */
function tick(t, step, day, utc) {
  const when = stamp(t * 1000, utc), date = when.slice(5, 10), clock = when.slice(11, step < 60 ? 19 : 16)
  if (step >= 25920e3) return when.slice(0, 4)
  if (step >= 2419200) return when.slice(0, 7)
  if (step < 1) return when.slice(17)
  return step >= 86400 || clock === '00:00' ? date : day ? `${date} ${clock}` : clock
}

/**
 * How many lines there are in each step of time, by level.
 * @param {{hits: Hits | null, utc: boolean, part: number | null, loading: boolean, onZoom: (from: number, to: number) => void, onOut: () => void}} props
 */
export function Histogram({ hits, utc, part, loading, onZoom, onOut }) {
  const theme = useTheme()
  const { times, series } = useMemo(() => {
    const { times, levels } = hits?.buckets.length ? byLevel(hits) : { times: [], levels: [] }
    return { times, series: levels.map(({ severity, values }) => ({ name: severity === 'none' ? 'no level' : severity, color: color('bar-' + severity), values })) }
  }, [hits, theme])
  const from = Date.parse(hits?.from ?? ''), until = Date.parse(hits?.until ?? '')
  const label = hits ? `${count(hits.matched)} lines from ${shortStamp(from, utc)} to ${shortStamp(until, utc)}: `
    + series.map((s) => `${s.name} ${count(s.values.reduce((/** @type {number} */ a, b) => a + (b ?? 0), 0))}`).join(', ') : 'Histogram'
  return html`<section class=${'histogram' + (loading ? ' loading' : '')} aria-label="Lines over time" aria-busy=${loading}>
    ${times.length > 0
      ? html`<${Plot} times=${times} series=${series} kind="stacked" height=${104} utc=${utc} label=${label} span=${[from / 1000, until / 1000]} onZoom=${onZoom} onOut=${onOut} />`
      : html`<div class="histogram-empty dim">${loading ? 'counting …' : hits ? 'no lines in this time' : ''}</div>`}
    <${Progress} part=${part} loading=${loading} />
  </section>`
}
