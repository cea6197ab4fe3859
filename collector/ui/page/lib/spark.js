// A small histogram within a line of text.

import { html } from './html.js'

/**
 * The bars of figures, the highest as high as there is room.
 * @param {(number | undefined)[]} values missing ones are 0 @param {number} steps @param {number} height
 */
export function bars(values, steps, height) {
  const list = Array.from({ length: steps }, (_, i) => values[i] ?? 0)
  const top = Math.max(...list, 1e-9)
  return list.map((v, i) => v > 0 ? `M${i * 4} ${height}h3v${-Math.max(1.5, (height - 1) * v / top).toFixed(1)}h-3z` : '').join('')
}

/** @param {{values: (number | undefined)[] | undefined, steps: number, label: string}} props */
export function Spark({ values, steps, label }) {
  return html`<svg class="spark" viewBox=${`0 0 ${steps * 4} 18`} role="img" aria-label=${label} preserveAspectRatio="none"><path d=${bars(values ?? [], steps, 18)} /></svg>`
}
