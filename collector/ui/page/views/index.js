// The views, in the order of the navigation.

import { html, useState } from '../lib/html.js'
import { view as search } from './search.js'
import { view as errors } from './errors.js'
import { view as live } from './live.js'

/**
 * A view that is loaded when it is first shown.
 * @param {Omit<View, 'Component'>} view @param {() => Promise<{Component: View['Component']}>} load
 * @returns {View}
 */
function later(view, load) {
  /** @type {View['Component'] | undefined} */
  let Component
  return { ...view, Component: (props) => {
    const [failed, settle] = useState(/** @type {unknown} */ (undefined))
    if (failed) throw failed
    if (Component) return html`<${Component} ...${props} />`
    load().then((module) => {
      Component = module.Component
      settle(null)
    }, settle)
    return null
  } }
}

/** @type {View[]} */
export const views = [
  search, errors, live,
  later({ id: 'stats', title: 'Stats', key: 't', query: 'pipes', range: true }, () => import('./stats.js')),
  later({ id: 'pipeline', title: 'Pipeline', key: 'p' }, () => import('./pipeline.js')),
  later({ id: 'why', title: 'Why', key: 'w' }, () => import('./why.js')),
]
