// A small histogram within a line of text.

import { html } from './html.js'

/** @param {{values: (number | undefined)[] | undefined, steps: number, label: string}} props missing values are 0 */
export function Spark({ values = [], steps, label }) {
  const list = Array.from({ length: steps }, (_, i) => values[i] ?? 0), top = Math.max(...list, 1e-9)
  const bars = list.map((v, i) => v > 0 ? `M${i * 4} 18h3v${-Math.max(1.5, 17 * v / top).toFixed(1)}h-3z` : '').join('')
  return html`<svg class="spark" viewBox=${`0 0 ${steps * 4} 18`} role="img" aria-label=${label} preserveAspectRatio="none"><path d=${bars} /></svg>`
}
