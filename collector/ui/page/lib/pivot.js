// What a table of figures is as a chart.

import { text } from './line.js'

export const most = 12 // series of a chart

/** Which columns are what: the time, figures, and what groups. @param {Table} table */
export function kinds({ columns, rows }) {
  const sample = rows.slice(0, 200)
  const every = (/** @type {number} */ i, /** @type {(v: any) => boolean} */ test) => sample.some((r) => r[i] !== null) && sample.every((r) => r[i] === null || test(r[i]))
  const time = columns.findIndex((name, i) => (name === 'time' || name.startsWith('time')) && every(i, (v) => typeof v === 'string' && !Number.isNaN(Date.parse(v))))
  const numbers = columns.map((_, i) => i).filter((i) => i !== time && every(i, (v) => typeof v === 'number'))
  // A number that groups comes before what is counted.
  const figures = numbers.filter((i) => columns.slice(i).every((_, k) => numbers.includes(i + k) || i + k === time))
  const kept = figures.length > 1 && !columns.some((_, i) => i !== time && !numbers.includes(i)) && time < 0 ? figures.slice(1) : figures
  return { time, figures: kept, groups: columns.map((_, i) => i).filter((i) => i !== time && !kept.includes(i)) }
}

/** The chart that fits a table best. @param {Table} table @returns {'table' | 'line' | 'bar'} */
export function best(table) {
  const { time, figures, groups } = kinds(table)
  if (time >= 0 && figures.length > 0 && table.rows.length > 1) return groups.length > 0 && figures.length === 1 && table.columns[figures[0] ?? 0] === 'count' ? 'bar' : 'line'
  return figures.length === 1 && groups.length > 0 && table.rows.length > 1 && table.rows.length <= 50 ? 'bar' : 'table'
}

/** A row's group, in words. @param {Table} table @param {any[]} row @param {number[]} groups */
export const nameOfGroup = (table, row, groups) => groups.map((i) => row[i] === null ? `no ${table.columns[i]}` : text(row[i])).join(' · ')

/**
 * Series over time: one for each group and figure, those with the greatest values.
 * @param {Table} table
 * @returns {{times: number[], series: {name: string, values: (number | null)[]}[], left: number}}
 */
export function overTime(table) {
  const { time, figures, groups } = kinds(table)
  const stamps = [...new Set(table.rows.map((r) => Date.parse(r[time]) / 1000))].filter((t) => !Number.isNaN(t)).sort((a, b) => a - b)
  const times = filled(stamps)
  const at = new Map(times.map((t, i) => [t, i]))
  /** @type {Map<string, {name: string, values: (number | null)[], sum: number}>} */
  const found = new Map()
  for (const row of table.rows) {
    const i = at.get(Date.parse(row[time]) / 1000)
    if (i === undefined) continue
    for (const f of figures) {
      const group = nameOfGroup(table, row, groups)
      const name = figures.length > 1 || !group ? [group, table.columns[f]].filter(Boolean).join(' ') : group
      const s = found.get(name) ?? { name, values: new Array(times.length).fill(null), sum: 0 }
      s.values[i] = row[f]
      s.sum += Math.abs(row[f] ?? 0)
      found.set(name, s)
    }
  }
  const all = [...found.values()].sort((a, b) => b.sum - a.sum)
  return { times, series: all.slice(0, most), left: Math.max(0, all.length - most) }
}

/** Times with the steps between them that have no row, if the steps are regular. @param {number[]} stamps */
function filled(stamps) {
  let step = Infinity
  for (let i = 1; i < stamps.length; i++) step = Math.min(step, (stamps[i] ?? 0) - (stamps[i - 1] ?? 0))
  const first = stamps[0] ?? 0, last = stamps[stamps.length - 1] ?? 0
  const n = Math.round((last - first) / step)
  if (!Number.isFinite(step) || n > 2000 || stamps.some((t) => Math.abs((t - first) / step % 1) > 1e-6)) return stamps
  return Array.from({ length: n + 1 }, (_, i) => first + i * step)
}
